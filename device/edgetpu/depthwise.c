/* Depthwise convolution by vectors over the channels; with several filters a channel, which is
 * rare, by the reference. */
#include <string.h>

#include "isa/int8.h"
#include "kernels.h"
#include "window.h"

/* Sums of one output; multipliers as isa/int8.h wants them. */
enum { SCRATCH_ARRAYS = 5 };

size_t cornu__int8_depthwise_scratch(const CornuInt8Conv *conv)
{
    return (size_t)conv->window.out_channels * SCRATCH_ARRAYS * sizeof(int32_t);
}

static CornuInt8Finish finish_of(const CornuInt8Conv *conv, int32_t *scratch)
{
    const int64_t filters = conv->window.out_channels;
    int32_t *bias = scratch, *mantissa = bias + filters, *left = mantissa + filters;
    int32_t *right = left + filters;
    for (int64_t f = 0; f < filters; f++) {
        const CornuMultiplier by = conv->multipliers[f];
        bias[f] = conv->bias ? conv->bias[f] : 0;
        mantissa[f] = by.mantissa;
        left[f] = by.shift > 0 ? by.shift : 0;
        right[f] = by.shift > 0 ? 0 : -by.shift;
    }
    return (CornuInt8Finish){ bias, mantissa, left, right, conv->y_zero, conv->bounds.low,
                              conv->bounds.high };
}

void cornu__int8_depthwise(const CornuInt8Conv *conv, const int8_t *x, int8_t *y, void *scratch)
{
    const CornuInt8Window *w = &conv->window;
    const int64_t channels = w->in_channels;
    if (w->out_channels != channels) {
        cornu__int8_depthwise_reference(conv, x, y);
        return;
    }
    const CornuInt8Loops *loops = cornu__int8_loops();
    const CornuInt8Finish finish = finish_of(conv, scratch);
    int32_t              *sums = (int32_t *)scratch + 4 * channels;
    for (int64_t b = 0; b < w->batch; b++, x += w->in_height * w->in_width * channels)
        for (int64_t i = 0; i < w->out_height; i++)
            for (int64_t j = 0; j < w->out_width; j++, y += channels) {
                const CornuTaps rows = cornu__taps(i, w->stride_height, w->pad_height, w->height,
                                                   w->dilation_height, w->in_height);
                const CornuTaps columns = cornu__taps(j, w->stride_width, w->pad_width, w->width,
                                                      w->dilation_width, w->in_width);
                memcpy(sums, finish.bias, (size_t)channels * sizeof *sums);
                for (int64_t h = rows.first; h < rows.end; h++)
                    for (int64_t v = columns.first; v < columns.end; v++) {
                        const int64_t row = rows.begin + h * w->dilation_height;
                        const int64_t column = columns.begin + v * w->dilation_width;
                        loops->multiply_add(channels, x + (row * w->in_width + column) * channels,
                                            conv->x_zero,
                                            conv->filter + (h * w->width + v) * channels, sums);
                    }
                loops->finish(&finish, channels, sums, y);
            }
}
