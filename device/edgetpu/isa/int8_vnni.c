/*
 * Products of int8 by AVX-512 VNNI: vpdpbusd adds four products of u8 and i8 to each of 16 sums
 * without saturation. Depthwise convolutions have one product for each tap and channel, so the
 * bytes of four taps are interleaved first.
 *
 * Reference: reference.c; tests/device/edgetpu/test_products.c compares them.
 * Source: "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2, VPDPBUSD.
 * Gain: tests/bench/RESULTS.md.
 */
#include "loops_internal.h"

/* _mm512_dpbusd_epi32, as gcc 12 copies the sums of a tile from register to register otherwise. */
INLINE void add_products(__m512i *sum, __m512i x, __m512i filter)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(x), "v"(filter));
}

INLINE __m512i larger(__m512i a, __m512i b) { return _mm512_max_epi32(a, b); }

INLINE void finish_panel(const CornuInt8Tile *tile, const Scale *scale, bool positive, int rows,
                         int panels, int panel, const __m512i *sum)
{
    const int first = panel * CORNU_INT8_COLUMNS, left = tile->columns - first;
    int8_t   *y = tile->y + first;
    Scale     by = *scale;
    by.positive = positive, by.shrinks = true;   /* constants */
    UNROLL for (int m = 0; m < rows; m++, y += tile->y_stride)
        store_first(y, left < CORNU_INT8_COLUMNS ? left : CORNU_INT8_COLUMNS,
                    finished(&by, sum[m * panels + panel]));
}

INLINE void keep_panel(const CornuInt8Tile *tile, int rows, int panels, int panel,
                       const __m512i *sum)
{
    const int       first = panel * CORNU_INT8_COLUMNS, left = tile->columns - first;
    const __mmask16 some = (__mmask16)(left < CORNU_INT8_COLUMNS ? (1u << left) - 1 : 0xffff);
    const __m512i   zero = _mm512_loadu_si512(tile->zeros + first);
    int32_t        *y = tile->sums + first;
    UNROLL for (int m = 0; m < rows; m++, y += tile->y_stride) {
        __m512i to = sum[m * panels + panel];
        if (tile->totals)
            to = _mm512_sub_epi32(to, _mm512_mullo_epi32(zero,
                                                         _mm512_set1_epi32(tile->totals[m])));
        _mm512_mask_storeu_epi32(y, some, to);
    }
}

/* Finishes sums in registers if they are of the usual kind, which returns true, or stores them. */
INLINE bool finish_sums(const CornuInt8Tile *tile, int rows, int panels, const __m512i *sum,
                        int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    const CornuInt8Finish *f = &tile->finish;
    Scale                  by[2];
    if (tile->sums) {
        UNROLL for (int p = 0; p < panels; p++) keep_panel(tile, rows, panels, p, sum);
        return true;
    }
    bool                   usual = f->bounded && !f->factors;
    UNROLL for (int p = 0; p < panels && usual; p++) {
        by[p] = scale_of(f, p * CORNU_INT8_COLUMNS);
        usual = by[p].shrinks;
    }
    UNROLL for (int p = 0; p < panels && usual; p++) {
        if (by[p].positive) finish_panel(tile, &by[p], true, rows, panels, p, sum);
        else                finish_panel(tile, &by[p], false, rows, panels, p, sum);
    }
    if (usual) return true;
    UNROLL for (int i = 0; i < rows * panels; i++)
        _mm512_store_si512(sums[i / panels] + i % panels * CORNU_INT8_COLUMNS, sum[i]);
    return false;
}

/* Rows are addressed from every third, or second one of pooled tiles whose halves have 2 or 4. */
enum { THIRDS = CORNU_INT8_ROWS / 3 };

INLINE bool tile_sums(const CornuInt8Tile *tile, int rows, int panels, bool pooled,
                      int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    __m512i         sum[CORNU_INT8_ROWS * 2];
    const ptrdiff_t stride = tile->x_stride;
    const uint8_t  *panel[2] = { tile->panel[0], tile->panel[1] };
    const int       half = pooled ? rows / 2 : rows, run = half % 3 && pooled ? 2 : 3;
    UNROLL for (int i = 0; i < rows * panels; i++)
        sum[i] = _mm512_loadu_si512(tile->finish.bias + i % panels * CORNU_INT8_COLUMNS);
    for (int64_t s = 0; s < tile->segments; s++) {
        const uint8_t *x[THIRDS];
        UNROLL for (int t = 0; t * run < rows; t++)
            x[t] = tile->x + tile->offsets[s] + (t * run < half ? 0 : tile->half_stride) +
                   (t * run < half ? t * run : t * run - half) * stride;
        for (int64_t g = 0; g < tile->groups; g++) {
            __m512i filter[2];
            UNROLL for (int p = 0; p < panels; p++) {
                filter[p] = _mm512_loadu_si512(panel[p]);
                panel[p] += CORNU_INT8_PANEL;
            }
            UNROLL for (int i = 0; i < rows * panels; i++) {
                const uint8_t *at = x[i / panels / run] + i / panels % run * stride;
                add_products(&sum[i], _mm512_set1_epi32(group_of(at)), filter[i % panels]);
            }
            UNROLL for (int t = 0; t * run < rows; t++) x[t] += CORNU_INT8_GROUP;
        }
    }
    if (pooled)
        UNROLL for (int i = 0; i < rows / 4 * panels; i++) {
            const int at = i / panels * 2 * panels + i % panels, down = half * panels;
            sum[i] = larger(larger(sum[at], sum[at + panels]),
                            larger(sum[at + down], sum[at + down + panels]));
        }
    return finish_sums(tile, pooled ? rows / 4 : rows, panels, sum, sums);
}

INLINE bool panels_sums(const CornuInt8Tile *tile, int panels,
                        int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    switch (tile->rows) {
    case 1: return tile_sums(tile, 1, panels, false, sums);
    case 2: return tile_sums(tile, 2, panels, false, sums);
    case 3: return tile_sums(tile, 3, panels, false, sums);
    case 4: return tile_sums(tile, 4, panels, false, sums);
    case 5: return tile_sums(tile, 5, panels, false, sums);
    case 6: return tile_sums(tile, 6, panels, false, sums);
    case 7: return tile_sums(tile, 7, panels, false, sums);
    case 8: return tile_sums(tile, 8, panels, false, sums);
    case 9: return tile_sums(tile, 9, panels, false, sums);
    case 10: return tile_sums(tile, 10, panels, false, sums);
    case 11: return tile_sums(tile, 11, panels, false, sums);
    default: return tile_sums(tile, 12, panels, false, sums);
    }
}

INLINE bool pooled_sums(const CornuInt8Tile *tile, int panels,
                        int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    switch (tile->rows) {
    case 4: return tile_sums(tile, 4, panels, true, sums);
    case 8: return tile_sums(tile, 8, panels, true, sums);
    default: return tile_sums(tile, 12, panels, true, sums);
    }
}

static bool sums_of(const CornuInt8Tile *tile, int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    if (tile->pooled && tile->panels == 2) return pooled_sums(tile, 2, sums);
    if (tile->pooled)                      return pooled_sums(tile, 1, sums);
    if (tile->panels == 2)                 return panels_sums(tile, 2, sums);
    return panels_sums(tile, 1, sums);
}

/* ---- Depthwise ---- */

/* Of a few channels, two or four outputs share a register: each has a half or a quarter of it. */
typedef struct {
    const uint8_t *x[4];
    int8_t        *y[4];
} Shared;

INLINE __m512i load_shared(const Shared *of, int outputs, ptrdiff_t offset)
{
    if (outputs == 1) return _mm512_loadu_si512(of->x[0] + offset);
    if (outputs == 2)
        return _mm512_inserti64x4(
            _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(of->x[0] + offset))),
            _mm256_loadu_si256((const __m256i *)(of->x[1] + offset)), 1);
    __m512i all = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(of->x[0] + offset)));
    all = _mm512_inserti32x4(all, _mm_loadu_si128((const __m128i *)(of->x[1] + offset)), 1);
    all = _mm512_inserti32x4(all, _mm_loadu_si128((const __m128i *)(of->x[2] + offset)), 2);
    return _mm512_inserti32x4(all, _mm_loadu_si128((const __m128i *)(of->x[3] + offset)), 3);
}

INLINE void store_shared(const Shared *of, int outputs, int channels, __m512i bytes)
{
    const __mmask64 some = channels == CORNU_INT8_BLOCK ? ~UINT64_C(0)
                                                        : (UINT64_C(1) << channels) - 1;
    _mm512_mask_storeu_epi8(of->y[0], some, bytes);
    if (outputs == 2)
        _mm256_mask_storeu_epi8(of->y[1], (__mmask32)some, _mm512_extracti64x4_epi64(bytes, 1));
    if (outputs == 4) {
        _mm_mask_storeu_epi8(of->y[1], (__mmask16)some, _mm512_extracti32x4_epi32(bytes, 1));
        _mm_mask_storeu_epi8(of->y[2], (__mmask16)some, _mm512_extracti32x4_epi32(bytes, 2));
        _mm_mask_storeu_epi8(of->y[3], (__mmask16)some, _mm512_extracti32x4_epi32(bytes, 3));
    }
}

INLINE void add_taps(const CornuInt8Depthwise *tile, const Shared *of, int outputs, int64_t four,
                     __m512i sum[CORNU_INT8_TAPS])
{
    const ptrdiff_t *offsets = tile->offsets + four * CORNU_INT8_TAPS;
    const uint8_t   *filter = tile->filter + four * CORNU_INT8_TAPS * CORNU_INT8_BLOCK;
    const __m512i a = load_shared(of, outputs, offsets[0]);
    const __m512i b = load_shared(of, outputs, offsets[1]);
    const __m512i c = load_shared(of, outputs, offsets[2]);
    const __m512i d = load_shared(of, outputs, offsets[3]);
    const __m512i ab = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
    const __m512i cd = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
    const __m512i taps[] = { _mm512_unpacklo_epi16(ab, cd), _mm512_unpackhi_epi16(ab, cd),
                             _mm512_unpacklo_epi16(ab_high, cd_high),
                             _mm512_unpackhi_epi16(ab_high, cd_high) };
    UNROLL for (int q = 0; q < CORNU_INT8_TAPS; q++)
        sum[q] = _mm512_dpbusd_epi32(sum[q], taps[q],
                                     _mm512_loadu_si512(filter + q * CORNU_INT8_PANEL));
}

/* Saturating twice undoes the interleaving. */
INLINE __m512i block_of(const CornuInt8Depthwise *tile, const Scale scales[CORNU_INT8_TAPS],
                        bool positive, bool shrinks, const __m512i sum[CORNU_INT8_TAPS])
{
    __m512i to[CORNU_INT8_TAPS];
    UNROLL for (int q = 0; q < CORNU_INT8_TAPS; q++) {
        Scale by = scales[q];
        by.positive = positive, by.shrinks = shrinks;   /* constants */
        to[q] = rescaled(&by, sum[q]);
    }
    const __m512i bytes = _mm512_packs_epi16(_mm512_packs_epi32(to[0], to[1]),
                                             _mm512_packs_epi32(to[2], to[3]));
    return _mm512_min_epi8(_mm512_max_epi8(bytes, _mm512_set1_epi8((char)tile->finish.low)),
                           _mm512_set1_epi8((char)tile->finish.high));
}

static void store_unbounded(const CornuInt8Depthwise *tile, const __m512i sum[CORNU_INT8_TAPS],
                            int8_t *y)
{
    int32_t sums[CORNU_INT8_BLOCK];
    int8_t  bytes[CORNU_INT8_BLOCK];
    UNROLL for (int q = 0; q < CORNU_INT8_TAPS; q++)
        _mm512_storeu_si512(sums + q * LANES, sum[q]);
    finish_fixed(&tile->finish, CORNU_INT8_BLOCK, sums, bytes);
    for (int c = 0; c < tile->channels; c++) y[c] = bytes[cornu__int8_channel_at(true, c)];
}

INLINE void outputs_of(const CornuInt8Depthwise *tile, const Scale scales[CORNU_INT8_TAPS],
                       int shared, int64_t fours, bool bounded, bool positive, bool shrinks)
{
    const int64_t last = tile->outputs - 1;
    for (int64_t o = 0; o <= last; o += shared) {
        Shared  of;
        __m512i sum[CORNU_INT8_TAPS];
        UNROLL for (int i = 0; i < shared; i++) {   /* past the last one, that again */
            const int64_t at = o + i < last ? o + i : last;
            of.x[i] = tile->x + at * tile->x_stride;
            of.y[i] = tile->y + at * tile->y_stride;
        }
        UNROLL for (int q = 0; q < CORNU_INT8_TAPS; q++)
            sum[q] = _mm512_loadu_si512(tile->finish.bias + q * LANES);
        for (int64_t four = 0; four < fours; four++) add_taps(tile, &of, shared, four, sum);
        if (bounded)
            store_shared(&of, shared, tile->channels,
                         block_of(tile, scales, positive, shrinks, sum));
        else
            store_unbounded(tile, sum, of.y[0]);
    }
}

/* The usual kind of sums. */
INLINE void usual_outputs(const CornuInt8Depthwise *tile, const Scale scales[CORNU_INT8_TAPS],
                          int64_t fours, bool positive)
{
    switch (CORNU_INT8_BLOCK / cornu__int8_span(true, tile->channels)) {
    case 1: outputs_of(tile, scales, 1, fours, true, positive, true); break;
    case 2: outputs_of(tile, scales, 2, fours, true, positive, true); break;
    default: outputs_of(tile, scales, 4, fours, true, positive, true);
    }
}

static void raise(int64_t count, const int8_t *restrict x, void *restrict to)
{
    uint8_t *y = to;
    SIMD for (int64_t c = 0; c < count; c++) y[c] = (uint8_t)(x[c] ^ -128);
}

/* Three fours are a window of 3 x 3. */
static void depthwise(const CornuInt8Depthwise *tile)
{
    const CornuInt8Finish *f = &tile->finish;
    const int64_t          fours = (tile->taps + CORNU_INT8_TAPS - 1) / CORNU_INT8_TAPS;
    Scale                  scales[CORNU_INT8_TAPS];
    bool                   shrinks = true;
    for (int q = 0; q < CORNU_INT8_TAPS; q++) {
        scales[q] = scale_of(f, q * LANES);
        shrinks = shrinks && scales[q].shrinks;
    }
    if (!f->bounded)                outputs_of(tile, scales, 1, fours, false, false, false);
    else if (!shrinks)              outputs_of(tile, scales, 1, fours, true, false, false);
    else if (!scales[0].positive)   usual_outputs(tile, scales, fours, false);
    else if (fours == 3)            usual_outputs(tile, scales, 3, true);
    else                            usual_outputs(tile, scales, fours, true);
}

const CornuInt8Loops CORNU__PER_ISA(cornu__int8_loops) = {
    1, true, product, depthwise, add, multiply, finish, accumulate, maximum, raise,
    total
};
