/*
 * Sums of some rows, element by element, in a binary tree: neighbours first, then the pairs, then
 * the fours.
 *
 * Reference: the same tree by scalars; tests/device/host/machine/test_vector.c compares them.
 * Source: own.
 * Gain: sums of eight shards' gradients, one thread, Zen 4: 8 x 18 MB 33 ms, then 7.6; 8 x 6.5 MB
 *     14.4 ms, then 2.3.
 */
#include "../machine/vector.h"
#include "lanes.h"

void CORNU__PER_ISA(cornu__sum_rows)(float *to, const float *const *x, int rows, int64_t count);

INLINE Lanes two(int rows, const float *const *x, int k, int64_t i, int64_t left)
{
    const Lanes first = load_some(x[k] + i, left);
    return k + 1 < rows ? first + load_some(x[k + 1] + i, left) : first;
}

INLINE Lanes four(int rows, const float *const *x, int k, int64_t i, int64_t left)
{
    const Lanes first = two(rows, x, k, i, left);
    return k + 2 < rows ? first + two(rows, x, k + 2, i, left) : first;
}

INLINE Lanes eight(int rows, const float *const *x, int64_t i, int64_t left)
{
    const Lanes first = four(rows, x, 0, i, left);
    return rows > 4 ? first + four(rows, x, 4, i, left) : first;
}

/* The pointers are copied, so that they may be kept in registers. */
INLINE void sum(int rows, float *to, const float *const *from, int64_t count)
{
    const float *x[CORNU_SUM_ROWS];
    int64_t      i = 0;
    UNROLL for (int k = 0; k < rows; k++) x[k] = from[k];
    for (; i + LANES <= count; i += LANES) store(to + i, eight(rows, x, i, LANES));
    if (i < count) store_some(to + i, eight(rows, x, i, count - i), count - i);
}

void CORNU__PER_ISA(cornu__sum_rows)(float *to, const float *const *x, int rows, int64_t count)
{
    switch (rows) {
    case 1: sum(1, to, x, count); break;
    case 2: sum(2, to, x, count); break;
    case 3: sum(3, to, x, count); break;
    case 4: sum(4, to, x, count); break;
    case 5: sum(5, to, x, count); break;
    case 6: sum(6, to, x, count); break;
    case 7: sum(7, to, x, count); break;
    case 8: sum(8, to, x, count); break;
    }
}
