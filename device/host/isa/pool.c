/*
 * Pooling by vectors over the channels; pool.h says what each function computes.
 *
 * Reference: device/ops/pool.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own.
 * Gain: AVX2 stores indices a register at a time, max pooling of 2 x 2, ns per input, Zen 4: 32
 *     channels 0.183, then 0.087; 64 channels 0.162, then 0.072.
 */
#include "../../inference_internal.h"
#include "pool.h"
#include "lanes.h"

/* The taps [from, to) of output o that meet x, and the row that tap 0 meets, or would meet. */
typedef struct {
    int64_t from, to, origin;
} Reach;

static Reach reach(const CornuSweep *sweep, int64_t o)
{
    const int64_t origin = o * sweep->stride - sweep->low;
    return (Reach){ origin < 0 ? -origin : 0,
                    sweep->in - origin < sweep->size ? sweep->in - origin : sweep->size, origin };
}

/* As a loop: gcc 12 converts vectors of its own type lane by lane. */
INLINE Mask widen(const uint8_t *from)
{
    int32_t lanes[LANES];
    for (int c = 0; c < LANES; c++) lanes[c] = from[c];
    Mask value;
    memcpy(&value, lanes, sizeof value);
    return value;
}

/* Up to LANES elements of x, which is bf16 if narrow, else f32. */
INLINE Lanes load_x(const void *x, int64_t at, bool narrow, int64_t count)
{
    return narrow ? load_narrow((const uint16_t *)x + at, count)
                  : load_some((const float *)x + at, count);
}

/* One window, up to LANES channels. Tap (0, 0) is, or would be, at element `at` of x. */
INLINE void max_window(const void *x, bool narrow, int64_t at, int64_t row, int64_t column, Reach u,
                       Reach v, int64_t taps, float *y, uint8_t *index, int64_t count)
{
    Lanes best = load_x(x, at + u.from * row + v.from * column, narrow, count);
    Mask  where = (Mask){ 0 } + (int32_t)(u.from * taps + v.from);
    for (int64_t i = u.from; i < u.to; i++)
        for (int64_t j = v.from; j < v.to; j++) {
            const Lanes value = load_x(x, at + i * row + j * column, narrow, count);
            /* larger, or the first NaN */
            const Mask take = ~(value <= best) & (best == best);
            best = choose(take, value, best);
            where = (take & (int32_t)(i * taps + j)) | (~take & where);
        }
    store_some(y, best, count);
    store_bytes_some(index, (Bits)where, count < LANES ? (int)count : LANES);
}

INLINE void max_row(const CornuPool *pool, int64_t i, const void *x, bool narrow, float *y,
                    uint8_t *index)
{
    const int64_t C = pool->channels, row = pool->width.in * C, taps = pool->width.size;
    const Reach   u = reach(&pool->height, i);
    for (int64_t j = 0; j < pool->width.out; j++, y += C, index += C) {
        const Reach   v = reach(&pool->width, j);
        const int64_t window = u.origin * row + v.origin * C;
        const bool    two_by_two = taps == 2 && u.from == 0 && u.to == 2 && v.from == 0 &&
                                v.to == 2;
        int64_t       c = 0;
        for (; c + LANES <= C && two_by_two; c += LANES)
            max_window(x, narrow, window + c, row, C, (Reach){ 0, 2, 0 }, (Reach){ 0, 2, 0 }, 2,
                       y + c, index + c, LANES);
        for (; c < C; c += LANES)
            max_window(x, narrow, window + c, row, C, u, v, taps, y + c, index + c, C - c);
    }
}

static void max(const CornuPool *pool, int64_t i, const float *x, float *y, uint8_t *index)
{
    max_row(pool, i, x, false, y, index);
}

static void max_narrow(const CornuPool *pool, int64_t i, const uint16_t *x, float *y,
                       uint8_t *index)
{
    max_row(pool, i, x, true, y, index);
}

static void average(const CornuPool *pool, int64_t i, const float *x, float *y)
{
    const int64_t C = pool->channels, row = pool->width.in * C;
    const Reach   u = reach(&pool->height, i);
    for (int64_t j = 0; j < pool->width.out; j++, y += C) {
        const Reach  v = reach(&pool->width, j);
        const float *window = x + u.origin * row + v.origin * C;
        const float  part = 1.0f / (float)((u.to - u.from) * (v.to - v.from));
        for (int64_t c = 0; c < C; c += LANES) {
            Lanes sum = { 0 };
            for (int64_t a = u.from; a < u.to; a++)
                for (int64_t b = v.from; b < v.to; b++)
                    sum += load_some(window + a * row + b * C + c, C - c);
            store_some(y + c, sum * part, C - c);
        }
    }
}

/* One window, up to LANES channels, into d_x: written, or added. Returns the lanes whose index
 * named no tap. */
INLINE Mask max_grad_window(const float *d_y, const uint8_t *index, float *d_x, int64_t row,
                            int64_t column, Reach u, Reach v, int64_t taps, bool add,
                            int64_t count)
{
    uint8_t bytes[LANES] = { 0 };
    if (count < LANES) index = memcpy(bytes, index, (size_t)count);
    const Mask  where = widen(index);
    const Lanes value = load_some(d_y, count);
    Mask        found = { 0 };
    for (int64_t i = u.from; i < u.to; i++)
        for (int64_t j = v.from; j < v.to; j++) {
            const Mask here = where == (int32_t)(i * taps + j);
            float     *to = d_x + i * row + j * column;
            Lanes      part = (Lanes)(here & (Mask)value);
            if (add) part += load_some(to, count);
            store_some(to, part, count);
            found |= here;
        }
    for (int64_t c = count; c < LANES; c++) found[c] = -1;
    return ~found;
}

static bool max_grad(const CornuPool *pool, int64_t i, const float *d_y, const uint8_t *index,
                     float *d_x)
{
    const int64_t C = pool->channels, row = pool->width.in * C, taps = pool->width.size;
    const Reach   u = reach(&pool->height, i);
    const bool    exact = cornu__pool_is_exact(pool), two = exact && taps == 2 && u.to == 2;
    Mask          missed = { 0 };
    for (int64_t j = 0; j < pool->width.out; j++, d_y += C, index += C) {
        const Reach v = reach(&pool->width, j);
        float      *window = d_x + u.origin * row + v.origin * C;
        int64_t     c = 0;
        for (; c + LANES <= C && two; c += LANES)
            missed |= max_grad_window(d_y + c, index + c, window + c, row, C, (Reach){ 0, 2, 0 },
                                      (Reach){ 0, 2, 0 }, 2, false, LANES);
        for (; c < C; c += LANES)
            missed |= max_grad_window(d_y + c, index + c, window + c, row, C, u, v, taps, !exact,
                                      C - c);
    }
    int32_t any = 0;
    for (int c = 0; c < LANES; c++) any |= missed[c];
    return any == 0;
}

/* Registers of bf16. */
enum { HALVES = 2 * LANES };

typedef uint16_t Halves __attribute__((vector_size(2 * HALVES)));

INLINE Halves some_halves(const uint16_t *from, int64_t count)
{
    Halves value = { 0 };
    memcpy(&value, from, (size_t)count * sizeof *from);
    return value;
}

/* gcc 12 makes two registers of a loop over a register of AVX-512, and joins them in memory. */
INLINE Halves widen_bytes(const uint8_t *from, int64_t count)
{
#if defined(__AVX512F__)
    if (count == HALVES)
        return (Halves)_mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)from));
#elif defined(CORNU_NEON)
    if (count == HALVES) return (Halves)vmovl_u8(vld1_u8(from));
#endif
    uint16_t halves[HALVES] = { 0 };
    for (int64_t c = 0; c < count; c++) halves[c] = from[c];
    Halves value;
    memcpy(&value, halves, sizeof value);
    return value;
}

/* One window, up to HALVES channels. Returns the lanes whose index named no tap. */
INLINE Halves narrow_window(const uint16_t *d_y, const uint8_t *index, uint16_t *d_x, int64_t row,
                            int64_t column, int height, int width, int64_t count)
{
    const Halves value = some_halves(d_y, count), where = widen_bytes(index, count);
    for (int u = 0; u < height; u++)
        for (int v = 0; v < width; v++) {
            const Halves part = (Halves)(where == (uint16_t)(u * width + v)) & value;
            memcpy(d_x + u * row + v * column, &part, (size_t)count * sizeof *d_x);
        }
    return (Halves)(where >= (uint16_t)(height * width));
}

static bool max_grad_narrow(const CornuPool *pool, const uint16_t *d_y, const uint8_t *index,
                            uint16_t *d_x)
{
    const int64_t C = pool->channels, row = pool->width.in * C;
    const int     height = (int)pool->height.size, width = (int)pool->width.size;
    const bool    two = height == 2 && width == 2;
    Halves        missed = { 0 };
    for (int64_t j = 0; j < pool->width.out; j++, d_y += C, index += C, d_x += width * C) {
        int64_t c = 0;
        for (; c + HALVES <= C && two; c += HALVES)
            missed |= narrow_window(d_y + c, index + c, d_x + c, row, C, 2, 2, HALVES);
        for (; c < C; c += HALVES)
            missed |= narrow_window(d_y + c, index + c, d_x + c, row, C, height, width,
                                    C - c < HALVES ? C - c : HALVES);
    }
    unsigned any = 0;
    for (int c = 0; c < HALVES; c++) any |= missed[c];
    return any == 0;
}

static void average_grad(const CornuPool *pool, int64_t i, const float *d_y, float *d_x)
{
    const int64_t C = pool->channels, row = pool->width.in * C;
    const Reach   u = reach(&pool->height, i);
    const bool    exact = cornu__pool_is_exact(pool);
    for (int64_t j = 0; j < pool->width.out; j++, d_y += C) {
        const Reach v = reach(&pool->width, j);
        float      *window = d_x + u.origin * row + v.origin * C;
        const float part = 1.0f / (float)((u.to - u.from) * (v.to - v.from));
        for (int64_t c = 0; c < C; c += LANES) {
            const Lanes value = load_some(d_y + c, C - c) * part;
            for (int64_t a = u.from; a < u.to; a++)
                for (int64_t b = v.from; b < v.to; b++) {
                    float *to = window + a * row + b * C + c;
                    store_some(to, exact ? value : value + load_some(to, C - c), C - c);
                }
        }
    }
}

const CornuPools CORNU__PER_ISA(cornu__pools) = {
    max, max_narrow, average, CORNU__FULL(max_grad, NULL), CORNU__FULL(max_grad_narrow, NULL),
    CORNU__FULL(average_grad, NULL),
};
