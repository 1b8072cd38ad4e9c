/* Reference: device/ops/pool2d.c; tests/device/host/kernels/test_kernels.c compares joined with
 * separate ones. */
#include "conv2d_pool.h"

#include "../../machine/bf16.h"

void cornu__conv2d_pool(const CornuKernelCall *call, const CornuPool *pool, const float *bias,
                        const void *map, int64_t first, float *row)
{
    const CornuPools *pools = cornu__pools();
    const int64_t     C = pool->channels, columns = pool->width.out, count = columns * C;
    const bool        narrow = call->out_type->dtype == CORNU_BF16;
    CornuEpilogue     epilogue = *call->epilogue;
    if (epilogue.bias) epilogue.bias = bias;
    for (int64_t i = 0; i < pool->height.out; i++) {
        const int64_t to = (first + i) * count;
        float        *y = narrow ? row : (float *)call->out[0] + to;
        uint8_t      *index = (uint8_t *)call->out[1] + to;
        if (narrow) pools->max_narrow(pool, i, map, y, index);
        else pools->max(pool, i, map, y, index);
        cornu__epilogue_apply(&epilogue, &(CornuEpilogueRows){
            .y = y, .rows = columns, .columns = C, .stride = C, .first = to, .width = C });
        if (narrow) cornu__bf16()->narrow(y, count, (uint16_t *)call->out[0] + to);
    }
}
