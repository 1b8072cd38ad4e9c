/* Windows of convolutions and pools. */
#include "window_internal.h"

#include <string.h>

static CornuStatus pad_one(const CornuReadStep *step, const char *mode, int i, int64_t extent,
                           CornuReadWindow *window)
{
    const int64_t stride = window->strides[i];
    const int64_t span = (window->kernel[i] - 1) * window->dilation[i] + 1;
    if (!strncmp(mode, "SAME", 4)) {
        const int64_t results = (extent + stride - 1) / stride;
        const int64_t total = (results - 1) * stride + span - extent;
        const int64_t less = total > 0 ? total / 2 : 0, more = total > 0 ? total - less : 0;
        window->low[i] = !strcmp(mode, "SAME_UPPER") ? less : more;
        window->high[i] = !strcmp(mode, "SAME_UPPER") ? more : less;
    }
    const int64_t padded = extent + window->low[i] + window->high[i];
    if (padded < span)
        return cornu__fail(CORNU_ERR_SHAPE, "axis %d has %lld elements with its padding, the "
                           "window spans %lld", i + 2, (long long)padded, (long long)span);
    const bool up = cornu__whole(step, "ceil_mode", 0);
    int64_t    results = (padded - span + (up ? stride - 1 : 0)) / stride + 1;
    /* A window must begin in the data or in the padding before them. */
    if (up && (results - 1) * stride >= extent + window->low[i]) results--;
    const int64_t end = (results - 1) * stride + span;
    window->results[i] = results;
    window->extra[i] = end > padded ? end - padded : 0;
    return CORNU_OK;
}

CornuStatus cornu__read_window(const CornuReadStep *step, CornuShape x, const int64_t *kernel,
                               CornuReadWindow *window)
{
    const char *mode = cornu__word(step, "auto_pad", "NOTSET");
    const int   axes = x.rank - 2;
    int64_t     pads[2 * CORNU_READ_AXES];
    *window = (CornuReadWindow){ .axes = axes };
    if (axes < 1 || axes > CORNU_READ_AXES)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "windows over %d axes, expected 1 to %d", axes,
                           CORNU_READ_AXES);
    CORNU__TRY(cornu__list_for(step, "kernel_shape", axes, 0, 0, window->kernel));
    CORNU__TRY(cornu__list_for(step, "strides", axes, 1, 1, window->strides));
    CORNU__TRY(cornu__list_for(step, "dilations", axes, 1, 1, window->dilation));
    CORNU__TRY(cornu__list_for(step, "pads", 2 * axes, 0, -INT32_MAX, pads));
    for (int i = 0; i < axes; i++) {
        if (kernel) window->kernel[i] = kernel[i];
        if (window->kernel[i] < 1)
            return cornu__fail(CORNU_ERR_FORMAT, "kernel_shape is missing or 0");
        if (!strcmp(mode, "NOTSET")) {
            window->low[i] = pads[i];
            window->high[i] = pads[i + axes];
        }
        CORNU__TRY(pad_one(step, mode, i, x.extent[i + 2], window));
    }
    return CORNU_OK;
}

int64_t cornu__window_size(const CornuReadWindow *window)
{
    int64_t size = 1;
    for (int i = 0; i < window->axes; i++)
        size = size > INT32_MAX ? size : size * window->kernel[i];
    return size;
}

CornuTensor *cornu__window_slice(CornuTensor *padded, const CornuReadWindow *window,
                                 int64_t offset)
{
    for (int i = window->axes - 1; i >= 0; i--) {
        const int64_t at = offset % window->kernel[i] * window->dilation[i];
        offset /= window->kernel[i];
        padded = cornu__strided(padded, i + 2, at, window->results[i], window->strides[i]);
    }
    return padded;
}
