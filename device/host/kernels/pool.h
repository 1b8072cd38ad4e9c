/* Pooling, one row of outputs of one image at a time; vectors run over the channels. */
#ifndef CORNU_DEVICE_HOST_POOL_H
#define CORNU_DEVICE_HOST_POOL_H

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
    void (*average)(const CornuPool *pool, int64_t i, const float *x, float *y);
    /* d_x: the image. Where windows overlap or leave gaps the image must be zero, and is added
     * to; otherwise (cornu__pool_is_exact) all elements under the row's windows are written.
     * max_grad is false if an index named none of its window's elements. */
    bool (*max_grad)(const CornuPool *pool, int64_t i, const float *d_y, const uint8_t *index,
                     float *d_x);
    /* max_grad of exact windows, in bf16; d_x: the first of the rows under the row of windows. */
    bool (*max_grad_narrow)(const CornuPool *pool, const uint16_t *d_y, const uint8_t *index,
                            uint16_t *d_x);
    void (*average_grad)(const CornuPool *pool, int64_t i, const float *d_y, float *d_x);
} CornuPools;

/* Whether windows stand side by side without padding: each element of x is in at most one,
 * and only elements behind the last are in none. */
bool cornu__pool_is_exact(const CornuPool *pool);

CornuPool cornu__pool(const CornuOpCall *call);

/* The gradient of one image, f32 or bf16, whatever d_x holds: at least its rows [from, to). False
 * as max_grad. index NULL: of average_pool2d. `room` is for bf16 that is not merely moved: in f32
 * an image of d_x and behind it a row of d_y. */
bool cornu__pool_grad(const CornuPool *pool, CornuDtype dtype, int64_t from, int64_t to,
                      const void *d_y, const uint8_t *index, float *room, void *d_x);

/* The same of max_pool2d in bf16, windows must be exact, a row of windows at a time: the rows of
 * d_x, of which it points to the first, under row i of windows, which d_y and index point to; with
 * the last one all rows behind. cornu__pool_rows says how many they are. */
bool    cornu__pool_grad_narrow(const CornuPool *pool, int64_t i, const uint16_t *d_y,
                                const uint8_t *index, uint16_t *d_x);
int64_t cornu__pool_rows(const CornuPool *pool, int64_t i);

/* What that fault is called. */
CornuStatus cornu__pool_bad_index(const CornuPool *pool, int64_t row);

CORNU__F32_ISAS(CORNU__DECLARE, const CornuPools, cornu__pools)

const CornuPools *cornu__pools(void);

#endif
