#include "../pool.h"
#include "lanes.h"

#include <string.h>

typedef uint8_t Bytes __attribute__((vector_size(LANES)));

/* The taps [from, to) of output o that meet x, and the row that tap 0 meets or would meet. */
typedef struct {
    int64_t from, to, origin;
} Reach;

static Reach reach(const CornuSweep *sweep, int64_t o)
{
    const int64_t origin = o * sweep->stride - sweep->low;
    return (Reach){ origin < 0 ? -origin : 0,
                    sweep->in - origin < sweep->size ? sweep->in - origin : sweep->size, origin };
}

/* The last channels may be fewer than a register holds. */
INLINE Lanes load_some(const float *from, int64_t count)
{
    if (count >= LANES) return load(from);
    Lanes value = { 0 };
    memcpy(&value, from, (size_t)count * sizeof(float));
    return value;
}

INLINE void store_some(float *to, Lanes value, int64_t count)
{
    if (count >= LANES) store(to, value);
    else memcpy(to, &value, (size_t)count * sizeof(float));
}

INLINE Lanes choose(Mask mask, Lanes a, Lanes b)
{
    return (Lanes)((mask & (Mask)a) | (~mask & (Mask)b));
}

/* One window, up to LANES channels. x points to tap (0, 0). */
INLINE void max_window(const float *x, int64_t row, int64_t column, Reach u, Reach v, int64_t taps,
                       float *y, uint8_t *index, int64_t count)
{
    Lanes best = load_some(x + u.from * row + v.from * column, count);
    Mask  where = (Mask){ 0 } + (int32_t)(u.from * taps + v.from);
    for (int64_t i = u.from; i < u.to; i++)
        for (int64_t j = v.from; j < v.to; j++) {
            const Lanes value = load_some(x + i * row + j * column, count);
            /* larger, or the first NaN */
            const Mask take = ~(value <= best) & (best == best);
            best = choose(take, value, best);
            where = (take & (int32_t)(i * taps + j)) | (~take & where);
        }
    store_some(y, best, count);
    const Bytes bytes = __builtin_convertvector(where, Bytes);
    memcpy(index, &bytes, count < LANES ? (size_t)count : LANES);
}

static void max(const CornuPool *pool, int64_t i, const float *x, float *y, uint8_t *index)
{
    const int64_t C = pool->channels, row = pool->width.in * C, taps = pool->width.size;
    const Reach   u = reach(&pool->height, i);
    for (int64_t j = 0; j < pool->width.out; j++, y += C, index += C) {
        const Reach  v = reach(&pool->width, j);
        const float *window = x + u.origin * row + v.origin * C;
        const bool   two_by_two = taps == 2 && u.from == 0 && u.to == 2 && v.from == 0 && v.to == 2;
        int64_t      c = 0;
        for (; c + LANES <= C && two_by_two; c += LANES)
            max_window(window + c, row, C, (Reach){ 0, 2, 0 }, (Reach){ 0, 2, 0 }, 2, y + c,
                       index + c, LANES);
        for (; c < C; c += LANES)
            max_window(window + c, row, C, u, v, taps, y + c, index + c, C - c);
    }
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

/* One window, up to LANES channels, into d_x: written, or added to. */
INLINE bool max_grad_window(const float *d_y, const uint8_t *index, float *d_x, int64_t row,
                            int64_t column, Reach u, Reach v, int64_t taps, bool add,
                            int64_t count)
{
    Bytes bytes = { 0 };
    memcpy(&bytes, index, count < LANES ? (size_t)count : LANES);
    const Mask  where = __builtin_convertvector(bytes, Mask);
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
    int32_t all = -1;
    for (int c = 0; c < LANES && c < count; c++) all &= found[c];
    return all != 0;
}

static bool max_grad(const CornuPool *pool, int64_t i, const float *d_y, const uint8_t *index,
                     float *d_x)
{
    const int64_t C = pool->channels, row = pool->width.in * C, taps = pool->width.size;
    const Reach   u = reach(&pool->height, i);
    const bool    exact = cornu__pool_is_exact(pool), two = exact && taps == 2 && u.to == 2;
    bool          found = true;
    for (int64_t j = 0; j < pool->width.out; j++, d_y += C, index += C) {
        const Reach v = reach(&pool->width, j);
        float      *window = d_x + u.origin * row + v.origin * C;
        int64_t     c = 0;
        for (; c + LANES <= C && two; c += LANES)
            found &= max_grad_window(d_y + c, index + c, window + c, row, C, (Reach){ 0, 2, 0 },
                                     (Reach){ 0, 2, 0 }, 2, false, LANES);
        for (; c < C; c += LANES)
            found &= max_grad_window(d_y + c, index + c, window + c, row, C, u, v, taps, !exact,
                                     C - c);
    }
    return found;
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

const CornuPools CORNU__PER_ISA(cornu__pools) = { max, average, max_grad, average_grad };
