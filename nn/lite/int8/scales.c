#include "scales.h"

#include <math.h>

#include "../../../device/memory_internal.h"

/* Narrower ranges count as this wide, so that scales stay well above 0. */
static const double least_width = 2e-6;

CornuAffine cornu__lite_scale_of(CornuLiteRange range)
{
    const double low = fmin(range.low, 0.0), high = fmax(range.high, 0.0);
    const double scale = fmax(high - low, least_width) / (CORNU_INT8_MAX - CORNU_INT8_MIN);
    /* From the end at which rounding errs less, as TensorFlow's quantizer. */
    const double from_low = CORNU_INT8_MIN - low / scale, from_high = CORNU_INT8_MAX - high / scale;
    const double zero = fabs(low) < fabs(high) ? from_low : from_high;
    return (CornuAffine){ (float)scale, (int32_t)fmin(fmax(round(zero), CORNU_INT8_MIN),
                                                      CORNU_INT8_MAX) };
}

bool cornu__lite_keeps_scale(CornuLiteCode code)
{
    switch (code) {
    case CORNU_LITE_MAX_POOL_2D:
    case CORNU_LITE_AVERAGE_POOL_2D:
    case CORNU_LITE_REDUCE_MAX:
    case CORNU_LITE_RESHAPE:
    case CORNU_LITE_SQUEEZE:
    case CORNU_LITE_EXPAND_DIMS:
    case CORNU_LITE_PAD:
    case CORNU_LITE_PADV2:
    case CORNU_LITE_TRANSPOSE:
    case CORNU_LITE_STRIDED_SLICE:
    case CORNU_LITE_RESIZE_NEAREST_NEIGHBOR: return true;
    default: return false;
    }
}

bool cornu__lite_product(CornuLiteCode code, CornuLiteProduct *product)
{
    switch (code) {
    case CORNU_LITE_CONV_2D:
    case CORNU_LITE_FULLY_CONNECTED:   *product = (CornuLiteProduct){ 0, 1, 0, 2 }; return true;
    case CORNU_LITE_DEPTHWISE_CONV_2D: *product = (CornuLiteProduct){ 0, 1, 3, 2 }; return true;
    case CORNU_LITE_TRANSPOSE_CONV:    *product = (CornuLiteProduct){ 2, 1, 0, 3 }; return true;
    default: return false;
    }
}

bool cornu__lite_shares_scale(CornuLiteCode code)
{
    return code == CORNU_LITE_CONCATENATION || code == CORNU_LITE_MAXIMUM ||
           code == CORNU_LITE_MINIMUM;
}

bool cornu__lite_fixed_scale(CornuLiteCode code, CornuAffine *scale)
{
    switch (code) {
    case CORNU_LITE_SOFTMAX:
    case CORNU_LITE_LOGISTIC: *scale = (CornuAffine){ 1.0f / 256, CORNU_INT8_MIN }; return true;
    case CORNU_LITE_TANH:     *scale = (CornuAffine){ 1.0f / 128, 0 }; return true;
    default: return false;
    }
}

/* Where a tensor's scale comes from: itself, or the input of what keeps scales. */
static int root_of(const int *from, int tensor)
{
    while (from[tensor] != tensor) tensor = from[tensor];
    return tensor;
}

/* The operands of a concatenation take its scale, where they do not have a fixed one or that of
 * another concatenation; the others are rescaled before it. */
static void share_scales(const CornuLiteGraph *graph, const int *from, bool *fixed,
                         CornuAffine *scales)
{
    for (int o = 0; o < graph->operator_count; o++) {
        const CornuLiteOperator *op = &graph->operators[o];
        if (!cornu__lite_shares_scale(op->code)) continue;
        for (int i = 0; i < op->in_count; i++) {
            if (graph->tensors[op->in[i]].data) continue;
            const int root = root_of(from, op->in[i]);
            if (fixed[root]) continue;
            fixed[root] = true;
            scales[root] = scales[root_of(from, op->out[0])];
        }
    }
}

CornuStatus cornu__lite_scales(const CornuLiteGraph *graph, const CornuLiteRange *ranges,
                               CornuAffine *scales)
{
    const size_t count = (size_t)graph->tensor_count + 1;
    int  *from = cornu__allocate(count, sizeof *from);
    bool *fixed = cornu__allocate(count, sizeof *fixed);
    if (!from || !fixed) {
        cornu__release(from);
        cornu__release(fixed);
        return CORNU_ERR_MEMORY;
    }
    for (int t = 0; t < graph->tensor_count; t++) {
        from[t] = t;
        if (ranges[t].low <= ranges[t].high) scales[t] = cornu__lite_scale_of(ranges[t]);
    }
    for (int i = 0; i < graph->input_count; i++) fixed[graph->inputs[i].tensor] = true;
    for (int o = 0; o < graph->operator_count; o++) {
        const CornuLiteOperator *op = &graph->operators[o];
        const int                y = op->out[0];
        if (cornu__lite_keeps_scale(op->code) && !graph->tensors[op->in[0]].data)
            from[y] = op->in[0];
        fixed[y] = cornu__lite_fixed_scale(op->code, &scales[y]) ||
                   cornu__lite_shares_scale(op->code);
    }
    share_scales(graph, from, fixed, scales);
    for (int t = 0; t < graph->tensor_count; t++) scales[t] = scales[root_of(from, t)];
    cornu__release(from);
    cornu__release(fixed);
    return CORNU_OK;
}
