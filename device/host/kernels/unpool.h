/*
 * A convolution's gradient joined with the max_pool2d_grad before it (CornuKernelCall.pool): its
 * d_y is made in the cache, an image at a time, by each kernel that reads it.
 */
#ifndef CORNU_DEVICE_HOST_UNPOOL_H
#define CORNU_DEVICE_HOST_UNPOOL_H

#include <stdatomic.h>

#include "kernel.h"
#include "pool.h"

typedef struct {
    CornuPool       pool;
    CornuDtype      dtype;
    int64_t         pooled;       /* elements of an image of d_y and index   */
    const char     *d_y;
    const uint8_t  *index;        /* in their windows                        */
    float          *scratch;      /* per thread, cornu__pool_grad's          */
    int64_t         scratch_count;
    _Atomic int64_t bad_row;      /* an image with an invalid index, or -1   */
} CornuUnpool;

/* Floats of scratch memory that a thread needs for d_y of this type, (B, H, W, C), for any windows.
 * */
int64_t cornu__unpool_scratch(const CornuType *d_y);

/* The pool's operands are in[at] and in[at + 1]. */
void cornu__unpool_start(CornuUnpool *unpool, const CornuKernelCall *call, int at, float *scratch,
                         int64_t scratch_count);

/* Makes at least rows [from, to) of image b, in a map with space for all rows. */
void cornu__unpool_image(CornuUnpool *unpool, int64_t b, int64_t from, int64_t to, int thread,
                         void *map);

/* Makes cornu__pool_grad_narrow's rows of image b: bf16, exact windows. */
void cornu__unpool_rows(CornuUnpool *unpool, int64_t b, int64_t i, uint16_t *rows);

/* The status of all images. */
CornuStatus cornu__unpool_status(const CornuUnpool *unpool);

#endif
