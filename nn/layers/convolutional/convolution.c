#include "convolution_internal.h"

/* Of a sequence, files give { 0, n }. */
static CornuStatus resolve_extents(const CornuLayer *layer, const char *argument,
                                   const char *square, int64_t *one, int64_t *extents,
                                   int64_t usual)
{
    const char   *name = cornu_layer_name(layer);
    const int     axes = cornu__spatial_axes(layer->kind);
    const int64_t row[2] = { extents[1] ? extents[1] : extents[0] };
    if (axes == 1 && extents[0] > 1 && extents[1])
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is { %lld, %lld }, expected one extent",
                           name, argument, (long long)extents[0], (long long)extents[1]);
    CORNU__TRY(cornu__extents(name, argument, square, *one, axes == 1 ? row : extents, usual,
                              axes == 1 ? 2 : axes, extents));
    if (axes == 1) extents[0] = 1;
    *one = 0;
    return CORNU_OK;
}

CornuStatus cornu__resolve_window(const CornuLayer *layer, CornuPadding padding, int64_t *kernel,
                                  int64_t *kernel_size, int64_t *stride, int64_t *strides,
                                  int64_t *dilation_rate)
{
    int64_t none = 0;
    CORNU__TRY(cornu__check_padding(cornu_layer_name(layer), padding));
    CORNU__TRY(resolve_extents(layer, "kernel_size", "kernel", kernel, kernel_size, 0));
    CORNU__TRY(resolve_extents(layer, "strides", "stride", stride, strides, 1));
    return resolve_extents(layer, "dilation_rate", "dilation_rate", &none, dilation_rate, 1);
}

CornuKernelWindow cornu__kernel_window(CornuPadding padding, const int64_t size[2],
                                       const int64_t strides[2], const int64_t dilation[2])
{
    return (CornuKernelWindow){ padding, { size[0], size[1] }, { strides[0], strides[1] },
                                { dilation[0], dilation[1] } };
}

CornuStatus cornu__check_groups(const char *name, int64_t groups, int64_t filters)
{
    CORNU__TRY(cornu__positive(name, "groups", groups));
    if (filters % groups == 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .groups is %lld, expected a divisor of the %lld "
                       "filters", name, (long long)groups, (long long)filters);
}

CornuStatus cornu__check_channels(CornuShape input, int64_t groups)
{
    const int64_t channels = input.extent[input.rank - 1];
    CornuText     text;
    if (channels % groups == 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "the input %s has %lld channels, expected a multiple of "
                       "the %lld groups", cornu_shape_print(&text, input), (long long)channels,
                       (long long)groups);
}

CornuStatus cornu__kernel_fits(CornuPadding padding, int axes, const int64_t *size,
                               const int64_t *dilation, CornuShape input)
{
    CornuText a, b, c;
    CORNU__TRY(cornu__expect_spatial(input, axes));
    for (int i = 0; i < axes && padding == CORNU_VALID; i++)
        if (cornu__shorter(input.extent[i + 1], dilation[i] * (size[i] - 1) + 1))
            return cornu__fail(CORNU_ERR_SHAPE, "the input %s is smaller than the kernel %s with "
                               "dilation %s", cornu_shape_print(&a, input),
                               cornu_shape_print(&b, cornu_shape_from(axes, size)),
                               cornu_shape_print(&c, cornu_shape_from(axes, dilation)));
    return CORNU_OK;
}

CornuStatus cornu__window_fits(const CornuKernelWindow *window, CornuShape input)
{
    return cornu__kernel_fits(window->padding, 2, window->size, window->dilation, input);
}

CornuStatus cornu__row_window_fits(const CornuKernelWindow *window, CornuShape input)
{
    return cornu__kernel_fits(window->padding, 1, window->size + 1, window->dilation + 1, input);
}

CornuConvolution cornu__convolution(const CornuKernelWindow *window, CornuShape image,
                                    int64_t groups)
{
    CornuConvolution c = { .groups = groups };
    for (int i = 0; i < 2; i++) {
        c.strides[i] = window->strides[i];
        c.dilation[i] = window->dilation[i];
        cornu__padding(window->padding, image.extent[i + 1], window->size[i], c.strides[i],
                       c.dilation[i], &c.low[i], &c.high[i]);
    }
    return c;
}

CornuStatus cornu__declare_weight(CornuLayer *layer, const char *name, CornuShape shape,
                                  CornuInitializer initializer, CornuRegularizer regularizer,
                                  CornuConstraint constraint)
{
    CORNU__TRY(cornu_layer_weight(layer, name, shape, initializer, false));
    return cornu_layer_weight_rules(layer, regularizer, constraint);
}

bool cornu__along_axes(CornuActivation activation)
{
    return cornu__activation_layer(activation) || activation == CORNU_SOFTMAX ||
           activation == CORNU_LOG_SOFTMAX || activation == CORNU_SPARSEMAX ||
           activation == CORNU_GLU;
}

CornuTensor *cornu__bias(CornuLayer *layer, const CornuCall *call, bool none, int bias)
{
    return none ? NULL : cornu_layer_read(layer, call, bias);
}

CornuTensor *cornu__activate_channels(CornuLayer *layer, const CornuCall *call,
                                      CornuActivation activation, CornuTensor *y)
{
    if (!y) return NULL;
    if (!cornu__along_axes(activation)) return cornu_activation_apply(activation, y);
    y = cornu__layer_activate(layer, call, activation, cornu__from_channels_last(layer, y));
    return cornu__to_channels_last(layer, y);
}

CornuTensor *cornu__as_image(CornuTensor *x)
{
    if (!x) return NULL;
    const CornuShape s = cornu_tensor_shape(x);
    return cornu_op_reshape(x, cornu_shape(s.extent[0], 1, s.extent[1], s.extent[2]));
}

CornuTensor *cornu__as_sequence(CornuTensor *x)
{
    if (!x) return NULL;
    const CornuShape s = cornu_tensor_shape(x);
    return cornu_op_reshape(x, cornu_shape(s.extent[0], s.extent[2], s.extent[3]));
}
