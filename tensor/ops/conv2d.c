#include "../tensor_internal.h"

static CornuAttributes attributes_of(const CornuConvolution *c, CornuDtype dtype)
{
    CornuAttributes a = { .conv2d = { .dtype = dtype } };
    for (int i = 0; i < 2; i++) {
        a.conv2d.strides[i] = c->strides[i] ? c->strides[i] : 1;
        a.conv2d.dilation[i] = c->dilation[i] ? c->dilation[i] : 1;
        a.conv2d.low[i] = c->low[i];
        a.conv2d.high[i] = c->high[i];
    }
    return a;
}

static CornuTensor *record_gradient(CornuOpId id, CornuTensor *a, CornuTensor *b, int64_t height,
                                    int64_t width, const CornuConvolution *convolution,
                                    CornuDtype dtype)
{
    CornuAttributes forward = attributes_of(convolution, dtype), attributes = { 0 };
    for (int i = 0; i < 2; i++) {
        attributes.conv2d_grad.strides[i] = forward.conv2d.strides[i];
        attributes.conv2d_grad.dilation[i] = forward.conv2d.dilation[i];
        attributes.conv2d_grad.low[i] = forward.conv2d.low[i];
        attributes.conv2d_grad.high[i] = forward.conv2d.high[i];
    }
    attributes.conv2d_grad.dtype = dtype;
    attributes.conv2d_grad.extents[0] = height;
    attributes.conv2d_grad.extents[1] = width;
    CornuTensor *out[CORNU_MAX_OUTPUTS];
    return cornu__record(id, &attributes, (CornuTensor *[]){ a, b }, 2, out);
}

CornuTensor *cornu_op_conv2d(CornuTensor *x, CornuTensor *filter,
                             const CornuConvolution *convolution)
{
    CornuDtype      dtype = x ? cornu_tensor_type(x).dtype : CORNU_F32;
    CornuAttributes attributes = attributes_of(convolution, dtype);
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_CONV2D, &attributes, (CornuTensor *[]){ x, filter }, 2, out);
}

CornuTensor *cornu_op_conv2d_grad_input(CornuTensor *d_y, CornuTensor *filter, int64_t height,
                                        int64_t width, const CornuConvolution *convolution)
{
    return record_gradient(CORNU_OP_CONV2D_GRAD_INPUT, d_y, filter, height, width, convolution,
                           d_y ? cornu_tensor_type(d_y).dtype : CORNU_F32);
}

/* Weight gradients come in f32 straight from the accumulators; only f64 stays f64. */
CornuTensor *cornu_op_conv2d_grad_filter(CornuTensor *x, CornuTensor *d_y, int64_t height,
                                         int64_t width, const CornuConvolution *convolution)
{
    bool wide = x && cornu_tensor_type(x).dtype == CORNU_F64;
    return record_gradient(CORNU_OP_CONV2D_GRAD_FILTER, x, d_y, height, width, convolution,
                           wide ? CORNU_F64 : CORNU_F32);
}

/* The three ops are the three faces of one trilinear form, so each differentiates into the
 * other two. */

static CornuConvolution convolution_of(const CornuAttributes *a)
{
    CornuConvolution c = { .strides = { a->conv2d.strides[0], a->conv2d.strides[1] },
                           .low = { a->conv2d.low[0], a->conv2d.low[1] },
                           .high = { a->conv2d.high[0], a->conv2d.high[1] },
                           .dilation = { a->conv2d.dilation[0], a->conv2d.dilation[1] } };
    return c;
}

static CornuConvolution convolution_of_gradient(const CornuAttributes *a)
{
    CornuConvolution c = { .strides = { a->conv2d_grad.strides[0], a->conv2d_grad.strides[1] },
                           .low = { a->conv2d_grad.low[0], a->conv2d_grad.low[1] },
                           .high = { a->conv2d_grad.high[0], a->conv2d_grad.high[1] },
                           .dilation = { a->conv2d_grad.dilation[0],
                                         a->conv2d_grad.dilation[1] } };
    return c;
}

static CornuDtype dtype_of(const CornuTensor *x) { return cornu_tensor_type(x).dtype; }

static void conv2d_gradient(const CornuRecorded *op, CornuTensor *const *d_y, CornuTensor **d_x)
{
    CornuConvolution c = convolution_of(op->attributes);
    CornuShape       x = cornu_tensor_shape(op->in[0]), filter = cornu_tensor_shape(op->in[1]);
    CornuTensor     *d = cornu_op_convert(d_y[0], dtype_of(op->in[0]));
    if (op->wanted[0])
        d_x[0] = cornu_op_conv2d_grad_input(d, op->in[1], x.extent[1], x.extent[2], &c);
    if (op->wanted[1])
        d_x[1] = cornu_op_conv2d_grad_filter(op->in[0], d, filter.extent[0], filter.extent[1],
                                             &c);
}
CornuGradient *const cornu__conv2d_gradient = conv2d_gradient;

static void conv2d_grad_input_gradient(const CornuRecorded *op, CornuTensor *const *d_y,
                                       CornuTensor **d_x)
{
    CornuConvolution c = convolution_of_gradient(op->attributes);
    CornuShape       filter = cornu_tensor_shape(op->in[1]);
    CornuTensor     *d = cornu_op_convert(d_y[0], dtype_of(op->in[0]));
    if (op->wanted[0]) d_x[0] = cornu_op_conv2d(d, op->in[1], &c);
    if (op->wanted[1])
        d_x[1] = cornu_op_conv2d_grad_filter(d, op->in[0], filter.extent[0], filter.extent[1],
                                             &c);
}
CornuGradient *const cornu__conv2d_grad_input_gradient = conv2d_grad_input_gradient;

static void conv2d_grad_filter_gradient(const CornuRecorded *op, CornuTensor *const *d_y,
                                        CornuTensor **d_x)
{
    CornuConvolution c = convolution_of_gradient(op->attributes);
    CornuShape       x = cornu_tensor_shape(op->in[0]);
    CornuTensor     *d = cornu_op_convert(d_y[0], dtype_of(op->in[0]));
    if (op->wanted[0])
        d_x[0] = cornu_op_conv2d_grad_input(op->in[1], d, x.extent[1], x.extent[2], &c);
    if (op->wanted[1]) d_x[1] = cornu_op_conv2d(op->in[0], d, &c);
}
CornuGradient *const cornu__conv2d_grad_filter_gradient = conv2d_grad_filter_gradient;
