/*
 * What attention computes between its products, on a panel of scores: a row for each key, a column
 * for each query, so that the sums over keys run down the lanes of a register.
 *
 * What is multiplied next is packed as the panel of a product (product.h), of bf16 rounded, and of
 * the gradient given as rows, too.
 */
#ifndef CORNU_DEVICE_HOST_ATTENTION_H
#define CORNU_DEVICE_HOST_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../machine/isa.h"

typedef struct {
    float      *scores, *d_p;      /* d_p: of the gradient alone */
    ptrdiff_t   stride;            /* elements between rows of scores, d_p, p and d_s */
    int64_t     rows, columns;     /* columns: a multiple of lanes */
    float      *most;              /* by query: the largest score; of the gradient lse */
    const float *delta;
    float      *sum, *factor;      /* not of the gradient */
    uint16_t   *p, *d_s;           /* of the gradient of bf16 */
    void       *panel;             /* of p, of the gradient of d_s */
} CornuScores;

/* Columns of 4-byte words become rows: to[c to_stride + r] = from[r from_stride + c], strides in
 * words, zeros from `rows` to `width`. */
typedef void CornuToColumns(const void *from, ptrdiff_t from_stride, int64_t rows, int64_t columns,
                            uint32_t *to, ptrdiff_t to_stride, int64_t width);

typedef struct {
    CornuToColumns *to_columns;
    /* most = the largest of most and the scores of each column; factor = exp(before - after), and
     * sum = sum factor */
    void (*update)(const CornuScores *s);
    /* p = exp(score - most); sum += those of each column, not rounded */
    void (*weigh)(const CornuScores *s);
    /* p = exp(score - lse), d_s = p (d_p - delta); of f32 in place of the scores and of d_p */
    void (*slope)(const CornuScores *s);
    /* Column c of x times factor[c]. */
    void (*scale)(float *x, ptrdiff_t stride, int64_t rows, int64_t columns, const float *factor);
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
