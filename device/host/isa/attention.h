/*
 * What attention computes between its products, on a block of scores: a row for each key, a column
 * for each query, so that the sums over keys run down the lanes of a register.
 *
 * Of bf16 the numbers that are multiplied next are rounded: to rows of bf16, and to rows of pairs
 * of two keys, as a product along the keys takes them. Rows are `stride` elements apart, columns
 * run from `begin` to `end`, multiples of `lanes`.
 */
#ifndef CORNU_DEVICE_HOST_ATTENTION_H
#define CORNU_DEVICE_HOST_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../machine/isa.h"

typedef struct {
    float      *scores, *d_p;          /* d_p: of the gradient alone */
    ptrdiff_t   stride;
    int64_t     rows, begin, end;      /* of bf16 rows begin at an even one of the pairs */
    const float *most;                 /* by query: the largest score; of the gradient lse */
    const float *delta;
    float       *sum;
    /* Of bf16: p and d_s, of the gradient, rows `half_stride` elements apart; pairs of p, of the
     * gradient of d_s, rows `stride` apart. NULL of f32. */
    uint16_t    *p, *d_s;
    ptrdiff_t    half_stride;
    uint32_t    *pairs;
} CornuScores;

/* Columns of 4-byte words become rows: to[c to_stride + r] = from[r from_stride + c], strides in
 * words, zeros from `rows` to `width`. */
typedef void CornuToColumns(const void *from, ptrdiff_t from_stride, int64_t rows, int64_t columns,
                            uint32_t *to, ptrdiff_t to_stride, int64_t width);

typedef struct {
    CornuToColumns *to_columns;
    /* most = the largest of most and the scores of each column */
    void (*largest)(const CornuScores *s, float *most);
    /* p = exp(score - most), in place or as pairs; sum += those of each column, not rounded */
    void (*weigh)(const CornuScores *s);
    /* p = exp(score - lse), in place; d_s = p (d_p - delta), in place of d_p; or both as bf16, and
     * d_s as pairs */
    void (*slope)(const CornuScores *s);
    /* factor = exp(before - after), and sum = sum factor; `count` is a multiple of lanes */
    void (*shrink)(const float *before, const float *after, int64_t count, float *factor,
                   float *sum);
    /* Row r of x times factor[r]. */
    void (*scale)(float *x, ptrdiff_t stride, int64_t rows, int64_t columns, const float *factor);
    /* to += x */
    void (*add)(const float *x, ptrdiff_t stride, int64_t rows, int64_t columns, float *to,
                ptrdiff_t to_stride);
    /* The sum of x y over `count` elements, f32 or bf16. */
    float (*dot)(const void *x, const void *y, int64_t count, bool narrow);
    /* to = x, f32 or rounded to bf16; to_stride in its elements */
    void (*give)(const float *x, ptrdiff_t stride, int64_t rows, int64_t columns, void *to,
                 ptrdiff_t to_stride, bool narrow);
} CornuAttends;

CORNU__F32_ISAS(CORNU__DECLARE, const CornuAttends, cornu__attends)
CORNU__BF16_ISAS(CORNU__DECLARE, const CornuAttends, cornu__attends)

/* Those of the instruction set in use (cpu.h): for products of f32, and for those of bf16, which
 * are the former where the set has no instructions for bf16. */
const CornuAttends *cornu__attends(void);
const CornuAttends *cornu__attends_of_bf16(void);

#endif
