/* A max pooling after conv2d, of rows of the map that are in the cache. */
#ifndef CORNU_DEVICE_HOST_CONV2D_POOL_H
#define CORNU_DEVICE_HOST_CONV2D_POOL_H

#include "../kernel.h"
#include "../pool.h"

/* Rows of the call's values and indices, as many as `pool` has outputs along the height, from its
 * map in the result's dtype: values with the epilogue, whose bias in f32 is `bias`. The first is
 * row `first` of all images' rows one after the other; `row` has space for one in f32 where the
 * result is bf16. */
void cornu__conv2d_pool(const CornuKernelCall *call, const CornuPool *pool, const float *bias,
                        const void *map, int64_t first, float *row);

#endif
