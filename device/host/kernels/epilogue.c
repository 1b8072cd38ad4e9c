/*
 * Epilogues: what becomes of a product's result, applied in the cache.
 *
 * Reference: the ops that are joined, add, relu, elu, tanh, sigmoid, bounded_relu, step,
 *     bounded_step and multiply of device/ops/elementwise.c;
 *     tests/device/host/kernels/test_kernels.c compares them.
 * Source: own; oneDNN calls them post-ops.
 * Gain: a pass over the result less for each layer; gates, mnist_cnn at 1024, tpu, Zen 4: 1.3 ms a
 *     step before, none after. A bound in the pass of the bias, not in one of its own by blocks, a
 *     MobileNet in a .tflite file, Xeon (model 207), one thread: 16.2 ms, then 10.3.
 */
#include <math.h>
#include <string.h>

#include "../machine/bf16.h"
#include "kernel.h"
#include "../isa/product.h"
#include "../machine/vector.h"

/* The activation's vector loop, which takes whole steps, so from a block of its own. */
static void activate(const CornuEpilogue *epilogue, float *y, int64_t count)
{
    CornuVector *const loop = cornu__vectors()->class[CORNU_CLASS_F32]->op[epilogue->activation];
    const double       number = epilogue->attributes.alpha.alpha;
    _Alignas(64) float block[CORNU_BLOCK];
    CornuVectorCall    call = { .out = { block }, .in = { block }, .attributes = &number };
    for (int64_t i = 0; i < count; i += CORNU_BLOCK) {
        const int64_t used = count - i < CORNU_BLOCK ? count - i : CORNU_BLOCK;
        const int64_t steps = (used + CORNU_VECTOR_STEP - 1) / CORNU_VECTOR_STEP;
        memcpy(block, y + i, (size_t)used * sizeof *block);
        memset(block + used, 0, (size_t)(steps * CORNU_VECTOR_STEP - used) * sizeof *block);
        loop(&call, steps * CORNU_VECTOR_STEP);
        memcpy(y + i, block, (size_t)used * sizeof *block);
    }
}

static bool is_relu(CornuOpId activation)
{
    return activation == CORNU_OP_RELU || activation == CORNU_OP_BOUNDED_RELU;
}

CornuFinish cornu__epilogue_finish(const CornuEpilogue *e)
{
    const bool bounded = e->activation == CORNU_OP_BOUNDED_RELU;
    return (CornuFinish){ e->scale, e->shift, e->slope,
                          bounded ? (float)e->attributes.bound.bound : 0.0f,
                          is_relu(e->activation) };
}

CornuEpilogue cornu__epilogue_after_tiles(const CornuEpilogue *e)
{
    return (CornuEpilogue){ .activation = is_relu(e->activation) ? CORNU_OP_COUNT : e->activation,
                            .attributes = e->attributes };
}

void cornu__epilogue_apply(const CornuEpilogue *e, const CornuEpilogueRows *rows)
{
    const int64_t         column = rows->first % rows->width;
    const CornuFinish     finish = cornu__epilogue_finish(e);
    const CornuFinishRows all = {
        .y = rows->y, .rows = rows->rows, .columns = rows->columns, .stride = rows->stride,
        .term_stride = rows->width, .bias = e->bias ? (const float *)e->bias + column : NULL,
        .term = e->term ? e->term + rows->first : NULL,
        .finish = cornu__finish_from(&finish, column),
    };
    if (all.bias || all.term || !cornu__finish_is_empty(&finish)) cornu__products()->finish(&all);
    if (finish.relu || e->activation == CORNU_OP_COUNT) return;
    if (rows->columns == rows->stride) {
        activate(e, rows->y, rows->rows * rows->columns);
        return;
    }
    for (int64_t m = 0; m < rows->rows; m++)
        activate(e, rows->y + m * rows->stride, rows->columns);
}

void cornu__epilogue_gate(const CornuEpilogue *epilogue, CornuDtype dtype, int64_t first,
                          int64_t count, void *y)
{
    const float bound = epilogue->gate_bound != 0.0f ? epilogue->gate_bound : INFINITY;
    if (dtype == CORNU_BF16)
        cornu__bf16()->gate((const uint16_t *)epilogue->gate + first, bound, count, y);
    else
        cornu__products()->gate((const float *)epilogue->gate + first, bound, count, y);
}
