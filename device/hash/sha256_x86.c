/*
 * SHA-256 by the instructions that x86-64 processors have for it: AMD's since 2017, Intel's since
 * 2019. A model's file of 1.1 MB, one core of an AMD EPYC (Zen 5): 71 million instructions, then 4.
 *
 * Source: Gulley, Gopal, Yap, Feghali, Guilford, Wolrich, "Intel SHA Extensions", 2013: the state
 *     in the order ABEF and CDGH, four rounds an iteration.
 */
#include "sha256_internal.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

bool cornu__sha256_x86(void)
{
    enum { SSSE3 = 1 << 9, SSE41 = 1 << 19, SHA = 1 << 29, BASIC = 1, EXTENDED = 7 };
    unsigned a, b, c, d;
    if (!__get_cpuid(BASIC, &a, &b, &c, &d) || (c & (SSSE3 | SSE41)) != (SSSE3 | SSE41))
        return false;
    return __get_cpuid_count(EXTENDED, 0, &a, &b, &c, &d) && (b & SHA);
}

/* The next four words of the schedule from the last sixteen, of which w[i % 4] are the oldest. */
__attribute__((target("sha,ssse3,sse4.1")))
static __m128i next_words(const __m128i w[4], int i)
{
    const __m128i oldest = w[i % 4], last = w[(i + 3) % 4];
    const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(oldest, w[(i + 1) % 4]),
                                      _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
    return _mm_sha256msg2_epu32(sum, last);
}

__attribute__((target("sha,ssse3,sse4.1")))
void cornu__sha256_blocks_x86(uint32_t state[8], const unsigned char *block, size_t count)
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i dcba = _mm_loadu_si128((const __m128i *)(const void *)state);
    const __m128i hgfe = _mm_loadu_si128((const __m128i *)(const void *)(state + 4));
    const __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    for (; count > 0; count--, block += CORNU__SHA256_BLOCK) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i       w[4];
        for (int i = 0; i < 16; i++) {
            const void *at = block + 16 * i, *k = cornu__sha256_constants + 4 * i;
            w[i % 4] = i < 4 ? _mm_shuffle_epi8(_mm_loadu_si128(at), big_endian)
                             : next_words(w, i);
            const __m128i term = _mm_add_epi32(w[i % 4], _mm_loadu_si128(k));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, term);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(term, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool cornu__sha256_x86(void) { return false; }

void cornu__sha256_blocks_x86(uint32_t state[8], const unsigned char *block, size_t count)
{
    cornu__sha256_blocks(state, block, count);
}

#endif
