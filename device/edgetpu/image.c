#include "image.h"

#include <string.h>

CornuInt8Image cornu__int8_image(const CornuInt8Window *w, int width)
{
    CornuInt8Image image = {
        .height = (w->out_height - 1) * w->stride_height + (w->height - 1) * w->dilation_height + 1,
        .width = (w->out_width - 1) * w->stride_width + (w->width - 1) * w->dilation_width + 1
    };
    image.pitch = (ptrdiff_t)(image.width * w->in_channels * width);
    image.bytes = (size_t)(image.height * image.pitch);
    return image;
}

static void fill(int width, int64_t count, int32_t element, uint8_t *to)
{
    if (width == 1)
        memset(to, element, (size_t)count);
    else
        for (int64_t i = 0; i < count; i++) cornu__int8_put(width, to, i, element);
}

void cornu__int8_image_fill(const CornuInt8Conv *conv, const CornuInt8Loops *loops, int64_t first,
                            int64_t end, const int8_t *x, uint8_t *to)
{
    const CornuInt8Window *w = &conv->window;
    const int              width = loops->width;
    const CornuInt8Image   image = cornu__int8_image(w, width);
    const int64_t right = image.width - w->pad_width, channels = w->in_channels;
    const int64_t inside = (right < w->in_width ? right : w->in_width) * channels;
    const int64_t before = w->pad_width * channels, row = w->in_width * channels;
    const int64_t all = image.width * channels;
    const int32_t zero = conv->x_zero - CORNU_INT8_MIN;
    if (image.width == w->in_width && w->pad_width == 0 && first >= w->pad_height &&
        end - w->pad_height <= w->in_height) {
        loops->raise((end - first) * row, x + (first - w->pad_height) * row,
                     to + first * image.pitch);
        return;
    }
    for (int64_t i = first; i < end; i++) {
        const int64_t from = i - w->pad_height;
        uint8_t      *at = to + i * image.pitch;
        if (from < 0 || from >= w->in_height || inside <= 0) {
            fill(width, all, zero, at);
            continue;
        }
        fill(width, before, zero, at);
        loops->raise(inside, x + from * row, at + before * width);
        fill(width, all - before - inside, zero, at + (before + inside) * width);
    }
}
