/* The gradients of pooling, an image or a row of windows at a time; isa/pool.h has the loops. */
#ifndef CORNU_DEVICE_HOST_POOL_H
#define CORNU_DEVICE_HOST_POOL_H

#include "../../ops/rules.h"
#include "../isa/pool.h"

CornuPool cornu__pool(const CornuOpCall *call);

/* The gradient of one image, f32 or bf16, whatever d_x holds: at least its rows [from, to). False
 * as max_grad. index NULL: of average_pool2d. `scratch` is for bf16 that is not merely moved: in f32
 * an image of d_x and behind it a row of d_y. */
bool cornu__pool_grad(const CornuPool *pool, CornuDtype dtype, int64_t from, int64_t to,
                      const void *d_y, const uint8_t *index, float *scratch, void *d_x);

/* The same of max_pool2d in bf16, windows must be exact, a row of windows at a time: the rows of
 * d_x, of which it points to the first, under row i of windows, which d_y and index point to; with
 * the last one all rows behind. cornu__pool_rows says how many they are. */
bool    cornu__pool_grad_narrow(const CornuPool *pool, int64_t i, const uint16_t *d_y,
                                const uint8_t *index, uint16_t *d_x);
int64_t cornu__pool_rows(const CornuPool *pool, int64_t i);

/* What that fault is called. */
CornuStatus cornu__pool_bad_index(const CornuPool *pool, int64_t row);

#endif
