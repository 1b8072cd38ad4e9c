/* Pooling: recording and gradients. */
#include "../tensor_internal.h"

static CornuAttributes attributes_of(const CornuWindow *window)
{
    CornuAttributes a = { 0 };
    for (int i = 0; i < 2; i++) {
        a.window.size[i] = window->size[i];
        a.window.strides[i] = window->strides[i] ? window->strides[i] : 1;
        a.window.low[i] = window->low[i];
        a.window.high[i] = window->high[i];
    }
    return a;
}

/* The attributes of the gradient op: the window, and height and width of x. */
static CornuAttributes gradient_attributes(const CornuRecorded *op)
{
    CornuShape      x = cornu_tensor_shape(op->in[0]);
    CornuAttributes a = { 0 };
    for (int i = 0; i < 2; i++) {
        a.window_grad.size[i] = op->attributes->window.size[i];
        a.window_grad.strides[i] = op->attributes->window.strides[i];
        a.window_grad.low[i] = op->attributes->window.low[i];
        a.window_grad.high[i] = op->attributes->window.high[i];
        a.window_grad.extents[i] = x.extent[i + 1];
    }
    return a;
}

CornuTensor *cornu_op_max_pool2d(CornuTensor *x, const CornuWindow *window)
{
    CornuAttributes attributes = attributes_of(window);
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_MAX_POOL2D, &attributes, &x, 1, out);
}

/* The index says which position of each window was the maximum. */
static void max_pool2d_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuAttributes attributes = gradient_attributes(op);
    CornuTensor    *in[2] = { d[0], op->out[1] }, *out[CORNU_MAX_OUTPUTS];
    if (d[0]) d_x[0] = cornu__record(CORNU_OP_MAX_POOL2D_GRAD, &attributes, in, 2, out);
}
CornuGradient *const cornu__max_pool2d_gradient = max_pool2d_gradient;
CornuGradient *const cornu__max_pool2d_grad_gradient = CORNU_NO_GRADIENT;

CornuTensor *cornu_op_average_pool2d(CornuTensor *x, const CornuWindow *window)
{
    CornuAttributes attributes = attributes_of(window);
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_AVERAGE_POOL2D, &attributes, &x, 1, out);
}

static void average_pool2d_gradient(const CornuRecorded *op, CornuTensor *const *d,
                                    CornuTensor **d_x)
{
    CornuAttributes attributes = gradient_attributes(op);
    CornuTensor    *in[1] = { d[0] }, *out[CORNU_MAX_OUTPUTS];
    d_x[0] = cornu__record(CORNU_OP_AVERAGE_POOL2D_GRAD, &attributes, in, 1, out);
}
CornuGradient *const cornu__average_pool2d_gradient = average_pool2d_gradient;

/* The gradient is linear in d_y, so its own gradient is the pool. */
static void average_pool2d_grad_gradient(const CornuRecorded *op, CornuTensor *const *d,
                                         CornuTensor **d_x)
{
    CornuWindow window = { .size = { 0 } };
    for (int i = 0; i < 2; i++) {
        window.size[i] = op->attributes->window_grad.size[i];
        window.strides[i] = op->attributes->window_grad.strides[i];
        window.low[i] = op->attributes->window_grad.low[i];
        window.high[i] = op->attributes->window_grad.high[i];
    }
    d_x[0] = cornu_op_average_pool2d(d[0], &window);
}
CornuGradient *const cornu__average_pool2d_grad_gradient = average_pool2d_grad_gradient;
