/* Depthwise convolution with one filter a channel: an image with its padding (image.h), of which
 * 64 channels are multiplied at a time. */
#include <stdlib.h>
#include <string.h>

#include "../memory_internal.h"
#include "image.h"

struct CornuInt8Channels {
    CornuInt8Conv  conv;
    CornuInt8Image image;
    const CornuInt8Loops *loops;     /* that read the filter */
    int64_t        fours, blocks;    /* of taps; of channels */
    bool           bounded;
    ptrdiff_t     *offsets;
    uint8_t       *filter;
    int32_t       *bias, *mantissa, *left, *right;   /* of whole blocks */
};

static int64_t block_bytes(const CornuInt8Channels *packed)
{
    return packed->fours * CORNU_INT8_TAPS * CORNU_INT8_BLOCK * packed->loops->width;
}

/* Channel `within` of a block, as channel `as` of it. */
static void pack_channel(CornuInt8Channels *packed, int64_t block, int within, int as)
{
    const CornuInt8Conv *conv = &packed->conv;
    const bool    interleaved = packed->loops->interleaved;
    const int64_t channel = block * CORNU_INT8_BLOCK + within, channels = conv->window.in_channels;
    const int64_t at = block * CORNU_INT8_BLOCK + cornu__int8_channel_at(interleaved, as);
    const int32_t zero = conv->x_zero;
    uint8_t      *filter = packed->filter + block * block_bytes(packed);
    uint32_t      total = 0;
    int64_t       largest = 0;
    for (int64_t t = 0; t < conv->window.height * conv->window.width; t++) {
        const int8_t tap = conv->filter[t * channels + channel];
        cornu__int8_put(packed->loops->width, filter,
                        t / CORNU_INT8_TAPS * CORNU_INT8_TAPS * CORNU_INT8_BLOCK +
                            cornu__int8_tap_at(interleaved, (int)(t % CORNU_INT8_TAPS), as), tap);
        total += (uint32_t)tap;
        largest += abs(tap);
    }
    const int32_t         bias = conv->bias ? conv->bias[channel] : 0;
    const CornuMultiplier by = conv->multipliers[channel];
    packed->bias[at] = (int32_t)((uint32_t)bias - (uint32_t)(zero - CORNU_INT8_MIN) * total);
    packed->mantissa[at] = by.mantissa;
    packed->left[at] = by.shift > 0 ? by.shift : 0;
    packed->right[at] = by.shift > 0 ? 0 : -by.shift;
    largest = largest * (zero > 0 ? zero - CORNU_INT8_MIN : CORNU_INT8_MAX - zero) +
              llabs((long long)bias);
    packed->bounded = packed->bounded && cornu__int8_is_bounded(largest, packed->left[at],
                                                                packed->right[at], conv->y_zero);
}

static void pack_block(CornuInt8Channels *packed, int64_t block)
{
    const int64_t left = packed->conv.window.in_channels - block * CORNU_INT8_BLOCK;
    const int     channels = (int)(left < CORNU_INT8_BLOCK ? left : CORNU_INT8_BLOCK);
    const int     span = cornu__int8_span(packed->loops->interleaved, channels);
    for (int first = 0; first < CORNU_INT8_BLOCK; first += span)
        for (int c = 0; c < channels; c++) pack_channel(packed, block, c, first + c);
}

CornuInt8Channels *cornu__int8_channels_create(const CornuInt8Conv *conv)
{
    CornuInt8Channels *packed = cornu__allocate(1, sizeof *packed);
    if (!packed) return NULL;
    const CornuInt8Window *w = &conv->window;
    const int64_t          taps = w->height * w->width;
    packed->conv = *conv;
    packed->loops = cornu__int8_loops();
    packed->image = cornu__int8_image(w, packed->loops->width);
    packed->bounded = true;
    packed->fours = (taps + CORNU_INT8_TAPS - 1) / CORNU_INT8_TAPS;
    packed->blocks = (w->in_channels + CORNU_INT8_BLOCK - 1) / CORNU_INT8_BLOCK;
    const size_t channels = (size_t)(packed->blocks * CORNU_INT8_BLOCK);
    packed->offsets = cornu__allocate((size_t)(packed->fours * CORNU_INT8_TAPS),
                                      sizeof *packed->offsets);
    packed->filter = cornu__allocate_aligned((size_t)(packed->blocks * block_bytes(packed)));
    packed->bias = cornu__allocate(4 * channels, sizeof *packed->bias);
    if (!packed->offsets || !packed->filter || !packed->bias) {
        cornu__int8_channels_free(packed);
        return NULL;
    }
    packed->mantissa = packed->bias + channels;
    packed->left = packed->mantissa + channels;
    packed->right = packed->left + channels;
    for (int64_t t = 0; t < taps; t++)   /* those that fill up a four stay 0: any place will do */
        packed->offsets[t] = (ptrdiff_t)(t / w->width * w->dilation_height) * packed->image.pitch +
                             (ptrdiff_t)(t % w->width * w->dilation_width * w->in_channels *
                                         packed->loops->width);
    for (int64_t block = 0; block < packed->blocks; block++) pack_block(packed, block);
    return packed;
}

void cornu__int8_channels_free(CornuInt8Channels *packed)
{
    if (!packed) return;
    cornu__release(packed->offsets);
    cornu__release(packed->filter);
    cornu__release(packed->bias);
    cornu__release(packed);
}

size_t cornu__int8_depthwise_scratch(const CornuInt8Channels *packed)
{
    return packed->image.bytes + CORNU_INT8_PAST;
}

/* A row of outputs. */
static void depthwise_row(const CornuInt8Channels *packed, const uint8_t *x, int8_t *y)
{
    const int            width = packed->loops->width;
    const CornuInt8Conv *conv = &packed->conv;
    const int64_t        channels = conv->window.in_channels;
    for (int64_t block = 0; block < packed->blocks; block++) {
        const int64_t c = block * CORNU_INT8_BLOCK, left = channels - c;
        const CornuInt8Depthwise tile = {
            .x = x + c * width, .offsets = packed->offsets,
            .x_stride = (ptrdiff_t)(conv->window.stride_width * channels * width),
            .taps = conv->window.height * conv->window.width,
            .filter = packed->filter + block * block_bytes(packed),
            .outputs = conv->window.out_width,
            .channels = (int)(left < CORNU_INT8_BLOCK ? left : CORNU_INT8_BLOCK),
            .finish = { packed->bias + c, packed->mantissa + c, packed->left + c,
                        packed->right + c, conv->y_zero, conv->bounds.low, conv->bounds.high,
                        packed->bounded, false, NULL },
            .y = y + c, .y_stride = (ptrdiff_t)channels
        };
        packed->loops->depthwise(&tile);
    }
}

void cornu__int8_depthwise(const CornuInt8Channels *packed, int64_t batch, const int8_t *x,
                           int8_t *y, void *scratch, CornuInt8Part part)
{
    const CornuInt8Window *w = &packed->conv.window;
    const CornuInt8Range   rows = cornu__int8_share(w->out_height, part);
    const int64_t in = w->in_height * w->in_width * w->in_channels;
    const int64_t row = w->out_width * w->out_channels, step = w->stride_height;
    const int64_t above = packed->image.height - (w->out_height - 1) * step;   /* of one row */
    for (int64_t b = 0; b < batch && rows.begin < rows.end; b++) {
        cornu__int8_image_fill(&packed->conv, packed->loops, rows.begin * step,
                               (rows.end - 1) * step + above, x + b * in, scratch);
        for (int64_t i = rows.begin; i < rows.end; i++)
            depthwise_row(packed, (const uint8_t *)scratch + i * step * packed->image.pitch,
                          y + (b * w->out_height + i) * row);
    }
}
