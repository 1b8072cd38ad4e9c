#include "to_int8.h"

#include <math.h>
#include <stdio.h>

#include "../../../device/memory_internal.h"
#include "scales.h"

typedef struct {
    const CornuLiteGraph *from;
    CornuLiteGraph       *to;
    CornuAffine          *scales;   /* of from's tensors */
    int                  *made;     /* from's tensors in to; CORNU_LITE_NONE: not yet */
} Work;

static int add_int8(Work *work, const char *name, CornuShape shape, CornuAffine scale,
                    const int8_t *data)
{
    const int t = data ? cornu__lite_add_constant(work->to, name, CORNU_LITE_I8, shape, data)
                       : cornu__lite_add_tensor(work->to, name, CORNU_LITE_I8, shape);
    const int64_t zero = scale.zero;
    cornu__lite_set_scales(work->to, t, &scale.scale, &zero, 1, 0);
    return t;
}

/* ---- Constants ---- */

static int64_t count_of(const CornuLiteTensor *tensor)
{
    return cornu__lite_count(tensor->shape, 1);
}

/* An operand that is not weights: in a scale that is given, or of its own range. */
static int add_constant(Work *work, int tensor, const CornuAffine *given)
{
    const CornuLiteTensor *constant = &work->from->tensors[tensor];
    const int64_t          count = count_of(constant);
    if (constant->dtype != CORNU_LITE_F32)
        return cornu__lite_add_constant(work->to, constant->name, constant->dtype,
                                        constant->shape, constant->data);
    const float   *values = constant->data;
    CornuLiteRange range = { 0, 0 };
    for (int64_t i = 0; i < count; i++) {
        range.low = fminf(range.low, values[i]);
        range.high = fmaxf(range.high, values[i]);
    }
    const CornuAffine scale = given ? *given : cornu__lite_scale_of(range);
    int8_t           *data = cornu__allocate((size_t)count, 1);
    if (!data) {
        work->to->status = CORNU_ERR_MEMORY;
        return CORNU_LITE_NONE;
    }
    cornu__int8_quantize(scale, count, values, data);
    const int t = add_int8(work, constant->name, constant->shape, scale, data);
    cornu__release(data);
    return t;
}

/* Elements of a channel are `inner` apart in runs; channel f of element i is (i / inner) % F. */
typedef struct {
    int64_t count, filters, inner;
} Channels;

static Channels channels_of(const CornuLiteTensor *weights, int axis)
{
    Channels c = { count_of(weights), weights->shape.extent[axis], 1 };
    for (int d = axis + 1; d < weights->shape.rank; d++) c.inner *= weights->shape.extent[d];
    return c;
}

/* The scales of the channels. One so small that the bias would not fit into i32 is enlarged. */
static void scale_weights(Channels c, const float *values, const float *bias, float x_scale,
                          float *scales)
{
    for (int64_t f = 0; f < c.filters; f++) scales[f] = 0.0f;
    for (int64_t i = 0; i < c.count; i++) {
        float *scale = &scales[i / c.inner % c.filters];
        *scale = fmaxf(*scale, fabsf(values[i]));
    }
    for (int64_t f = 0; f < c.filters; f++) {
        const float least = bias ? fabsf(bias[f]) / (x_scale * 0x1p30f) : 0.0f;
        scales[f] = fmaxf(scales[f] / CORNU_INT8_MAX, least);
        if (!(scales[f] > 0)) scales[f] = 1.0f;
    }
}

static int add_weights(Work *work, const CornuLiteTensor *weights, Channels c, int axis,
                       const float *scales)
{
    const float *values = weights->data;
    const int    t = cornu__lite_add_constant(work->to, weights->name, CORNU_LITE_I8,
                                              weights->shape, NULL);
    if (t == CORNU_LITE_NONE) return t;
    int8_t *data = work->to->tensors[t].data;
    for (int64_t i = 0; i < c.count; i++) {
        const float q = roundf(values[i] / scales[i / c.inner % c.filters]);
        data[i] = (int8_t)fminf(fmaxf(q, -CORNU_INT8_MAX), CORNU_INT8_MAX);
    }
    cornu__lite_set_scales(work->to, t, scales, NULL, (int)c.filters, axis);
    return t;
}

/* LiteRT's convolutions need a bias, of zeros if the f32 has none. `scales` become the bias'. */
static int add_bias(Work *work, const char *name, int64_t filters, const float *bias,
                    float x_scale, float *scales)
{
    const int t = cornu__lite_add_constant(work->to, name, CORNU_LITE_I32, cornu_shape(filters),
                                           NULL);
    if (t == CORNU_LITE_NONE) return t;
    int32_t *data = work->to->tensors[t].data;
    for (int64_t f = 0; f < filters; f++) {
        scales[f] *= x_scale;
        if (bias) data[f] = (int32_t)round((double)bias[f] / (double)scales[f]);
    }
    cornu__lite_set_scales(work->to, t, scales, NULL, (int)filters, 0);
    return t;
}

/* ---- Operators ---- */

static CornuStatus put_product(Work *work, const CornuLiteOperator *op, CornuLiteProduct product)
{
    const CornuLiteTensor *weights = cornu__lite_in(work->from, op, product.weights);
    const CornuLiteTensor *bias = cornu__lite_in(work->from, op, product.bias);
    const CornuLiteTensor *x = cornu__lite_in(work->from, op, product.x);
    if (!x || x->data || !weights || !weights->data || weights->dtype != CORNU_LITE_F32 ||
        (bias && (!bias->data || bias->dtype != CORNU_LITE_F32)))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "its weights or bias are computed");
    const Channels c = channels_of(weights, product.axis);
    if (bias && count_of(bias) != c.filters)
        return cornu__fail(CORNU_ERR_SHAPE, "%lld biases for %lld outputs",
                           (long long)count_of(bias), (long long)c.filters);
    float *scales = cornu__allocate((size_t)c.filters, sizeof *scales);
    if (!scales) return CORNU_ERR_MEMORY;
    const float x_scale = work->scales[op->in[product.x]].scale;
    const float *values = bias ? bias->data : NULL;
    scale_weights(c, weights->data, values, x_scale, scales);
    int in[4] = { CORNU_LITE_NONE, CORNU_LITE_NONE, CORNU_LITE_NONE, CORNU_LITE_NONE };
    for (int i = 0; i < product.bias; i++) {
        if (i == product.weights) in[i] = add_weights(work, weights, c, product.axis, scales);
        else if (work->from->tensors[op->in[i]].data) in[i] = add_constant(work, op->in[i], NULL);
        else                                          in[i] = work->made[op->in[i]];
    }
    char name[160];
    snprintf(name, sizeof name, "%.150s/bias", weights->name);
    in[product.bias] = add_bias(work, bias ? bias->name : name, c.filters, values, x_scale, scales);
    cornu__release(scales);
    cornu__lite_add_operator(work->to, op->code, in, product.bias + 1,
                             &work->made[op->out[0]], 1, &op->options);
    return CORNU_OK;
}

static bool same(CornuAffine a, CornuAffine b) { return a.scale == b.scale && a.zero == b.zero; }

/* An operand in the scale that the operator needs. */
static int rescaled(Work *work, int tensor, const CornuAffine *needed)
{
    const int t = work->made[tensor];
    if (!needed || same(work->scales[tensor], *needed)) return t;
    char name[160];
    snprintf(name, sizeof name, "%.140s/rescaled", work->from->tensors[tensor].name);
    const int y = add_int8(work, name, work->from->tensors[tensor].shape, *needed, NULL);
    cornu__lite_add_operator(work->to, CORNU_LITE_QUANTIZE, &t, 1, &y, 1, NULL);
    return y;
}

/* The scale that operands must have: that of the result where they share one. */
static const CornuAffine *needed_scale(const Work *work, const CornuLiteOperator *op)
{
    const bool shares = cornu__lite_shares_scale(op->code) || op->code == CORNU_LITE_PADV2;
    return shares ? &work->scales[op->out[0]] : NULL;
}

static CornuStatus put_operator(Work *work, const CornuLiteOperator *op)
{
    CornuLiteProduct product;
    for (int i = 0; i < op->out_count; i++) {
        const CornuLiteTensor *y = &work->from->tensors[op->out[i]];
        if (y->dtype == CORNU_LITE_I32) {   /* a shape that the graph computes */
            work->made[op->out[i]] = cornu__lite_add_tensor(work->to, y->name, y->dtype, y->shape);
            continue;
        }
        if (y->dtype != CORNU_LITE_F32)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "its result is %s",
                               cornu__lite_dtype_name(y->dtype));
        work->made[op->out[i]] = add_int8(work, y->name, y->shape, work->scales[op->out[i]], NULL);
    }
    if (op->out_count == 1 && cornu__lite_product(op->code, &product))
        return put_product(work, op, product);
    const CornuAffine *needed = needed_scale(work, op);
    int *in = cornu__allocate((size_t)op->in_count + 1, sizeof *in);
    int *out = cornu__allocate((size_t)op->out_count + 1, sizeof *out);
    if (in && out) {
        for (int i = 0; i < op->in_count; i++)
            in[i] = op->in[i] == CORNU_LITE_NONE ? CORNU_LITE_NONE
                    : work->from->tensors[op->in[i]].data ? add_constant(work, op->in[i], needed)
                    : rescaled(work, op->in[i], needed);
        for (int i = 0; i < op->out_count; i++) out[i] = work->made[op->out[i]];
        cornu__lite_add_operator(work->to, op->code, in, op->in_count, out, op->out_count,
                                 &op->options);
    }
    const bool made = in && out;
    cornu__release(in);
    cornu__release(out);
    return made ? CORNU_OK : CORNU_ERR_MEMORY;
}

static CornuStatus put_graph(Work *work)
{
    const CornuLiteGraph *from = work->from;
    for (int i = 0; i < from->input_count; i++) {
        const int              t = from->inputs[i].tensor;
        const CornuLiteTensor *x = &from->tensors[t];
        work->made[t] = add_int8(work, x->name, x->shape, work->scales[t], NULL);
        cornu__lite_add_input(work->to, work->made[t], from->inputs[i].name);
    }
    for (int o = 0; o < from->operator_count; o++) {
        CornuLitePlace place;
        cornu__lite_place(from, o, &place);
        CORNU__TRY(cornu__fail_prefix(put_operator(work, &from->operators[o]), place.text));
    }
    for (int i = 0; i < from->output_count; i++)
        cornu__lite_add_output(work->to, work->made[from->outputs[i].tensor],
                               from->outputs[i].name);
    return work->to->status;
}

CornuStatus cornu__lite_to_int8(const CornuLiteGraph *graph, const CornuLiteRange *ranges,
                                CornuLiteGraph **quantized)
{
    const size_t count = (size_t)graph->tensor_count + 1;
    Work         work = { .from = graph, .to = cornu__lite_graph_create(graph->name),
                          .scales = cornu__allocate(count, sizeof *work.scales),
                          .made = cornu__allocate(count, sizeof *work.made) };
    CornuStatus  status = work.to && work.scales && work.made ? CORNU_OK : CORNU_ERR_MEMORY;
    *quantized = NULL;
    if (status == CORNU_OK) status = cornu__lite_scales(graph, ranges, work.scales);
    for (size_t t = 0; t < count && status == CORNU_OK; t++) work.made[t] = CORNU_LITE_NONE;
    if (status == CORNU_OK) status = put_graph(&work);
    cornu__release(work.scales);
    cornu__release(work.made);
    if (status == CORNU_OK) *quantized = work.to;
    else                    cornu__lite_graph_free(work.to);
    return status;
}
