// SPDX-License-Identifier: BSD-3-Clause
// Hands the C cases of sl_test.h to Google Test.
#include "sl_test.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

namespace {

sl_test_case *cases;
uint64_t seed;
uint64_t state[4];

uint64_t splitmix(uint64_t &x)
{
	uint64_t z = (x += 0x9e3779b97f4a7c15ull);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

void reseed()
{
	uint64_t x = seed;
	for (auto &s : state)
		s = splitmix(x);
}

class CCase : public testing::Test {
public:
	explicit CCase(const sl_test_case *c) : c_(c) {}
	void TestBody() override
	{
		reseed();
		c_->run();
		if (HasFailure())
			std::fprintf(stderr, "seed of this run: SL_TEST_SEED=%" PRIu64 "\n", seed);
	}

private:
	const sl_test_case *c_;
};

} // namespace

extern "C" {

void sl_test_register(sl_test_case *c)
{
	c->next = cases;
	cases = c;
}

void sl_test_fail(const char *file, int line, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	std::vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	ADD_FAILURE_AT(file, line) << text;
}

void sl_test_skip(const char *file, int line, const char *why)
{
	(void)file;
	(void)line;
	[&] { GTEST_SKIP() << why; }();
}

bool sl_test_failed(void) { return testing::Test::HasFailure(); }
uint64_t sl_test_seed(void) { return seed; }

uint64_t sl_test_rand(void)
{
	auto rotl = [](uint64_t x, int k) { return (x << k) | (x >> (64 - k)); };
	const uint64_t result = rotl(state[1] * 5, 7) * 9, t = state[1] << 17;

	state[2] ^= state[0];
	state[3] ^= state[1];
	state[1] ^= state[2];
	state[0] ^= state[3];
	state[2] ^= t;
	state[3] = rotl(state[3], 45);
	return result;
}

void sl_test_rand_bytes(void *buf, size_t len)
{
	auto *p = static_cast<uint8_t *>(buf);

	while (len) {
		uint64_t r = sl_test_rand();
		size_t n = len < 8 ? len : 8;
		std::memcpy(p, &r, n);
		p += n;
		len -= n;
	}
}

void sl_test_unhex(void *out, size_t len, const char *hex)
{
	auto *p = static_cast<uint8_t *>(out);
	size_t n = 0;
	int high = -1;

	for (; *hex; hex++) {
		const char c = *hex;
		int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
			: c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
		if (v < 0)
			continue;
		if (high < 0) {
			high = v;
		} else {
			if (n < len)
				p[n] = static_cast<uint8_t>(high << 4 | v);
			n++;
			high = -1;
		}
	}
	if (n != len || high >= 0)
		ADD_FAILURE() << "hex text holds " << n << " bytes, wanted " << len;
}

bool sl_test_mem_equal(const char *file, int line, const char *what, const void *got, const void *want, size_t len)
{
	auto hex = [](const uint8_t *p, size_t n) {
		std::string s;
		char b[3];
		for (size_t i = 0; i < n && i < 96; i++) {
			std::snprintf(b, sizeof b, "%02x", p[i]);
			s += b;
		}
		return n > 96 ? s + "..." : s;
	};

	if (std::memcmp(got, want, len) == 0)
		return true;
	ADD_FAILURE_AT(file, line) << what << " differs\n  got  " << hex(static_cast<const uint8_t *>(got), len)
				   << "\n  want " << hex(static_cast<const uint8_t *>(want), len);
	return false;
}

} // extern "C"

// A suite that needs something started once (EAL) defines these; the weak ones do nothing.
extern "C" __attribute__((weak)) int sl_test_setup(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 0;
}
extern "C" __attribute__((weak)) void sl_test_teardown(void) {}

int main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	const char *env = std::getenv("SL_TEST_SEED");
	seed = env ? std::strtoull(env, nullptr, 0)
		   : static_cast<uint64_t>(std::time(nullptr)) * 1000003u ^ static_cast<uint64_t>(getpid());
	std::printf("seed %" PRIu64 "\n", seed);
	for (sl_test_case *c = cases; c; c = c->next)
		testing::RegisterTest(c->suite, c->name, nullptr, nullptr, c->file, c->line,
			[c]() -> testing::Test * { return new CCase(c); });
	if (sl_test_setup(argc, argv) != 0)
		return 1;
	int rc = RUN_ALL_TESTS();
	sl_test_teardown();
	return rc;
}
