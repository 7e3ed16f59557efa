/*
 * CRC-32 of IEEE 802.3. Processors with carry-less multiplication compute it ten times as fast as tables (Gopal,
 * Ozturk and others: "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction"). ARM has an
 * instruction for it.
 */
#include "soft/wire/datagram.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

/* The table is linear in its index, so the eight values at powers of two make all of it. */
#define AT(n, a, b, c, d, e, f, g, h)                                                              \
	(((n) & 1 ? a : 0u) ^ ((n) & 2 ? b : 0u) ^ ((n) & 4 ? c : 0u) ^ ((n) & 8 ? d : 0u) ^       \
	 ((n) & 16 ? e : 0u) ^ ((n) & 32 ? f : 0u) ^ ((n) & 64 ? g : 0u) ^ ((n) & 128 ? h : 0u))
#define AT4(n, ...)                                                                                \
	AT(n, __VA_ARGS__), AT((n) + 1, __VA_ARGS__), AT((n) + 2, __VA_ARGS__),                    \
		AT((n) + 3, __VA_ARGS__)
#define AT16(n, ...)                                                                               \
	AT4(n, __VA_ARGS__), AT4((n) + 4, __VA_ARGS__), AT4((n) + 8, __VA_ARGS__),                 \
		AT4((n) + 12, __VA_ARGS__)
#define AT64(n, ...)                                                                               \
	AT16(n, __VA_ARGS__), AT16((n) + 16, __VA_ARGS__), AT16((n) + 32, __VA_ARGS__),            \
		AT16((n) + 48, __VA_ARGS__)
#define TABLE(...)                                                                                 \
	AT64(0, __VA_ARGS__), AT64(64, __VA_ARGS__), AT64(128, __VA_ARGS__), AT64(192, __VA_ARGS__)

/* Eight bytes at a time: table k is for a byte that k more bytes follow. */
static const uint32_t tables[8][256] = {
	{TABLE(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832,
	       0x1db71064, 0x3b6e20c8, 0x76dc4190, 0xedb88320)},
	{TABLE(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08,
	       0x4ac21251, 0x958424a2, 0xf0794f05, 0x3b83984b)},
	{TABLE(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8,
	       0x1c26a370, 0x384d46e0, 0x709a8dc0, 0xe1351b80)},
	{TABLE(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef,
	       0x5019579f, 0xa032af3e, 0x9b14583d, 0xed59b63b)},
	{TABLE(0x3d6029b0, 0x7ac05360, 0xf580a6c0, 0x30704bc1,
	       0x60e09782, 0xc1c12f04, 0x58f35849, 0xb1e6b092)},
	{TABLE(0xcb5cd3a5, 0x4dc8a10b, 0x9b914216, 0xec53826d,
	       0x03d6029b, 0x07ac0536, 0x0f580a6c, 0x1eb014d8)},
	{TABLE(0xa6770bb4, 0x979f1129, 0xf44f2413, 0x33ef4e67,
	       0x67de9cce, 0xcfbd399c, 0x440b7579, 0x8816eaf2)},
	{TABLE(0xccaa009e, 0x4225077d, 0x844a0efa, 0xd3e51bb5,
	       0x7cbb312b, 0xf9766256, 0x299dc2ed, 0x533b85da)},
};

static uint32_t little_endian(const uint8_t *bytes)
{
	return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

static uint32_t by_tables(uint32_t state, const uint8_t *bytes, size_t length)
{
	for (; length >= 8; length -= 8, bytes += 8) {
		uint32_t low = state ^ little_endian(bytes), high = little_endian(bytes + 4);

		state = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^
			tables[5][low >> 16 & 0xff] ^ tables[4][low >> 24] ^ tables[3][high & 0xff] ^
			tables[2][high >> 8 & 0xff] ^ tables[1][high >> 16 & 0xff] ^
			tables[0][high >> 24];
	}
	while (length--)
		state = state >> 8 ^ tables[0][(state ^ *bytes++) & 0xff];
	return state;
}

/* Shorter input is done before multiplication would have started. */
#define WORTH_WHILE 32

#if defined(__x86_64__)

#define FAST_TARGET target("pclmul,sse4.1")
#define FAST __attribute__((FAST_TARGET, always_inline))

/* Multiply both halves of the sum by powers, which moves it over the next bytes, and add these. */
FAST static inline __m128i fold(__m128i sum, __m128i powers, __m128i next)
{
	__m128i low = _mm_clmulepi64_si128(sum, powers, 0x00), high = _mm_clmulepi64_si128(sum, powers, 0x11);

	return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

FAST static inline __m128i load(const uint8_t *bytes)
{
	return _mm_loadu_si128((const __m128i *)(const void *)bytes);
}

/* Reduce 128 bits to 32: by x^64, by x^32, and the rest by the inverse of the polynomial (Barrett). */
FAST static inline uint32_t reduce(__m128i sum)
{
	const __m128i powers = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0), last = _mm_set_epi64x(0, 0x163cd6124);
	const __m128i barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641), mask = _mm_setr_epi32(~0, 0, ~0, 0);
	__m128i part;

	part = _mm_clmulepi64_si128(sum, powers, 0x10);
	sum = _mm_xor_si128(_mm_srli_si128(sum, 8), part);
	part = _mm_srli_si128(sum, 4);
	sum = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(sum, mask), last, 0x00), part);
	part = _mm_clmulepi64_si128(_mm_and_si128(sum, mask), barrett, 0x10);
	part = _mm_clmulepi64_si128(_mm_and_si128(part, mask), barrett, 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(sum, part), 1);
}

/* Powers that move a sum over that many bytes. */
#define BY_16 0x0ccaa009e, 0x1751997d0
#define BY_64 0x1c6e41596, 0x154442bd4
#define BY_256 0x1322d1430, 0x11542778a

/* Continue the sum over more bytes, a multiple of 16. */
FAST static inline uint32_t finish(__m128i sum, const uint8_t *bytes, size_t length)
{
	for (; length; bytes += 16, length -= 16)
		sum = fold(sum, _mm_set_epi64x(BY_16), load(bytes));
	return reduce(sum);
}

/* Newer processors multiply four times as much at once. */
#define WIDE_TARGET target("pclmul,sse4.1,avx512f,avx512dq,vpclmulqdq")
#define WIDE __attribute__((WIDE_TARGET, always_inline))
#define WIDE_MIN 512

WIDE static inline __m512i fold_wide(__m512i sum, __m512i powers, __m512i next)
{
	__m512i low = _mm512_clmulepi64_epi128(sum, powers, 0x00), high = _mm512_clmulepi64_epi128(sum, powers, 0x11);

	return _mm512_ternarylogic_epi64(low, high, next, 0x96); /* exclusive or of all three */
}

WIDE static inline __m512i four_of(long long high, long long low)
{
	return _mm512_set_epi64(high, low, high, low, high, low, high, low);
}

/* Load 64 bytes, and store them at that offset of to unless it is NULL. */
WIDE static inline __m512i load_wide(const uint8_t *bytes, uint8_t *to, size_t offset)
{
	__m512i loaded = _mm512_loadu_si512(bytes + offset);

	if (to)
		_mm512_storeu_si512(to + offset, loaded);
	return loaded;
}

/* Sum a multiple of 256 bytes into 64. */
WIDE static inline __m512i sum_wide(uint32_t state, const uint8_t *bytes, uint8_t *to, size_t length)
{
	const __m512i by_256 = four_of(BY_256), by_64 = four_of(BY_64);
	__m512i a = load_wide(bytes, to, 0), b = load_wide(bytes, to, 64), c = load_wide(bytes, to, 128);
	__m512i d = load_wide(bytes, to, 192);

	a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state)));
	for (size_t offset = 256; offset < length; offset += 256) {
		a = fold_wide(a, by_256, load_wide(bytes, to, offset));
		b = fold_wide(b, by_256, load_wide(bytes, to, offset + 64));
		c = fold_wide(c, by_256, load_wide(bytes, to, offset + 128));
		d = fold_wide(d, by_256, load_wide(bytes, to, offset + 192));
	}
	return fold_wide(fold_wide(fold_wide(a, by_64, b), by_64, c), by_64, d);
}

WIDE static inline __m128i narrow(__m512i sum)
{
	const __m128i by_16 = _mm_set_epi64x(BY_16);
	__m128i narrow = fold(_mm512_castsi512_si128(sum), by_16, _mm512_extracti64x2_epi64(sum, 1));

	narrow = fold(narrow, by_16, _mm512_extracti64x2_epi64(sum, 2));
	return fold(narrow, by_16, _mm512_extracti64x2_epi64(sum, 3));
}

/* These functions call only functions of their kind: other code is slow while the wide registers are in use. */
__attribute__((WIDE_TARGET)) static uint32_t by_multiplying_wide(uint32_t state, const uint8_t *bytes, size_t length)
{
	size_t most = length & ~(size_t)255;

	return finish(narrow(sum_wide(state, bytes, NULL, most)), bytes + most, length - most);
}

__attribute__((WIDE_TARGET)) static uint32_t copy_wide(uint32_t state, uint8_t *to, const uint8_t *bytes, size_t length)
{
	return reduce(narrow(sum_wide(state, bytes, to, length)));
}

static bool can_be_wide(void)
{
	return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512dq");
}

/* Sum a multiple of 16 bytes. Long input has four sums, each over every fourth 16 bytes. */
__attribute__((FAST_TARGET)) static uint32_t by_multiplying(uint32_t state, const uint8_t *bytes, size_t length)
{
	const __m128i by_64 = _mm_set_epi64x(BY_64), by_16 = _mm_set_epi64x(BY_16);
	__m128i a;

	if (length >= WIDE_MIN && can_be_wide())
		return by_multiplying_wide(state, bytes, length);
	a = _mm_xor_si128(load(bytes), _mm_cvtsi32_si128((int)state));
	if (length >= 128) {
		__m128i b = load(bytes + 16), c = load(bytes + 32), d = load(bytes + 48);

		for (bytes += 64, length -= 64; length >= 64; bytes += 64, length -= 64) {
			a = fold(a, by_64, load(bytes));
			b = fold(b, by_64, load(bytes + 16));
			c = fold(c, by_64, load(bytes + 32));
			d = fold(d, by_64, load(bytes + 48));
		}
		a = fold(fold(fold(a, by_16, b), by_16, c), by_16, d);
	} else {
		bytes += 16;
		length -= 16;
	}
	return finish(a, bytes, length);
}

/*
 * QEMU without KVM, which identifies itself as a hypervisor, multiplies bit by bit: tables are four times as fast
 * there.
 */
static bool is_emulated(void)
{
	uint32_t most, name[3];

	__cpuid(0x40000000, most, name[0], name[1], name[2]);
	(void)most;
	return !memcmp(name, "TCGTCGTCGTCG", sizeof(name));
}

static bool can_be_fast(void)
{
	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1") && !is_emulated();
}

#elif defined(__aarch64__)

#define HAS_CRC32 (1ul << 7) /* HWCAP_CRC32 of asm/hwcap.h */

__attribute__((target("+crc"))) static uint32_t by_multiplying(uint32_t state, const uint8_t *bytes, size_t length)
{
	for (; length; bytes += 8, length -= 8) {
		uint64_t word;

		memcpy(&word, bytes, sizeof(word));
		state = __crc32d(state, word);
	}
	return state;
}

static bool can_be_fast(void)
{
	return getauxval(AT_HWCAP) & HAS_CRC32;
}

#else

static uint32_t by_multiplying(uint32_t state, const uint8_t *bytes, size_t length)
{
	return by_tables(state, bytes, length);
}

static bool can_be_fast(void)
{
	return false;
}

#endif

/* Asking the processor may take longer than a sum, so the answer is stored. */
static bool is_fast(void)
{
	static _Atomic enum { NOT_ASKED, BY_TABLES, BY_MULTIPLYING } answer;
	int known = atomic_load_explicit(&answer, memory_order_relaxed);

	if (known == NOT_ASKED) {
		known = can_be_fast() ? BY_MULTIPLYING : BY_TABLES;
		atomic_store_explicit(&answer, known, memory_order_relaxed);
	}
	return known == BY_MULTIPLYING;
}

uint32_t soft_crc32(uint32_t state, const uint8_t *bytes, size_t length)
{
	size_t whole = length & ~(size_t)15;

	if (length < WORTH_WHILE || !is_fast())
		return by_tables(state, bytes, length);
	return by_tables(by_multiplying(state, bytes, whole), bytes + whole, length - whole);
}

uint32_t soft_crc32_copy(uint32_t state, uint8_t *to, const uint8_t *from, size_t length)
{
#if defined(__x86_64__)
	if (length >= WIDE_MIN && can_be_wide() && is_fast()) {
		size_t most = length & ~(size_t)255;

		state = copy_wide(state, to, from, most);
		to += most;
		from += most;
		length -= most;
	}
#endif
	memcpy(to, from, length);
	return soft_crc32(state, to, length);
}
