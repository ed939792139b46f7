/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SL_AEAD_CRYPTODEV_H
#define SL_AEAD_CRYPTODEV_H
/*
 * ChaCha20-Poly1305 by any DPDK crypto device that offers it, behind the interface of the other engines: so that an
 * accelerator can be compared with them. A call enqueues what it is given, at most SL_CRYPTODEV_IN_FLIGHT at a time, and
 * returns when everything has come back: the device works while the rest is enqueued, the caller waits.
 *
 * Order: EAL up; start; create one context for each thread that seals (each takes a queue pair of its own); destroy them;
 * stop. start and stop: one thread. A context keeps a session a key, made when the key is first seen and again when
 * another one lies at its address; the least recently used ones go.
 *
 * The device works on copies in buffers of the context, whose bus addresses are known once and for all, and which are
 * nobody else's should it come back late. What it gives back in good condition is copied into the packet; what it does not is
 * not sealed, or not authentic, and is counted by reason. Packets without text, which devices refuse, and texts over
 * SL_CRYPTODEV_TEXT_MAX are worked off by libsodium.
 *
 * A device that gives nothing back for a second is given up by the context that waited: those packets are done by libsodium,
 * and all after them by the engine "auto". The context's buffers stay with the device until it is stopped.
 *
 * A limit that our own engines do not have: a key stays with its session, in the context and in the device, until another one
 * needs the place or the context ends, so longer than the link session that it was for.
 */
#include "../crypto/sl_aead.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_CRYPTODEV_IN_FLIGHT 64u
#define SL_CRYPTODEV_SESSIONS 1024u /* a context and direction */
#define SL_CRYPTODEV_TEXT_MAX 9216u /* bytes; a context has SL_CRYPTODEV_IN_FLIGHT such buffers */

extern const struct sl_aead_backend sl_aead_cryptodev; /* "cryptodev"; usable() once started */

/*
 * device: the name of a crypto device that EAL has, or devargs to probe it with ("crypto_aesni_mb0"). contexts: how many
 * will be created at most. Takes the device for itself. 0, or with the reason in *error: -ENODEV, -ENOTSUP (does not offer
 * the AEAD with 16 bytes of associated data), -EBUSY (fewer queue pairs than contexts), -ENOMEM, -EIO.
 */
int sl_aead_cryptodev_start(const char *device, unsigned contexts, const char **error) SL_MUST_CHECK;
void sl_aead_cryptodev_stop(void);
/* NULL when not started. */
const char *sl_aead_cryptodev_name(void);

enum sl_cryptodev_counter {
	SL_CRYPTODEV_ENQUEUED,
	SL_CRYPTODEV_AUTH_FAILED, /* the device says that the tag is wrong */
	SL_CRYPTODEV_ERROR,	  /* the device says something else */
	SL_CRYPTODEV_NO_SESSION,  /* none could be made for the key: libsodium did it */
	SL_CRYPTODEV_TIMEOUT,	  /* not given back, or not taken, for a second: libsodium did it */
	SL_CRYPTODEV_GIVEN_UP,	  /* contexts (one a worker, one of control) that do without the device since */
	SL_CRYPTODEV_BY_SOFTWARE, /* packets that the engine "auto" did for those */
	SL_CRYPTODEV_COUNTERS,
};
const char *sl_cryptodev_counter_name(enum sl_cryptodev_counter c);
/* Of all contexts since start; any thread, relaxed. */
uint64_t sl_cryptodev_counter(enum sl_cryptodev_counter c);

#ifdef __cplusplus
}
#endif
#endif
