/*
 * Packing of bf16 for sums over positions; images.h says what each does.
 *
 * Reference: device/ops/conv2d.c, as tests/device/host/kernels/test_kernels.c compares it.
 * Source: own.
 * Gain: software prefetch made the kernels that use this 2 to 10 % slower.
 */
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "images.h"
#include "per_isa.h"

enum {
    VECTOR = 16,   /* pairs of a register                    */
    BLOCK = 32,    /* elements that are a line of each image */
    NEAR = 8       /* positions of two images at once        */
};

static __mmask32 first(int64_t count)
{
    return count >= BLOCK ? 0xffffffff : ((__mmask32)1 << (count > 0 ? count : 0)) - 1;
}

/* Lane l of four has element 8 l + r of the images, 8 elements of each. */
static inline __m512i gather_rows(const uint16_t (*rows)[BLOCK], int e, int r)
{
    __m512i x = _mm512_castsi128_si512(_mm_load_si128((const void *)(rows[r] + e)));
    x = _mm512_inserti32x4(x, _mm_load_si128((const void *)(rows[8 + r] + e)), 1);
    x = _mm512_inserti32x4(x, _mm_load_si128((const void *)(rows[16 + r] + e)), 2);
    return _mm512_inserti32x4(x, _mm_load_si128((const void *)(rows[24 + r] + e)), 3);
}

/* Elements e to e + 8 of 32 rows: an 8 by 8 transposition in each lane of four. */
static inline void turn_eight(const uint16_t (*rows)[BLOCK], int e, __m512i y[8])
{
    __m512i a[8], b[8];
    for (int r = 0; r < 8; r += 2) {
        const __m512i x = gather_rows(rows, e, r), next = gather_rows(rows, e, r + 1);
        a[r] = _mm512_unpacklo_epi16(x, next);
        a[r + 1] = _mm512_unpackhi_epi16(x, next);
    }
    for (int r = 0; r < 8; r += 4)
        for (int k = 0; k < 2; k++) {
            b[r + 2 * k] = _mm512_unpacklo_epi32(a[r + k], a[r + 2 + k]);
            b[r + 2 * k + 1] = _mm512_unpackhi_epi32(a[r + k], a[r + 2 + k]);
        }
    for (int k = 0; k < 4; k++) {
        y[2 * k] = _mm512_unpacklo_epi64(b[k], b[4 + k]);
        y[2 * k + 1] = _mm512_unpackhi_epi64(b[k], b[4 + k]);
    }
}

/* Lines of the images are copied first: images that are a power of two apart share a set of the
 * first-level cache, from which a line would be gone before all of it is read. */
static void turn(const uint16_t *const *from, int64_t count, uint16_t *to)
{
    _Alignas(64) uint16_t rows[CORNU_IMAGES][BLOCK];
    for (int64_t e = 0; e < count; e += BLOCK, to += BLOCK * CORNU_IMAGES) {
        const int64_t left = count - e;
        for (int i = 0; i < CORNU_IMAGES; i++) {
            const __m512i row = from[i] ? _mm512_maskz_loadu_epi16(first(left), from[i] + e)
                                        : _mm512_setzero_si512();
            _mm512_store_si512(rows[i], row);
        }
        for (int k = 0; k < BLOCK && k < left; k += 8) {
            __m512i y[8];
            turn_eight((const uint16_t (*)[BLOCK])rows, k, y);
            if (left - k >= 8)
                for (int c = 0; c < 8; c++)
                    _mm512_storeu_si512(to + (k + c) * CORNU_IMAGES, y[c]);
            else
                for (int c = 0; c < left - k; c++)
                    _mm512_storeu_si512(to + (k + c) * CORNU_IMAGES, y[c]);
        }
    }
}

/* Up to 16 elements from `at` on as words, zeros of no image. */
static inline __m512i words_of(const uint16_t *x, int64_t at, __mmask16 some)
{
    return x ? _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, x + at))
             : _mm512_setzero_si512();
}

static inline __m512i words_of_bytes(const uint8_t *x, int64_t at, __mmask16 some)
{
    return x ? _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(some, x + at)) : _mm512_setzero_si512();
}

/* Pairs of two images' elements. */
static inline __m512i pairs_of(__m512i a, __m512i b)
{
    return _mm512_or_si512(a, _mm512_slli_epi32(b, 16));
}

/* Two images at so many positions, of a width that the compiler knows where they are `whole`. */
static inline void pair_two(const CornuImagePanel *panel, const uint16_t *a, const uint16_t *b,
                            int64_t positions, int64_t width, bool whole, uint16_t *to)
{
    for (int64_t p = 0, at = 0; p < positions; p++, at += panel->step) {
        for (int64_t n = 0; n < width; n += VECTOR) {
            const __mmask16 some = whole ? 0xffff : (__mmask16)first(panel->columns - n);
            _mm512_storeu_si512(to + p * CORNU_IMAGES * width + 2 * n,
                                pairs_of(words_of(a, at + n, some), words_of(b, at + n, some)));
        }
    }
}

static void pair(const CornuImagePanel *panel, uint16_t *to)
{
    const bool whole = panel->columns == panel->width;
    for (int64_t p = 0; p < panel->positions; p += NEAR)
        for (int i = 0; i < CORNU_IMAGES; i += 2) {
            const uint16_t *a = panel->from[i], *b = panel->from[i + 1];
            const int64_t   left = panel->positions - p, count = left < NEAR ? left : NEAR;
            const int64_t   at = p * panel->step;
            uint16_t       *row = to + (p * CORNU_IMAGES + i) * panel->width;
            if (a) a += at;
            if (b) b += at;
            if (a && b && whole && panel->width == VECTOR)
                pair_two(panel, a, b, count, VECTOR, true, row);
            else if (a && b && whole) pair_two(panel, a, b, count, 2 * VECTOR, true, row);
            else pair_two(panel, a, b, count, panel->width, false, row);
        }
}

/* The values of windows that have it in element `index`. */
static inline void store_element(uint16_t *to, __m512i values, __m512i where, short index)
{
    const __mmask32 here = _mm512_cmpeq_epi16_mask(where, _mm512_set1_epi16(index));
    _mm512_storeu_si512(to, _mm512_maskz_mov_epi16(here, values));
}

static bool pair_windows(const CornuImagePanel *panel, uint16_t *upper, uint16_t *lower)
{
    const int64_t column = CORNU_IMAGES * panel->width;
    __m512i       all = _mm512_setzero_si512();
    for (int64_t p = 0; p + 2 <= panel->positions; p += 2, upper += column, lower += column)
        for (int i = 0; i < CORNU_IMAGES; i += 2) {
            const uint16_t *a = panel->from[i], *b = panel->from[i + 1];
            const int64_t   at = p / 2 * panel->step;
            for (int64_t n = 0; n < panel->width; n += VECTOR) {
                const __mmask16 some = (__mmask16)first(panel->columns - n);
                const __m512i   values = pairs_of(words_of(a, at + n, some),
                                                  words_of(b, at + n, some));
                const __m512i   where = pairs_of(words_of_bytes(panel->index[i], at + n, some),
                                                 words_of_bytes(panel->index[i + 1], at + n, some));
                all = _mm512_or_si512(all, where);
                store_element(upper, values, where, 0);
                store_element(upper + column, values, where, 1);
                store_element(lower, values, where, 2);
                store_element(lower + column, values, where, 3);
                upper += 2 * VECTOR;
                lower += 2 * VECTOR;
            }
        }
    if (panel->positions % 2) {
        memset(upper, 0, (size_t)column * sizeof *upper);
        memset(lower, 0, (size_t)column * sizeof *lower);
    }
    return _mm512_cmpgt_epu16_mask(all, _mm512_set1_epi16(3)) == 0;
}

const CornuImagePacks CORNU__PER_ISA(cornu__image_packs) = { turn, pair, pair_windows };
