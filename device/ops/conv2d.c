/*
 * Convolution of images, and its two gradients.
 *   x (B, H, W, C)    filter (h, w, C, F)    y (B, Ho, Wo, F)
 *   y[b,i,j,f] = sum over u, v, c of x[b, i s + u d - low, j s + v d - low, c] filter[u,v,c,f]
 *   Ho = floor((H + low + high - d (h - 1) - 1) / s) + 1
 * with x zero outside its extents; strides s, dilations d, low and high for height and width
 * each. A negative low or high leaves rows of x unread. Operands have one float dtype, the
 * result has the attribute's; summed in f32 (f64 for f64).
 */
#include "../op_internal.h"
#include "window.h"

/* All extents of a checked call, and the three arrays they belong to. */
typedef struct {
    CornuSweep h, w;
    int64_t    batch, channels, filters;
} Convolution;

static Convolution convolution_of(const CornuOpCall *call)
{
    const CornuType *in = call->in;
    CornuSweep       sweeps[2];
    cornu__sweeps(call, sweeps);
    bool by_filter = call->id == CORNU_OP_CONV2D_GRAD_FILTER;
    return (Convolution){
        .h = sweeps[0], .w = sweeps[1],
        .batch = in[0].shape.extent[0],
        .channels = by_filter ? in[0].shape.extent[3] : in[1].shape.extent[2],
        .filters = in[1].shape.extent[3],
    };
}

/* Every multiply-add of the convolution, those with padding included. */
static int64_t conv2d_flops(const CornuOpCall *call)
{
    Convolution c = convolution_of(call);
    return cornu__flops(8, (const int64_t[]){ 2, c.batch, c.h.out, c.w.out, c.h.size, c.w.size,
                                              c.channels, c.filters });
}

/* What the three ops have in common: two float images or filters of one dtype, and a float
 * dtype for the result. */
static CornuStatus check_operands(const CornuOpCall *call, CornuDtype result, const char *names)
{
    CORNU__TRY(cornu__expect_float(call, 0, names));
    if (call->in[0].dtype != call->in[1].dtype)
        return cornu__refuse(call, CORNU_ERR_DTYPE, names, "the two need one dtype");
    if (!cornu_dtype_is_float(result))
        return cornu__refuse(call, CORNU_ERR_DTYPE, names, "a result of %s, expected a float",
                             cornu_dtype_name(result));
    CORNU__TRY(cornu__expect_rank(call, 0, 4, names));
    return cornu__expect_rank(call, 1, 4, names);
}

static CornuStatus conv2d_type(const CornuOpCall *call, CornuType *out)
{
    static const char names[] = "x filter";
    CornuDtype        dtype = call->attributes->conv2d.dtype;
    CORNU__TRY(check_operands(call, dtype, names));
    const int64_t *x = call->in[0].shape.extent, *filter = call->in[1].shape.extent;
    if (x[3] != filter[2])
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "x has %lld channels, the filter expects %lld", (long long)x[3],
                             (long long)filter[2]);
    CornuSweep sweeps[2];
    if (!cornu__sweeps(call, sweeps))
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "the filter fits nowhere in x with these strides and paddings");
    out[0] = cornu_type(dtype, x[0], sweeps[0].out, sweeps[1].out, filter[3]);
    return CORNU_OK;
}

/* The walk over every product of the convolution serves the three ops: of x, filter and y two
 * are operands, and the third is where their products are summed. */
static CornuStatus convolution_reference(const CornuReferenceCall *call)
{
    Convolution   c = convolution_of(&call->op);
    const int64_t channels = c.channels, filters = c.filters;
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
        for (int64_t k = 0; k < channels; k++) {
            int64_t x = ((b * c.h.in + row) * c.w.in + column) * channels + k;
            int64_t y = ((b * c.h.out + i) * c.w.out + j) * filters;
            int64_t tap = ((u * c.w.size + v) * channels + k) * filters;
            if (call->op.id == CORNU_OP_CONV2D)
                for (int64_t f = 0; f < filters; f++) sum[y + f] += left[x] * right[tap + f];
            else if (call->op.id == CORNU_OP_CONV2D_GRAD_INPUT)
                for (int64_t f = 0; f < filters; f++) sum[x] += left[y + f] * right[tap + f];
            else
                for (int64_t f = 0; f < filters; f++) sum[tap + f] += left[x] * right[y + f];
        }
    }
    return CORNU_OK;
}

const CornuOpRules cornu__conv2d_rules = {
    conv2d_type, conv2d_flops, CORNU_PRIMITIVE, convolution_reference,
};

/* The result of a gradient must be what the forward op maps to y. */
static CornuStatus check_sweeps(const CornuOpCall *call, const CornuType *d_y, const char *names)
{
    const int64_t *extents = call->attributes->conv2d_grad.extents;
    CornuSweep     sweeps[2];
    if (!cornu__sweeps(call, sweeps))
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "no convolution with these strides and paddings gives d_y from the "
                             "extents (%lld, %lld)", (long long)extents[0],
                             (long long)extents[1]);
    if (d_y->shape.extent[1] != sweeps[0].out || d_y->shape.extent[2] != sweeps[1].out)
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "the convolution with extents (%lld, %lld) gives %lld by %lld "
                             "positions", (long long)extents[0], (long long)extents[1],
                             (long long)sweeps[0].out, (long long)sweeps[1].out);
    return CORNU_OK;
}

/* conv2d_grad_input: d_x[..] = the sum of d_y filter over all products that x took part in;
 * `extents` are H and W of x. */
static CornuStatus conv2d_grad_input_type(const CornuOpCall *call, CornuType *out)
{
    static const char                  names[] = "d_y filter";
    const CornuAttributes_CONV2D_GRAD *grad = &call->attributes->conv2d_grad;
    CORNU__TRY(check_operands(call, grad->dtype, names));
    const int64_t *d_y = call->in[0].shape.extent, *filter = call->in[1].shape.extent;
    if (d_y[3] != filter[3])
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "d_y has %lld channels, the filter makes %lld", (long long)d_y[3],
                             (long long)filter[3]);
    CORNU__TRY(check_sweeps(call, &call->in[0], names));
    out[0] = cornu_type(grad->dtype, d_y[0], grad->extents[0], grad->extents[1], filter[2]);
    return CORNU_OK;
}

const CornuOpRules cornu__conv2d_grad_input_rules = {
    conv2d_grad_input_type, conv2d_flops, CORNU_PRIMITIVE, convolution_reference,
};

/* conv2d_grad_filter: d_filter[..] = the sum of x d_y over all products that the tap took part
 * in, over the whole batch; `extents` are h and w of the filter. */
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
    out[0] = cornu_type(grad->dtype, grad->extents[0], grad->extents[1], x[3], d_y[3]);
    return CORNU_OK;
}

const CornuOpRules cornu__conv2d_grad_filter_rules = {
    conv2d_grad_filter_type, conv2d_flops, CORNU_PRIMITIVE, convolution_reference,
};
