/*
 * Convolutions, one output after the other: what products.c and depthwise.c must agree with, and
 * what runs where they have no faster way (grouped convolutions).
 *
 * Source: LiteRT, tflite/kernels/internal/reference/integer_ops/{conv,depthwise_conv,
 * transpose_conv}.h.
 */
#include <string.h>

#include "kernels.h"
#include "window.h"

static int8_t finish(const CornuInt8Conv *conv, int64_t f, uint32_t sum)
{
    const uint32_t biased = sum + (uint32_t)(conv->bias ? conv->bias[f] : 0);
    const int32_t  y = cornu__fixed_scale((int32_t)biased, conv->multipliers[f]) + conv->y_zero;
    return (int8_t)cornu__fixed_clamp(y, conv->bounds.low, conv->bounds.high);
}

/* Of one output; x: the first of its group's channels of the image, filter: of its filter.
 * x_channels and filter_step: elements from one pixel to the next; channels: those summed. */
static uint32_t sum_of(const CornuInt8Conv *conv, int64_t i, int64_t j, int64_t channels,
                       int64_t filter_step, const int8_t *x, const int8_t *filter)
{
    const CornuInt8Window *w = &conv->window;
    const CornuTaps rows = cornu__taps(i, w->stride_height, w->pad_height, w->height,
                                       w->dilation_height, w->in_height);
    const CornuTaps columns = cornu__taps(j, w->stride_width, w->pad_width, w->width,
                                          w->dilation_width, w->in_width);
    uint32_t sum = 0;
    for (int64_t h = rows.first; h < rows.end; h++)
        for (int64_t v = columns.first; v < columns.end; v++) {
            const int64_t row = rows.begin + h * w->dilation_height;
            const int64_t column = columns.begin + v * w->dilation_width;
            const int8_t *from = x + (row * w->in_width + column) * w->in_channels;
            const int8_t *by = filter + (h * w->width + v) * filter_step;
            for (int64_t c = 0; c < channels; c++)
                sum += (uint32_t)(by[c] * (from[c] - conv->x_zero));
        }
    return sum;
}

void cornu__int8_conv2d_reference(const CornuInt8Conv *conv, const int8_t *x, int8_t *y)
{
    const CornuInt8Window *w = &conv->window;
    const int64_t channels = conv->filter_channels, groups = w->in_channels / channels;
    const int64_t filters = w->out_channels / groups;   /* of a group */
    for (int64_t b = 0; b < w->batch; b++) {
        const int8_t *image = x + b * w->in_height * w->in_width * w->in_channels;
        for (int64_t i = 0; i < w->out_height; i++)
            for (int64_t j = 0; j < w->out_width; j++)
                for (int64_t f = 0; f < w->out_channels; f++)
                    *y++ = finish(conv, f,
                                  sum_of(conv, i, j, channels, channels,
                                         image + f / filters * channels,
                                         conv->filter + f * w->height * w->width * channels));
    }
}

void cornu__int8_depthwise_reference(const CornuInt8Conv *conv, const int8_t *x, int8_t *y)
{
    const CornuInt8Window *w = &conv->window;
    const int64_t multiple = w->out_channels / w->in_channels;
    for (int64_t b = 0; b < w->batch; b++) {
        const int8_t *image = x + b * w->in_height * w->in_width * w->in_channels;
        for (int64_t i = 0; i < w->out_height; i++)
            for (int64_t j = 0; j < w->out_width; j++)
                for (int64_t f = 0; f < w->out_channels; f++)
                    *y++ = finish(conv, f, sum_of(conv, i, j, 1, w->out_channels,
                                                  image + f / multiple, conv->filter + f));
    }
}

size_t cornu__int8_transpose_conv_scratch(const CornuInt8Conv *conv)
{
    const CornuInt8Window *w = &conv->window;
    return (size_t)(w->out_height * w->out_width * w->out_channels) * sizeof(uint32_t);
}

/* Each pixel of x adds its multiple of the filter to the sums of y. */
void cornu__int8_transpose_conv(const CornuInt8Conv *conv, const int8_t *x, int8_t *y,
                                void *scratch)
{
    const CornuInt8Window *w = &conv->window;
    const int64_t   pixels = w->out_height * w->out_width, filters = w->out_channels;
    const ptrdiff_t filter_step = (ptrdiff_t)(w->height * w->width * w->in_channels);
    uint32_t       *sums = scratch;
    for (int64_t b = 0; b < w->batch; b++) {
        memset(sums, 0, cornu__int8_transpose_conv_scratch(conv));
        for (int64_t i = 0; i < w->in_height; i++)
            for (int64_t j = 0; j < w->in_width; j++, x += w->in_channels) {
                const CornuTaps rows = cornu__taps(i, w->stride_height, w->pad_height, w->height,
                                                   1, w->out_height);
                const CornuTaps columns = cornu__taps(j, w->stride_width, w->pad_width, w->width,
                                                      1, w->out_width);
                for (int64_t h = rows.first; h < rows.end; h++)
                    for (int64_t v = columns.first; v < columns.end; v++) {
                        uint32_t *to = sums + ((rows.begin + h) * w->out_width + columns.begin +
                                               v) * filters;
                        const int8_t *by = conv->filter + (h * w->width + v) * w->in_channels;
                        for (int64_t f = 0; f < filters; f++, by += filter_step)
                            for (int64_t c = 0; c < w->in_channels; c++)
                                to[f] += (uint32_t)(by[c] * (x[c] - conv->x_zero));
                    }
            }
        for (int64_t i = 0; i < pixels * filters; i++)
            *y++ = finish(conv, i % filters, sums[i]);
    }
}
