/*
 * What conv2d.c, the convolution that takes every call, and the packing of its filter
 * (conv2d_panels.c) share.
 */
#ifndef CORNU_DEVICE_HOST_CONV2D_DIRECT_H
#define CORNU_DEVICE_HOST_CONV2D_DIRECT_H

#include "../../../integer_internal.h"
#include "../kernel.h"
#include "../pool.h"
#include "../precision.h"
#include "../unpool.h"
#include "convolution.h"

typedef struct {
    const CornuKernelCall *call;
    CornuMultiplication    how;
    const CornuProducts   *products;
    CornuWalk              walk;
    int64_t                taps, depth;    /* h w, and K = h w C, rounded up to whole pairs */
    int64_t                x_image;        /* elements of one image                  */
    int64_t                padded;         /* F, rounded up to whole registers       */
    bool                   along_width, gather;
    bool                   by_column;      /* positions that are alone in their row; not where
                                              neighbours meet other taps                    */
    int64_t                groups, slabs;  /* cuts of the batch, and of the height   */
    char                  *x;              /* of a block, all parts, per thread: what tiles do
                                              not take in place, and what is made          */
    int64_t                x_part, x_bytes, pairs_bytes;
    int64_t                extent[2];      /* of an image there: gathered ones are padded */
    int64_t                pair_row;       /* positions of two rows of outputs: after x there is
                                              space for a pair at each, for all parts and
                                              pairs of taps                               */
    const char            *panels;         /* K times parts x padded                 */
    float                 *zeros, *bias;   /* and after it what finish has of columns */
    CornuFinish            finish;
    CornuRun              *runs;           /* taps times passes of them per thread   */
    bool                   pools, by_row, in_windows;
    CornuPool              pool;           /* after the convolution, if it pools     */
    float                 *maps;           /* before pooling, f32 or bf16: those of one block,   */
    int64_t                maps_count;     /* per thread, in floats, and after them a row that
                                              becomes bf16                                 */
    CornuUnpool           *unpool;         /* NULL: x is in memory                             */
    float                 *unpool_scratch;
    int64_t                unpool_count, image_bytes;   /* of one image of x, not yet in parts, per
                                              thread after x                               */
} CornuDirect;

/* Fills what depends on the op alone: how it is multiplied, its walk, extents and `gather`. */
void cornu__direct_find_extents(CornuDirect *c, const CornuOpCall *op, const CornuType *out_type,
                                CornuMultiplier multiplier);

/* Panels of `width` columns, the last one narrower: row k of the panel at column n stands at
 * parts n depth + k width. */
static inline int64_t cornu__direct_panel_width(const CornuDirect *c, int64_t n)
{
    return smaller(2 * c->products->lanes, c->padded - n);
}

static inline int64_t cornu__direct_panel_offset(const CornuDirect *c, int64_t n)
{
    return n * c->how.parts * c->depth * (int64_t)c->products->size;
}

/* As CornuKernel's. */
size_t cornu__direct_pack_bytes(const CornuQuery *q);
void   cornu__direct_pack(const CornuKernelCall *call);

#endif
