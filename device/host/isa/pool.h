/* Pooling, one row of outputs of one image at a time; vectors run over the channels. */
#ifndef CORNU_DEVICE_HOST_ISA_POOL_H
#define CORNU_DEVICE_HOST_ISA_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "../../ops/window.h"
#include "../machine/isa.h"

typedef struct {
    CornuSweep height, width;
    int64_t    channels;
} CornuPool;

typedef struct {
    /* x: the image; y and index: the row i of outputs. */
    void (*max)(const CornuPool *pool, int64_t i, const float *x, float *y, uint8_t *index);
    void (*max_narrow)(const CornuPool *pool, int64_t i, const uint16_t *x, float *y,
                       uint8_t *index);   /* x: bf16 */
    void (*average)(const CornuPool *pool, int64_t i, const float *x, float *y);
    /* d_x: the image. Where windows overlap or leave gaps the image must be zero on entry, and is
     * added to; otherwise (cornu__pool_is_exact) all elements under the row of windows are written.
     * max_grad is false if an index named no element of its window. */
    bool (*max_grad)(const CornuPool *pool, int64_t i, const float *d_y, const uint8_t *index,
                     float *d_x);
    /* max_grad of exact windows, in bf16; d_x: the first of the rows under the row of windows. */
    bool (*max_grad_narrow)(const CornuPool *pool, const uint16_t *d_y, const uint8_t *index,
                            uint16_t *d_x);
    void (*average_grad)(const CornuPool *pool, int64_t i, const float *d_y, float *d_x);
} CornuPools;

/* Whether windows lie side by side without padding: each element of x is in at most one, and only
 * elements after the last are in none. */
static inline bool cornu__pool_is_exact(const CornuPool *pool)
{
    const CornuSweep *height = &pool->height, *width = &pool->width;
    return height->stride == height->size && width->stride == width->size && height->low == 0 &&
           width->low == 0 && height->out * height->size <= height->in &&
           width->out * width->size <= width->in;
}

/* The same of windows of two by two. */
static inline bool cornu__pool_is_two_by_two(const CornuPool *pool)
{
    return cornu__pool_is_exact(pool) && pool->height.size == 2 && pool->width.size == 2;
}

CORNU__F32_ISAS(CORNU__DECLARE, const CornuPools, cornu__pools)

/* Those of the instruction set in use (cpu.h). */
const CornuPools *cornu__pools(void);

#endif
