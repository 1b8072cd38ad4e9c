/*
 * What the kernels of conv2d_grad_filter share that cut the batch into chunks: conv2d_filter.c,
 * which takes every call, conv2d_filter_pooled.c after a max pooling of two by two,
 * conv2d_filter_packed.c from copies in the first-level cache, conv2d_filter_tiles.c on tile
 * registers. conv2d_filter_operands.c has the copies of operands that the first two make.
 */
#ifndef CORNU_DEVICE_HOST_CONV2D_FILTER_H
#define CORNU_DEVICE_HOST_CONV2D_FILTER_H

#include "convolution.h"
#include "../precision.h"
#include "../unpool.h"

typedef struct CornuFilterGradient CornuFilterGradient;

/* How a kernel sums. */
typedef struct {
    /* Finds chunks and pieces, and what copies of a piece take. */
    void (*cut)(CornuFilterGradient *g, int64_t threads, int64_t shards);
    /* Sums a share of images b to b_end, a piece, or adds them to the sums. */
    void (*sum)(CornuFilterGradient *g, int64_t b, int64_t b_end, int64_t share, bool add,
                int thread, float *sums);
} CornuFilterSums;

struct CornuFilterGradient {
    const CornuFilterSums *by;
    const CornuKernelCall *call;
    const CornuOpCall     *op;
    bool                   pooled;     /* d_y is the gradient of a max pooling               */
    CornuMultiplication    how;
    const CornuProducts   *products;
    CornuWalk              walk;
    int64_t                rows;       /* h w C                                              */
    int64_t                padded;     /* F, rounded up to whole registers                   */
    int64_t                layers;     /* of a chunk's sums: the last pass and, of several
                                          passes, the earlier ones, whose terms are small    */
    int64_t                chunks, chunk_images, piece_images;
    int                    slab_axis;  /* a piece of one image, or of two that are paired, is cut
                                          along the height, or the width of a single row, into */
    int64_t                slab;       /* slabs of so many outputs                           */
    int64_t                half;       /* of a pair's one image: outputs along that axis that are
                                          paired with those so many later; 0: images are paired */
    int64_t                extent[2];  /* of x, or of its padded copy                        */
    bool                   gather, pad_x, copy_x, copy_y;
    bool                   overlap;    /* y is copied only at the end of the batch: before it a
                                          pixel's registers may hold filters of the next ones,
                                          in columns of the sums that nobody reads           */
    int64_t                windows[2]; /* of conv2d_filter_pooled.c: outputs; then `extent` of x
                                          counts where windows can begin                     */
    int64_t                block[2];   /* outputs along each axis that are packed at once    */
    int64_t                shares;     /* of a chunk's filters, where chunks are few         */
    bool                   in_place;   /* the first chunk's sums are the result              */
    int64_t                x_part, y_part, half_count;    /* elements of a piece's copies    */
    float                 *sums;       /* chunks x layers x rows x padded, without the one in
                                          place */
    /* Copies of a thread's piece in operands of 4 bytes, part by part. Halves are two images in
     * bf16, before they are paired; lines, of conv2d_filter_pooled.c, two rows of x; the map, of a
     * pool's gradient that is packed, an image of it. */
    float                 *x, *d_y, *unpool_scratch, *lines, *map;
    int64_t                unpool_count, line_count, map_count;
    uint16_t              *halves;
    CornuUnpool            unpool;     /* of call->pool                                      */
};

/* Whether f32 is summed on tiles of few rows, those of AVX2: they use little of each line of x that
 * they read, and few channels fill them. */
static inline bool cornu__filter_short_tiles(const CornuFilterGradient *g)
{
    return g->products->depth == 1 && g->how.in_place && g->products->outer_rows <= 6;
}

/* ---- conv2d_filter.c ---- */

/* What the query alone tells. */
CornuFilterGradient cornu__filter_gradient(const CornuQuery *q);

/* As CornuKernel's. */
CornuDecline cornu__filter_declines(const CornuQuery *q);
size_t       cornu__filter_scratch(const CornuFilterSums *by, const CornuQuery *q);
CornuStatus  cornu__filter_run(const CornuFilterSums *by, const CornuKernelCall *call);

/* Cuts the batch into chunks, and these into pieces of which copies, of so many elements for an
 * image of x and of d_y, fit the second-level cache. */
void cornu__filter_cut_batch(CornuFilterGradient *g, int64_t x_copy, int64_t y_copy,
                             int64_t shards);

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

/* What a product reads at once: outputs [from, to) along the axis of slabs, and the rows of x that
 * they meet, of which halves have all, whether they exist or not. Copies begin with the first. */
typedef struct {
    int64_t from, to, x_from, x_to;
} CornuSlab;

/* Finds halves and slabs of pieces that only products read, and what their copies take; an image
 * has `bytes` in all, a slab should have at most `most`. */
void cornu__filter_cut_pieces(CornuFilterGradient *g, int64_t bytes, int64_t most);

/* The slab from an output on; outputs along the axis, all of them or those of the first half; the
 * elements of a row along it of an operand with so many columns and channels. */
CornuSlab cornu__filter_slab(const CornuFilterGradient *g, int64_t from);
int64_t   cornu__filter_slab_outputs(const CornuFilterGradient *g);
int64_t   cornu__filter_slab_row(const CornuFilterGradient *g, int64_t width, int64_t channels);

/* The outputs of the slab at which a tap meets x; of halves along the axis all, as copies of x have
 * its padding. */
void cornu__filter_slab_range(const CornuFilterGradient *g, const CornuSlab *slab, int axis,
                              int64_t tap, int64_t *from, int64_t *to);

/* A thread's copies of a slab of images b to b_end: of x with zeros around it if necessary, of d_y
 * with zeros after its filters. */
const float *cornu__filter_copy_x(const CornuFilterGradient *g, int64_t b, int64_t b_end,
                                  const CornuSlab *slab, int thread);
const float *cornu__filter_copy_y(const CornuFilterGradient *g, int64_t b, int64_t b_end,
                                  const CornuSlab *slab, int thread);

/* ---- conv2d_filter_tiles.c ---- */

/* Makes columns rows, which are the same in memory, where there is one row: bands are of rows. */
void cornu__filter_tiles_turn(CornuFilterGradient *g);

#endif
