/* The gradients of pooling, an image or a row of windows at a time; isa/pool.h has the loops. */
#ifndef CORNU_DEVICE_HOST_POOL_H
#define CORNU_DEVICE_HOST_POOL_H

#include "../../ops/rules.h"
#include "../isa/pool.h"
#include "kernel.h"

CornuPool cornu__pool(const CornuOpCall *call);

/* CornuKernel's `joins`, of windows of two by two. */
CornuDecline cornu__joins_two_by_two(const CornuQuery *q);

/* The gradient of one image, f32 or bf16, whatever d_x holds: at least its rows [from, to). False
 * as max_grad. index NULL: of average_pool2d. `scratch` is for bf16 that is not merely moved: in
 * f32 an image of d_x and after it a row of d_y. */
bool cornu__pool_grad(const CornuPool *pool, CornuDtype dtype, int64_t from, int64_t to,
                      const void *d_y, const uint8_t *index, float *scratch, void *d_x);

/* The same for max_pool2d in bf16 with exact windows, a row of windows at a time: d_y and index
 * point to row i of windows, d_x to the first of the cornu__pool_rows rows under it; under the last
 * row of windows are all rows to the end. */
bool    cornu__pool_grad_narrow(const CornuPool *pool, int64_t i, const uint16_t *d_y,
                                const uint8_t *index, uint16_t *d_x);
int64_t cornu__pool_rows(const CornuPool *pool, int64_t i);

/* The error for an invalid index. */
CornuStatus cornu__pool_bad_index(const CornuPool *pool, int64_t row);

#endif
