/* conv2d_grad_filter: conv2d_filter.c has the kernel, conv2d_filter_pooled.c the sums after a max
 * pooling of two by two, conv2d_filter_operands.c the copies of operands that both make. */
#ifndef CORNU_DEVICE_HOST_CONV2D_FILTER_H
#define CORNU_DEVICE_HOST_CONV2D_FILTER_H

#include "convolution.h"
#include "precision.h"
#include "unpool.h"

/* Where d_y comes from: memory; a pool's gradient; one of which only the elements selected by
 * windows are multiplied. */
typedef enum { CORNU_PLAIN, CORNU_UNPOOL, CORNU_SELECT } CornuFilterMode;

typedef struct {
    const CornuKernelCall *call;
    CornuFilterMode        mode;
    CornuMultiplication    how;
    const CornuProducts   *products;
    CornuWalk              walk;
    int64_t                rows;       /* h w C                                              */
    int64_t                padded;     /* F, rounded up to whole registers                   */
    int64_t                layers;     /* of a chunk's sums: the last pass and, of several
                                          passes, the earlier ones, whose terms are small    */
    int64_t                chunks, chunk_images, piece_images;
    int64_t                extent[2];  /* of x, or of its padded copy                        */
    bool                   gather, pad_x, copy_x, copy_y;
    int64_t                windows[2]; /* of CORNU_SELECT: outputs; then `extent` of x counts where
                                          windows can begin                                  */
    bool                   in_place;   /* the first chunk's sums are the result              */
    int64_t                x_part, y_part, half_count;    /* elements of a piece's copies    */
    float                 *sums;       /* chunks x layers x rows x padded, without the one in
                                          place */
    /* Copies of a thread's piece in operands of 4 bytes, part by part. Halves are two images in
     * bf16, before they are paired; lines, of CORNU_SELECT, two rows of x. */
    float                 *x, *d_y, *unpool_scratch, *lines;
    int64_t                unpool_count, line_count;
    uint16_t              *halves;
    CornuUnpool            unpool;     /* of call->pool                                      */
} CornuFilterGradient;

/* ---- conv2d_filter_operands.c ---- */

/* Source and destination of rows of operands: one image in memory, or two in parts of bf16 that are
 * paired. */
typedef struct {
    const void *image[2];    /* the second NULL: zeros */
    int64_t     image_part;
    float      *to;
    int64_t     to_part;
} CornuImages;

/* A thread's copy in bf16 of the first (0) or second (1) image of a pair. */
static inline uint16_t *cornu__filter_half(const CornuFilterGradient *g, int thread, int i)
{
    return g->halves + (2 * thread + i) * g->how.parts * g->half_count;
}

/* Finds images b and, of pairs, b + 1 of an operand with `count` elements in each. */
void cornu__filter_images(const CornuFilterGradient *g, int operand, int64_t count, int64_t b,
                          int thread, CornuImages *images);

/* Copies `count` elements of them from element `from` on to element `to`. */
void cornu__filter_row(const CornuFilterGradient *g, const CornuImages *images, int64_t from,
                       int64_t to, int64_t count);

/* The outputs [from, to) along an axis at which a tap meets x. */
void cornu__filter_range(const CornuAxis *axis, int64_t tap, int64_t *from, int64_t *to);

/* ---- conv2d_filter_pooled.c ---- */

/* Whether the gradient can be made in this way after some pool; and whether `pool` is such a pool.
 * */
bool cornu__filter_pooled_accepts(const CornuFilterGradient *g);
bool cornu__filter_pooled_takes(const CornuPool *pool);

/* Finds the extents, and the operands in the copies of an image of x, or of two, and of d_y. */
void cornu__filter_pooled_extents(CornuFilterGradient *g, int64_t *x_count, int64_t *y_count);

/* Sums images b to b_end, or adds them to the sums. */
void cornu__filter_pooled_sum(CornuFilterGradient *g, int64_t b, int64_t b_end, bool add,
                              int thread, float *sums);

#endif
