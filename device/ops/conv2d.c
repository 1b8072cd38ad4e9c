/*
 * Convolution of images, and its two gradients.
 *   x (B, H, W, C)    filter (h, w, C, F)    y (B, Ho, Wo, F)
 *   y[b,i,j,f] = sum over u, v, c of x[b, i s + u d - low, j s + v d - low, c] filter[u,v,c,f]
 *   Ho = floor((H + low + high - d (h - 1) - 1) / s) + 1
 * with x zero outside its extents; strides s, dilations d, low and high for height and width
 * each. A negative low or high skips rows of x. Operands have the same float dtype, the result the
 * attribute's; summed in f32 (f64 for f64).
 *
 * Grouped: C and F are divided into G equal parts; part g of y is the convolution of part g of x
 * with part g of the filter, which is (h, w, C/G, F). With G = C it is depthwise.
 */
#include <string.h>

#include "../memory_internal.h"
#include "build.h"
#include "window.h"

/* All extents of a checked call, and the three arrays they belong to. */
typedef struct {
    CornuSweep h, w;
    int64_t    batch, channels, filters, groups;
} Convolution;

static bool by_input(CornuOpId id)
{
    return id == CORNU_OP_CONV2D_GRAD_INPUT || id == CORNU_OP_GROUPED_CONV2D_GRAD_INPUT;
}

static bool by_filter(CornuOpId id)
{
    return id == CORNU_OP_CONV2D_GRAD_FILTER || id == CORNU_OP_GROUPED_CONV2D_GRAD_FILTER;
}

static Convolution convolution_of(const CornuOpCall *call)
{
    const CornuType *in = call->in;
    const int64_t    groups = cornu__conv_groups(call);
    CornuSweep       sweeps[2];
    cornu__sweeps(call, sweeps);
    return (Convolution){
        .h = sweeps[0], .w = sweeps[1], .groups = groups,
        .batch = in[0].shape.extent[0],
        .channels = by_input(call->id) ? groups * in[1].shape.extent[2] : in[0].shape.extent[3],
        .filters = in[1].shape.extent[3],
    };
}

/* All multiply-adds of the convolution, also those with padding. */
static int64_t conv2d_flops(const CornuOpCall *call)
{
    Convolution c = convolution_of(call);
    return cornu__flops(8, (const int64_t[]){ 2, c.batch, c.h.out, c.w.out, c.h.size, c.w.size,
                                              c.channels / c.groups, c.filters });
}

/* The checks that all these ops share: two float operands of rank 4 and the same dtype, a float
 * result, groups that divide both last axes. */
static CornuStatus check_operands(const CornuOpCall *call, CornuDtype result, const char *names)
{
    const int64_t groups = cornu__conv_groups(call);
    CORNU__TRY(cornu__expect_float(call, 0, names));
    if (call->in[0].dtype != call->in[1].dtype)
        return cornu__refuse(call, CORNU_ERR_DTYPE, names, "both must have the same dtype");
    if (!cornu_dtype_is_float(result))
        return cornu__refuse(call, CORNU_ERR_DTYPE, names, "result dtype is %s, expected a float",
                             cornu_dtype_name(result));
    for (int i = 0; i < 2; i++) {
        CORNU__TRY(cornu__expect_rank(call, i, 4, names));
        const int64_t last = call->in[i].shape.extent[3];
        if (groups < 1 || groups > last || last % groups)
            return cornu__refuse(call, CORNU_ERR_SHAPE, names, "%lld groups, expected a divisor "
                                 "of %lld", (long long)groups, (long long)last);
    }
    return CORNU_OK;
}

static CornuStatus conv2d_type(const CornuOpCall *call, CornuType *out)
{
    static const char names[] = "x filter";
    CornuDtype        dtype = call->attributes->conv2d.dtype;
    CORNU__TRY(check_operands(call, dtype, names));
    const int64_t *x = call->in[0].shape.extent, *filter = call->in[1].shape.extent;
    const int64_t  groups = cornu__conv_groups(call);
    if (x[3] / groups != filter[2])
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "x has %lld channels in %lld groups, the filter expects %lld in each",
                             (long long)x[3], (long long)groups, (long long)filter[2]);
    CornuSweep sweeps[2];
    if (!cornu__sweeps(call, sweeps))
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "the filter does not fit into x with these strides and paddings");
    out[0] = cornu_type(dtype, x[0], sweeps[0].out, sweeps[1].out, filter[3]);
    return CORNU_OK;
}

/* One loop nest over all products serves all these ops: two of x, filter and y are operands, the
 * third sums their products. */
static CornuStatus convolution_reference(const CornuReferenceCall *call)
{
    Convolution   c = convolution_of(&call->op);
    const int64_t channels = c.channels / c.groups, filters = c.filters / c.groups;
    const double *left = call->in[0], *right = call->in[1];
    double       *sum = call->out[0];
    for (int64_t i = 0; i < call->count; i++) sum[i] = 0.0;
    for (int64_t b = 0; b < c.batch; b++)
    for (int64_t i = 0; i < c.h.out; i++)
    for (int64_t j = 0; j < c.w.out; j++)
    for (int64_t u = 0; u < c.h.size; u++)
    for (int64_t v = 0; v < c.w.size; v++) {
        int64_t row = cornu__tap(&c.h, i, u), column = cornu__tap(&c.w, j, v);
        if (row < 0 || column < 0) continue;
        for (int64_t k = 0; k < c.channels; k++) {
            int64_t first = k / channels * filters;
            int64_t x = ((b * c.h.in + row) * c.w.in + column) * c.channels + k;
            int64_t y = ((b * c.h.out + i) * c.w.out + j) * c.filters + first;
            int64_t tap = ((u * c.w.size + v) * channels + k % channels) * c.filters + first;
            if (by_input(call->op.id))
                for (int64_t f = 0; f < filters; f++) sum[x] += left[y + f] * right[tap + f];
            else if (by_filter(call->op.id))
                for (int64_t f = 0; f < filters; f++) sum[tap + f] += left[x] * right[y + f];
            else
                for (int64_t f = 0; f < filters; f++) sum[y + f] += left[x] * right[tap + f];
        }
    }
    return CORNU_OK;
}

const CornuOpRules cornu__conv2d_rules = {
    conv2d_type, conv2d_flops, CORNU_PRIMITIVE, convolution_reference,
};

/* The forward op must map the result's extents to those of d_y. */
static CornuStatus check_sweeps(const CornuOpCall *call, const CornuType *d_y, const char *names)
{
    const int64_t *extents = call->attributes->conv2d_grad.extents;
    CornuSweep     sweeps[2];
    if (!cornu__sweeps(call, sweeps))
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "with the extents (%lld, %lld), these strides and paddings the "
                             "filter does not fit into x", (long long)extents[0],
                             (long long)extents[1]);
    if (d_y->shape.extent[1] != sweeps[0].out || d_y->shape.extent[2] != sweeps[1].out)
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "the convolution with extents (%lld, %lld) gives %lld by %lld, "
                             "expected the extents of d_y", (long long)extents[0],
                             (long long)extents[1],
                             (long long)sweeps[0].out, (long long)sweeps[1].out);
    return CORNU_OK;
}

/* conv2d_grad_input: d_x is the sum of d_y filter over all products with that element of x;
 * `extents` are H and W of x. */
static CornuStatus conv2d_grad_input_type(const CornuOpCall *call, CornuType *out)
{
    static const char                  names[] = "d_y filter";
    const CornuAttributes_CONV2D_GRAD *grad = &call->attributes->conv2d_grad;
    CORNU__TRY(check_operands(call, grad->dtype, names));
    const int64_t *d_y = call->in[0].shape.extent, *filter = call->in[1].shape.extent;
    if (d_y[3] != filter[3])
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "d_y has %lld channels, the filter has %lld outputs",
                             (long long)d_y[3], (long long)filter[3]);
    CORNU__TRY(check_sweeps(call, &call->in[0], names));
    out[0] = cornu_type(grad->dtype, d_y[0], grad->extents[0], grad->extents[1],
                        cornu__conv_groups(call) * filter[2]);
    return CORNU_OK;
}

const CornuOpRules cornu__conv2d_grad_input_rules = {
    conv2d_grad_input_type, conv2d_flops, CORNU_PRIMITIVE, convolution_reference,
};

/* conv2d_grad_filter: d_filter is the sum of x d_y over all products with that element of the
 * filter, over the whole batch; `extents` are h and w of the filter. */
static CornuStatus conv2d_grad_filter_type(const CornuOpCall *call, CornuType *out)
{
    static const char                  names[] = "x d_y";
    const CornuAttributes_CONV2D_GRAD *grad = &call->attributes->conv2d_grad;
    CORNU__TRY(check_operands(call, grad->dtype, names));
    const int64_t *x = call->in[0].shape.extent, *d_y = call->in[1].shape.extent;
    if (x[0] != d_y[0])
        return cornu__refuse(call, CORNU_ERR_SHAPE, names, "%lld images and %lld gradients",
                             (long long)x[0], (long long)d_y[0]);
    CORNU__TRY(check_sweeps(call, &call->in[1], names));
    out[0] = cornu_type(grad->dtype, grad->extents[0], grad->extents[1],
                        x[3] / cornu__conv_groups(call), d_y[3]);
    return CORNU_OK;
}

const CornuOpRules cornu__conv2d_grad_filter_rules = {
    conv2d_grad_filter_type, conv2d_flops, CORNU_PRIMITIVE, convolution_reference,
};

/* ---- Decompositions of grouped convolutions ---- */

/* x (B, H, W, C) as (B, H, W, C times), each channel repeated `times` times. */
static CornuValue repeat(CornuBuilder *b, CornuValue x, int64_t times)
{
    if (b->status != CORNU_OK) return CORNU_NO_VALUE;
    const CornuShape s = cornu_program_type(b->program, x).shape;
    const int64_t   *e = s.extent;
    CornuValue       each = cornu__build_reshape(b, x, cornu_shape(e[0], e[1], e[2], e[3], 1));
    each = cornu__build_broadcast(b, each, cornu_shape(e[0], e[1], e[2], e[3], times));
    return cornu__build_reshape(b, each, cornu_shape(e[0], e[1], e[2], e[3] * times));
}

/* Depthwise with m filters per channel: one filter per channel of an x whose channels are repeated
 * m times. The gradient of that x is summed over the m, in f32 at least. */
static CornuStatus repeated_channels(CornuProgram *program, const CornuOpCall *call,
                                     const CornuValue *in, CornuValue *out)
{
    const Convolution c = convolution_of(call);
    const int64_t     times = c.filters / c.channels;
    CornuAttributes   each = *call->attributes;
    CornuBuilder      b = { program, CORNU_OK };
    if (!by_input(call->id)) {
        if (by_filter(call->id)) each.grouped_conv2d_grad.groups = c.filters;
        else each.grouped_conv2d.groups = c.filters;
        out[0] = cornu__build(&b, call->id, &each,
                              (CornuValue[]){ repeat(&b, in[0], times), in[1] }, 2);
        return b.status;
    }
    const CornuDtype dtype = each.grouped_conv2d_grad.dtype;
    each.grouped_conv2d_grad.groups = c.filters;
    each.grouped_conv2d_grad.dtype = dtype == CORNU_F64 ? CORNU_F64 : CORNU_F32;
    CornuValue d_x = cornu__build(&b, call->id, &each, in, 2);
    d_x = cornu__build_reshape(&b, d_x, cornu_shape(c.batch, c.h.in, c.w.in, c.channels, times));
    d_x = cornu__build_reduce(&b, CORNU_OP_REDUCE_SUM, d_x, 1 << 4, false);
    out[0] = cornu__build_convert(&b, d_x, dtype);
    return b.status;
}

/* Part `number` of `count` along the last axis. */
static CornuValue channel_part(CornuBuilder *b, CornuValue x, int64_t number, int64_t count)
{
    if (b->status != CORNU_OK) return CORNU_NO_VALUE;
    const CornuShape s = cornu_program_type(b->program, x).shape;
    const int64_t   *e = s.extent;
    CornuAttributes  slice = {
        .slice = { .starts = { 0, 0, 0, e[3] / count * number },
                   .sizes = { e[0], e[1], e[2], e[3] / count } },
    };
    return cornu__build(b, CORNU_OP_SLICE, &slice, &x, 1);
}

/* One convolution per group: operands and result, whichever of x, filter and y they are, have their
 * groups along the last axis. */
static CornuStatus each_group(CornuProgram *program, const CornuOpCall *call, const CornuValue *in,
                              CornuValue *out)
{
    const int64_t   groups = cornu__conv_groups(call);
    const CornuOpId id = by_input(call->id)  ? CORNU_OP_CONV2D_GRAD_INPUT
                       : by_filter(call->id) ? CORNU_OP_CONV2D_GRAD_FILTER : CORNU_OP_CONV2D;
    CornuBuilder    b = { program, CORNU_OK };
    CornuAttributes plain = { 0 }, last_axis = { .axis = { .axis = 3 } };
    if (id == CORNU_OP_CONV2D) memcpy(&plain.conv2d, call->attributes, sizeof plain.conv2d);
    else memcpy(&plain.conv2d_grad, call->attributes, sizeof plain.conv2d_grad);
    CornuValue *parts = cornu__allocate((size_t)groups, sizeof *parts);
    if (!parts) return CORNU_ERR_MEMORY;
    for (int64_t g = 0; g < groups; g++) {
        const CornuValue operands[2] = { channel_part(&b, in[0], g, groups),
                                         channel_part(&b, in[1], g, groups) };
        parts[g] = cornu__build(&b, id, &plain, operands, 2);
    }
    out[0] = groups == 1 ? parts[0]
                         : cornu__build(&b, CORNU_OP_CONCAT, &last_axis, parts, (int)groups);
    cornu__release(parts);
    return b.status;
}

static CornuStatus grouped_decompose(CornuProgram *program, const CornuOpCall *call,
                                     const CornuValue *in, CornuValue *out)
{
    const Convolution c = convolution_of(call);
    return c.groups == c.channels && c.filters > c.channels
         ? repeated_channels(program, call, in, out) : each_group(program, call, in, out);
}

const CornuOpRules cornu__grouped_conv2d_rules = {
    conv2d_type, conv2d_flops, grouped_decompose, convolution_reference,
};
const CornuOpRules cornu__grouped_conv2d_grad_input_rules = {
    conv2d_grad_input_type, conv2d_flops, grouped_decompose, convolution_reference,
};
const CornuOpRules cornu__grouped_conv2d_grad_filter_rules = {
    conv2d_grad_filter_type, conv2d_flops, grouped_decompose, convolution_reference,
};
