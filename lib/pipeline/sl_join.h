/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_JOIN_H
#define SL_JOIN_H
/*
 * Frames in several buffers: a jumbo frame that a NIC scattered over small ones, or a frame in a buffer of a driver's own
 * without room for headers in front. The rest of transit, the AEAD above all, works on one piece of memory in place, so
 * such a frame is copied into a large buffer once, when it is classified, and is an ordinary frame from there on. The
 * copy adds a fifth to a frame of 9,000 bytes (docs/pipeline.md); a frame in one buffer pays nothing but the test that was
 * there before.
 *
 * The large buffers are a pool a port, made where frames may come in pieces: data_size below what the MTU needs.
 */
#include <rte_mbuf.h>
#include "sl_verdict.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_JOIN_MBUFS 2048u /* of a port's pool, or as many as its pool of small ones has */

/*
 * Replaces *m by a frame with the same bytes, marks of the NIC included, in one buffer of `pool`, and frees the old one.
 * SL_FORWARD, or *m is as it was and the verdict says why: SL_DROP_SEGMENTS (no pool, longer than its buffers, or its pieces
 * do not add up), SL_DROP_SEGMENTS_FULL (no buffer left). Workers.
 */
enum sl_verdict sl_join(struct rte_mempool *pool, struct rte_mbuf **m);

#ifdef __cplusplus
}
#endif
#endif
