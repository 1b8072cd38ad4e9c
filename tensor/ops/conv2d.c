/* Convolutions, also those that are their gradients: recording and gradients. */
#include "../tensor_internal.h"

static bool is_grouped(const CornuConvolution *c) { return c->groups != 0 && c->groups != 1; }

/* The attributes of all six ops start the same; the gradients' continue with the extents. */
static CornuAttributes attributes_of(const CornuConvolution *c, CornuDtype dtype, int64_t height,
                                     int64_t width)
{
    CornuAttributes a = {
        .grouped_conv2d_grad = { .dtype = dtype, .extents = { height, width },
                                 .groups = c->groups },
    };
    for (int i = 0; i < 2; i++) {
        a.grouped_conv2d_grad.strides[i] = c->strides[i] ? c->strides[i] : 1;
        a.grouped_conv2d_grad.dilation[i] = c->dilation[i] ? c->dilation[i] : 1;
        a.grouped_conv2d_grad.low[i] = c->low[i];
        a.grouped_conv2d_grad.high[i] = c->high[i];
    }
    return a;
}

static CornuDtype dtype_of(const CornuTensor *x) { return cornu_tensor_type(x).dtype; }

CornuTensor *cornu_op_conv2d(CornuTensor *x, CornuTensor *filter,
                             const CornuConvolution *convolution)
{
    CornuAttributes a = attributes_of(convolution, x ? dtype_of(x) : CORNU_F32, 0, 0);
    CornuTensor    *out[CORNU_MAX_OUTPUTS], *in[2] = { x, filter };
    if (!is_grouped(convolution)) return cornu__record(CORNU_OP_CONV2D, &a, in, 2, out);
    a.grouped_conv2d.groups = convolution->groups;
    return cornu__record(CORNU_OP_GROUPED_CONV2D, &a, in, 2, out);
}

CornuTensor *cornu_op_conv2d_grad_input(CornuTensor *d_y, CornuTensor *filter, int64_t height,
                                        int64_t width, const CornuConvolution *convolution)
{
    const CornuAttributes a = attributes_of(convolution, d_y ? dtype_of(d_y) : CORNU_F32, height,
                                            width);
    CornuTensor *out[CORNU_MAX_OUTPUTS], *in[2] = { d_y, filter };
    return cornu__record(is_grouped(convolution) ? CORNU_OP_GROUPED_CONV2D_GRAD_INPUT
                                                 : CORNU_OP_CONV2D_GRAD_INPUT, &a, in, 2, out);
}

/* Weight gradients are f32, straight from the accumulators; only f64 stays f64. */
CornuTensor *cornu_op_conv2d_grad_filter(CornuTensor *x, CornuTensor *d_y, int64_t height,
                                         int64_t width, const CornuConvolution *convolution)
{
    const bool            wide = x && dtype_of(x) == CORNU_F64;
    const CornuAttributes a = attributes_of(convolution, wide ? CORNU_F64 : CORNU_F32, height,
                                            width);
    CornuTensor *out[CORNU_MAX_OUTPUTS], *in[2] = { x, d_y };
    return cornu__record(is_grouped(convolution) ? CORNU_OP_GROUPED_CONV2D_GRAD_FILTER
                                                 : CORNU_OP_CONV2D_GRAD_FILTER, &a, in, 2, out);
}

/* The three ops belong to one trilinear form, so each differentiates into the other two; grouped
 * ones into grouped ones. */

static CornuConvolution convolution_of(const CornuRecorded *op)
{
    const CornuAttributes *a = op->attributes;
    CornuConvolution c = { .strides = { a->conv2d.strides[0], a->conv2d.strides[1] },
                           .low = { a->conv2d.low[0], a->conv2d.low[1] },
                           .high = { a->conv2d.high[0], a->conv2d.high[1] },
                           .dilation = { a->conv2d.dilation[0], a->conv2d.dilation[1] } };
    if (op->id == CORNU_OP_GROUPED_CONV2D) c.groups = a->grouped_conv2d.groups;
    if (op->id == CORNU_OP_GROUPED_CONV2D_GRAD_INPUT ||
        op->id == CORNU_OP_GROUPED_CONV2D_GRAD_FILTER)
        c.groups = a->grouped_conv2d_grad.groups;
    return c;
}

static void conv2d_gradient(const CornuRecorded *op, CornuTensor *const *d_y, CornuTensor **d_x)
{
    CornuConvolution c = convolution_of(op);
    CornuShape       x = cornu_tensor_shape(op->in[0]), filter = cornu_tensor_shape(op->in[1]);
    CornuTensor     *d = cornu_op_convert(d_y[0], dtype_of(op->in[0]));
    if (op->wanted[0])
        d_x[0] = cornu_op_conv2d_grad_input(d, op->in[1], x.extent[1], x.extent[2], &c);
    if (op->wanted[1])
        d_x[1] = cornu_op_conv2d_grad_filter(op->in[0], d, filter.extent[0], filter.extent[1],
                                             &c);
}
CornuGradient *const cornu__conv2d_gradient = conv2d_gradient;
CornuGradient *const cornu__grouped_conv2d_gradient = conv2d_gradient;

static void conv2d_grad_input_gradient(const CornuRecorded *op, CornuTensor *const *d_y,
                                       CornuTensor **d_x)
{
    CornuConvolution c = convolution_of(op);
    CornuShape       filter = cornu_tensor_shape(op->in[1]);
    CornuTensor     *d = cornu_op_convert(d_y[0], dtype_of(op->in[0]));
    if (op->wanted[0]) d_x[0] = cornu_op_conv2d(d, op->in[1], &c);
    if (op->wanted[1])
        d_x[1] = cornu_op_conv2d_grad_filter(d, op->in[0], filter.extent[0], filter.extent[1],
                                             &c);
}
CornuGradient *const cornu__conv2d_grad_input_gradient = conv2d_grad_input_gradient;
CornuGradient *const cornu__grouped_conv2d_grad_input_gradient = conv2d_grad_input_gradient;

static void conv2d_grad_filter_gradient(const CornuRecorded *op, CornuTensor *const *d_y,
                                        CornuTensor **d_x)
{
    CornuConvolution c = convolution_of(op);
    CornuShape       x = cornu_tensor_shape(op->in[0]);
    CornuTensor     *d = cornu_op_convert(d_y[0], dtype_of(op->in[0]));
    if (op->wanted[0])
        d_x[0] = cornu_op_conv2d_grad_input(op->in[1], d, x.extent[1], x.extent[2], &c);
    if (op->wanted[1]) d_x[1] = cornu_op_conv2d(op->in[0], d, &c);
}
CornuGradient *const cornu__conv2d_grad_filter_gradient = conv2d_grad_filter_gradient;
CornuGradient *const cornu__grouped_conv2d_grad_filter_gradient = conv2d_grad_filter_gradient;
