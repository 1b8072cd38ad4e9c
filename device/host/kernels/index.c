/*
 * argmax and one_hot: from values to indices and back.
 *
 * Reference: device/ops/reduce.c and softmax.c; tests/device/host/run/test_executor.c compares
 *     them.
 * Source: own.
 * Gain: argmax by vectors, 256 classes, the LSTM at 128 x 100 on 8 shards, Zen 4: 2.5 ms before,
 *     1.3 after.
 */
#include <math.h>
#include <string.h>

#include "kernels.h"
#include "../machine/vector.h"

enum {
    WORK = 16384,   /* elements of one piece of work                            */
    LONG = 64       /* rows from which on their largest is found by vectors first */
};

/* ---- argmax: x (A, R, C), y (A, C) i32 ---- */

typedef struct {
    const CornuKernelCall *call;
    int64_t                extent, inner, grain;
} Argmax;

/* NaN counts as the largest. */
static int64_t argmax_f32(const float *x, int64_t extent, int64_t stride)
{
    int64_t best = 0;
    if (stride == 1 && extent >= LONG) {
        const float largest = cornu__vectors()->max_run(x, extent);
        while (isnan(largest) ? !isnan(x[best]) : x[best] != largest) best++;
        return best;
    }
    for (int64_t k = 1; k < extent && !isnan(x[best * stride]); k++)
        if (x[k * stride] > x[best * stride] || isnan(x[k * stride])) best = k;
    return best;
}

static int64_t argmax_i64(const int64_t *x, int64_t extent, int64_t stride)
{
    int64_t best = 0;
    for (int64_t k = 1; k < extent; k++)
        if (x[k * stride] > x[best * stride]) best = k;
    return best;
}

/* Any other dtype: a double holds all of its values. */
static int64_t argmax_any(CornuArray x, int64_t start, int64_t extent, int64_t stride)
{
    int64_t best = 0;
    double  largest = cornu_array_get(x, start);
    for (int64_t k = 1; k < extent && !isnan(largest); k++) {
        double value = cornu_array_get(x, start + k * stride);
        if (value > largest || isnan(value)) best = k, largest = value;
    }
    return best;
}

static void argmax_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const Argmax *a = context;
    int64_t count = cornu_type_count(a->call->out_type[0]), end = (block + 1) * a->grain;
    int32_t      *y = a->call->out[0];
    CornuArray    x = { a->call->op.in[0], (void *)(uintptr_t)a->call->in[0] };
    for (int64_t i = block * a->grain; i < end && i < count; i++) {
        int64_t start = i / a->inner * a->extent * a->inner + i % a->inner;
        y[i] =
            (int32_t)(x.type.dtype == CORNU_F32
                          ? argmax_f32((const float *)x.data + start, a->extent, a->inner)
                      : x.type.dtype == CORNU_I64
                          ? argmax_i64((const int64_t *)x.data + start, a->extent,
                                       a->inner)
                          : argmax_any(x, start, a->extent, a->inner));
    }
}

static CornuStatus argmax(const CornuKernelCall *call)
{
    CornuShape shape = call->op.in[0].shape;
    int        axis = (int)call->op.attributes->axis.axis;
    Argmax     a = { .call = call, .extent = shape.extent[axis], .inner = 1 };
    for (int i = axis + 1; i < shape.rank; i++) a.inner *= shape.extent[i];
    a.grain = a.extent < WORK ? WORK / a.extent : 1;
    int64_t count = cornu_type_count(call->out_type[0]);
    cornu__threads_run(call->threads, (count + a.grain - 1) / a.grain, argmax_block, &a);
    return CORNU_OK;
}

const CornuKernel cornu__host_argmax = { .accepts = cornu__accepts_all, .run = argmax };

/* ---- one_hot: labels (R), y (R, depth) ---- */

static int64_t label_at(CornuArray labels, int64_t i)
{
    return labels.type.dtype == CORNU_I64 ? ((const int64_t *)labels.data)[i]
                                          : (int64_t)cornu_array_get(labels, i);
}

static CornuStatus one_hot(const CornuKernelCall *call)
{
    int64_t    depth = call->op.attributes->one_hot.depth, one = 0;
    size_t     size = cornu_dtype_size(call->out_type[0].dtype);
    char      *y = call->out[0];
    CornuArray labels = { call->op.in[0], (void *)(uintptr_t)call->in[0] };
    cornu_array_set((CornuArray){ cornu_scalar(call->out_type[0].dtype), &one }, 0, 1.0);
    memset(y, 0, cornu_type_bytes(call->out_type[0]));
    for (int64_t row = 0; row < cornu_type_count(labels.type);
         row++, y += (size_t)depth * size) {
        int64_t label = label_at(labels, row);
        if (label < 0 || label >= depth)
            return cornu__fail_value((CornuFault){ .index = row,
                                                   .count = cornu_type_count(labels.type) },
                                     "label %lld in row %lld, expected 0 to %lld",
                                     (long long)label, (long long)row, (long long)depth - 1);
        memcpy(y + (size_t)label * size, &one, size);
    }
    return CORNU_OK;
}

const CornuKernel cornu__host_one_hot = { .accepts = cornu__accepts_all, .run = one_hot };
