#include "../nn/model/functional.h"
#include "../nn/layers/layers.h"
#include "models.h"

static CornuSymbol *convolution(CornuSymbol *x, int64_t filters, int64_t kernel, int64_t stride)
{
    return cornu_call(cornu_conv2d(filters, kernel, stride, CORNU_SAME,
                                   .kernel_initializer = CORNU_HE_NORMAL,
                                   .kernel_regularizer = cornu_l2(1e-4)), x);
}

static CornuSymbol *normalized(CornuSymbol *x)
{
    return cornu_call(cornu_batch_normalization(), x);
}

static CornuSymbol *rectified(CornuSymbol *x)
{
    return cornu_call(cornu_activation(CORNU_RELU), x);
}

/* x plus two convolutions of it; if these have a stride, x passes through a 1x1 convolution. */
static CornuSymbol *block(CornuSymbol *x, int64_t filters, int64_t stride)
{
    CornuSymbol *y = rectified(normalized(convolution(x, filters, 3, stride)));
    y = normalized(convolution(y, filters, 3, 1));
    if (stride > 1) x = convolution(x, filters, 1, stride);
    return rectified(cornu_call(cornu_add(), x, y));
}

CornuModel *cornu_resnet20_from(const CornuNetworkConfig *config)
{
    (void)config;   /* no dropout */
    CornuSymbol *image = cornu_input(.shape = { 28, 28, 1 }, .scale = 1.0 / 255.0);
    CornuSymbol *x = rectified(normalized(convolution(image, 16, 3, 1)));
    for (int64_t filters = 16; filters <= 64; filters *= 2)
        for (int i = 0; i < 3; i++) x = block(x, filters, filters > 16 && i == 0 ? 2 : 1);
    x = cornu_call(cornu_flatten(), cornu_call(cornu_average_pooling2d(7), x));
    x = cornu_call(cornu_dense(10, .activation = CORNU_SOFTMAX,
                               .kernel_initializer = CORNU_HE_NORMAL), x);
    return cornu_model(.inputs = { image }, .outputs = { x }, .name = "resnet20");
}
