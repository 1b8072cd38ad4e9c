/*
 * Products on tiles of registers, from which convolutions are built without copying x.
 *
 * Each keeps a tile of f32 sums in registers over the whole sum, so that an element's terms are
 * added in one order whatever tile it falls into. Operands are f32, or bf16 (bf16.h): then two
 * neighbours along the sum are multiplied at once and are adjacent in packed memory.
 */
#ifndef CORNU_DEVICE_HOST_PRODUCT_H
#define CORNU_DEVICE_HOST_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ahead.h"
#include "images.h"

/*
 * What becomes of sums before they are stored, each step rounded:
 *     y = sum scale[n] + shift[n] + term[m, n], then y slope[n] where y is below 0, min(y, bound),
 * max(y, 0)
 */
typedef struct {
    const float *scale, *shift, *slope;   /* of each column; NULL: none */
    float        bound;                   /* 0: none */
    bool         relu;
} CornuFinish;

/* The same of the columns from n on. */
static inline CornuFinish cornu__finish_from(const CornuFinish *f, int64_t n)
{
    return (CornuFinish){ f->scale ? f->scale + n : NULL, f->shift ? f->shift + n : NULL,
                          f->slope ? f->slope + n : NULL, f->bound, f->relu };
}

static inline bool cornu__finish_is_empty(const CornuFinish *f)
{
    return !f->scale && !f->shift && !f->slope && f->bound == 0.0f && !f->relu;
}

/* `length` consecutive elements of a row of x, from x[offset] on, meet `length` consecutive
 * rows of the panel, from `k` on. */
typedef struct {
    ptrdiff_t offset;
    int64_t   k, length;
} CornuRun;

/*
 * sum[m, n] = bias[m bias_stride + n] +
 *             sum over runs, i of x[m x_stride + offset + i] panel[k + i, n]
 * y[m, n] = sum[m, n], finished
 *
 * The panel is packed: `vectors * lanes` columns, row k from k columns on; of bf16 k / 2 rows of
 * pairs. The bias and what finish has of columns have as many; the term is laid out as y. A
 * bias_stride of 0 gives all rows one bias; with another the bias may be sums that are continued.
 * rows is at most tile_rows, vectors 1 or 2, columns at most vectors * lanes. Offsets, strides and
 * lengths count elements.
 */
typedef struct {
    const void     *x;
    ptrdiff_t       x_stride;
    const CornuRun *runs;
    int64_t         run_count;
    const void     *panel;
    const float    *bias;
    ptrdiff_t       bias_stride;
    CornuFinish     finish;
    const float    *term;           /* NULL: none */
    void           *y;
    ptrdiff_t       y_stride;
    const ptrdiff_t *y_rows;        /* NULL, or in place of m y_stride, where registers for tiles
                                       are: elements from y to row m; negative: not stored */
    CornuAhead      *ahead;         /* loses what is requested; NULL: nothing; registers for tiles
                                       request nothing */
    int             rows, vectors, columns;
    bool            in_turns;       /* only where registers for tiles are: runs, which have one
                                       length and begin at even rows, advance together, so that
                                       operands that they share are read once */
    bool            x_far;          /* where registers for tiles are: x is not near and need not
                                       be, as the panel is, which it would displace */
    bool            narrow;         /* y is bf16, rounded to nearest even; subnormal numbers become
                                       zero where instructions for bf16 round */
} CornuTile;

/*
 * A tile on `panels` panels at once, 2 to CORNU_MOST_PANELS of two vectors each: one or two rows by
 * one panel are too few sums to keep the multiply-add units busy, each of which waits for its last
 * term. The same sums, not finished, in f32. rows is at most
 * panels_rows. Panels, their biases and results are so many elements apart.
 */
enum { CORNU_MOST_PANELS = 4 };

typedef struct {
    CornuTile tile;
    int       panels;
    ptrdiff_t panel_next, bias_next, y_next;
} CornuPanels;

/*
 * The largest of windows of two by two rows, the first of equal ones, or the first NaN, without a
 * map of all rows in memory:
 *
 *     y[w, n] = relu(bias[n] + max over i, j of z[i, j, w, n]), the relu if `finish` has one
 *     index[w, n] = 2 i + j of that one, y_stride elements between windows
 *     z[i, j, w, n] = sum over runs, k of x[i x_row + (2 w + j) x_stride + offset + k] panel[k, n]
 *
 * tile.rows counts windows, at most most_windows. If `rounds`, z is rounded to bf16 as in a narrow
 * tile.
 */
typedef struct {
    CornuTile tile;
    ptrdiff_t x_row;
    uint8_t  *index;
    bool      rounds;
} CornuWindows;

/*
 * sum[m, n] = sum over b, i, j of
 *     x[b x_image + i x_row + j x_pixel + offset(m)] y[b y_image + i y_row + j y_pixel + n]
 *
 * n runs over vectors * lanes columns, all of which y must hold. offset(m) is m, or
 * offsets[m] if that is not NULL. rows is at most outer_rows, with offsets gather_rows. Of bf16 all
 * of x and y is pairs, the two of a pair being multiplied by the two of the other and both added.
 *
 * With a selection, x has windows of two by two at (b, i, j), and each column n takes one of the
 * four elements of a window. The windows of a group of CORNU_SELECT_GROUP rows m are CORNU_WINDOW
 * operands:
 *     element (p, q) of row m's is operand 8 q + 2 (m % 4) + p, groups are x_group apart
 * and the selection, laid out as y, has the number of the element's operand in row 0, 8 q + p. Of
 * bf16, where each image of a pair takes an element of its own, the lower half has twice the number
 * for the first image, the upper half twice the number plus one for the second. rows is 4 or 8.
 */
enum { CORNU_WINDOW = 16, CORNU_SELECT_GROUP = 4, CORNU_SELECT_ROWS = 8 };

typedef struct {
    const void      *x, *y;
    ptrdiff_t        x_image, x_row, x_pixel, y_image, y_row, y_pixel;
    int64_t          images, height, width;
    const ptrdiff_t *offsets;
    const uint32_t  *selection;     /* NULL: none; only where products.selects */
    ptrdiff_t        x_group;
    float           *sum;
    ptrdiff_t        sum_stride;
    int              rows, vectors;
    bool             add;           /* to the values in `sum` */
    CornuAhead      *ahead;         /* as of a tile           */
} CornuOuter;

/*
 * y[m, n] = activation(bias[n] + sum over k of x[m x_stride + k] b[k b_stride + n])
 *
 * b is not packed: it is read once for each few rows of x, where packing it would take longer. The
 * terms are added in the order of a tile, so that the bits are those of one. A transposed b, of
 * which element (k, n) is b[n b_stride + k], is multiplied by vectors along k: each lane adds up
 * its terms, then the lanes are added, the bias last.
 */
typedef struct {
    const float *x, *b;
    ptrdiff_t    x_stride, b_stride;
    int64_t      depth;             /* terms of a sum */
    const float *bias;              /* NULL: none */
    float       *y;
    ptrdiff_t    y_stride;
    int64_t      rows, columns;
    int64_t      readable;          /* elements from b on that may be read; not of a transposed b */
    bool         transposed, relu;
    bool         continued;         /* y has the terms before in place of the bias; b is not
                                       transposed */
} CornuFewRows;

/* y = y + bias, rounded, then finished; bias and term NULL: none. Rows are `stride`, those of the
 * term term_stride elements apart. */
typedef struct {
    float       *y;
    int64_t      rows, columns;
    ptrdiff_t    stride, term_stride;
    const float *bias, *term;
    CornuFinish  finish;
} CornuFinishRows;

typedef struct {
    int    lanes, tile_rows, panels_rows, most_windows, outer_rows, gather_rows;
    int    depth;   /* adjacent elements of a sum that are one operand: 1, of bf16 2 */
    size_t size;    /* bytes of an element */
    void (*tile)(const CornuTile *tile);
    void (*panels)(const CornuPanels *panels);      /* NULL: none; panels_rows is 0 */
    void (*windows)(const CornuWindows *windows);   /* NULL: none; most_windows is 0 */
    void (*outer)(const CornuOuter *outer);
    void (*few_rows)(const CornuFewRows *few);      /* NULL: none */
    /* `count` rows of a panel, from row k on, of `width` columns of which the first `columns` exist
     * and the others are zero; row k + i, column n is from[i k_step + n n_step]. */
    void (*pack)(void *panel, int64_t width, int64_t k, int64_t count, const void *from,
                 ptrdiff_t k_step, ptrdiff_t n_step, int64_t columns);
    /* The first `count` rows of `tiles` panels of `width` columns, which are `apart` elements from
     * each other: columns of `from`, whose rows are `step` elements apart, in turn. NULL: none. */
    void (*pack_tiles)(void *panels, int64_t width, int64_t tiles, ptrdiff_t apart, int64_t count,
                       const void *from, ptrdiff_t step);
    void (*finish)(const CornuFinishRows *rows);    /* NULL where gate is */
    /* y where 0 < gate < bound, else y times 0; NULL: none. */
    void (*gate)(const float *gate, float bound, int64_t count, float *y);
    /* Multiply-adds on registers alone, the limit of all products: makes steps * limit_flops
     * floating-point operations. The result means nothing. */
    float (*limit)(int64_t steps);
    int   limit_flops;
    bool  selects;   /* outer takes a selection */
    void (*release)(void);   /* of the registers that tiles keep configured; NULL: none */
    const CornuImagePacks *packs;   /* NULL unless tiles are far faster than outer */
} CornuProducts;

CORNU__F32_ISAS(CORNU__DECLARE, const CornuProducts, cornu__products)

/* Of bf16. */
CORNU__BF16_ISAS(CORNU__DECLARE, const CornuProducts, cornu__products)
CORNU__TILE_ISAS(CORNU__DECLARE, const CornuProducts, cornu__products)

/* Whether products have registers for tiles, which multiply far faster than others where they are
 * full. */
static inline bool cornu__has_tile_registers(const CornuProducts *products)
{
    return products->release != NULL;
}

/* Those of the instruction set in use (cpu.h) for f32, and for bf16: the former where the set has
 * no instructions for bf16. */
const CornuProducts *cornu__products(void);
const CornuProducts *cornu__products_of_bf16(void);

#endif
