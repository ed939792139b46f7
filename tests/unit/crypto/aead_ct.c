/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Constant time, as far as valgrind can see it: keys and texts are declared uninitialised, and
 * memcheck reports every branch and every address that depends on them. Run by valgrind, which
 * knows AVX2 but not AVX-512: so this is the AVX2 engine. Sealing only: that opening ends by asking
 * whether the tag was right is meant.
 *
 * At the end it branches on a secret itself: the check can fail.
 */
#include "aead_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <valgrind/memcheck.h>

#define PACKETS 21u
#define TEXT_MAX 700u

struct packet {
	uint8_t key[SL_AEAD_KEY_BYTES];
	uint8_t aad[SL_AEAD_AAD_BYTES], text[TEXT_MAX + SL_AEAD_TAG_BYTES];
};

int main(void)
{
	struct packet *p = calloc(PACKETS, sizeof(*p));
	struct sl_aead_ctx *ctx = sl_aead_avx2.create(PACKETS);
	struct sl_aead_op ops[PACKETS];
	unsigned long errors, more;

	if (!RUNNING_ON_VALGRIND) {
		puts("1..0 # skip not run by valgrind");
		return 0;
	}
	if (!p || !ctx)
		return 1;
	for (uint32_t i = 0; i < PACKETS; i++) {
		ops[i] = (struct sl_aead_op){
			.text = p[i].text,
			.aad = p[i].aad,
			.key = p[i].key,
			.counter = i,
			.text_len = i * i * 7 % TEXT_MAX,
		};
		VALGRIND_MAKE_MEM_UNDEFINED(p[i].key, sizeof(p[i].key));
		VALGRIND_MAKE_MEM_UNDEFINED(p[i].text, ops[i].text_len);
	}
	sl_aead_avx2.seal(ctx, ops, PACKETS);
	errors = VALGRIND_COUNT_ERRORS;
	printf("%s 1 - no branch and no address depends on a key or text\n",
		errors ? "not ok" : "ok");
	if (p[0].key[0] == 1)
		puts("# a key of zeros begins with 1");
	more = VALGRIND_COUNT_ERRORS;
	printf("%s 2 - one that does is seen\n1..2\n", more > errors ? "ok" : "not ok");
	sl_aead_avx2.destroy(ctx);
	free(p);
	return errors != 0 || more == errors;
}
