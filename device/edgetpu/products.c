/*
 * Convolutions as products: an image as u8 with its padding, blocks of outputs with what is under
 * their windows copied side by side (im2col), times the filter packed in panels (isa/int8.h).
 *
 * sum f (x - zero) = sum f (x + 128) - (zero + 128) sum f, so that the last term is part of the
 * bias. Padding is the zero point, which stands for 0.
 */
#include <math.h>
#include <string.h>

#include "../memory_internal.h"
#include "isa/int8.h"
#include "kernels.h"

/* Rows of a block: what fits into half of a common second-level cache, in whole tiles. */
enum { BLOCK_BYTES = 256 * 1024, MOST_BLOCK_ROWS = 32 * CORNU_INT8_ROWS };

struct CornuInt8Packed {
    CornuInt8Conv conv;
    int64_t       sum, groups, panels;    /* of products; groups of CORNU_INT8_GROUP */
    int64_t       block_rows;
    int8_t       *filter;                 /* panels one after the other */
    int32_t      *bias, *mantissa, *left, *right;   /* of whole panels */
};

static size_t row_bytes(const CornuInt8Packed *packed)
{
    return (size_t)(packed->groups * CORNU_INT8_GROUP);
}

static void pack_filter(CornuInt8Packed *packed)
{
    const CornuInt8Conv *conv = &packed->conv;
    for (int64_t f = 0; f < conv->window.out_channels; f++) {
        const int8_t *from = conv->filter + f * packed->sum;
        int8_t *to = packed->filter + f / CORNU_INT8_COLUMNS * packed->groups * CORNU_INT8_PANEL +
                     f % CORNU_INT8_COLUMNS * CORNU_INT8_GROUP;
        uint32_t total = 0;
        for (int64_t k = 0; k < packed->sum; k++) {
            to[k / CORNU_INT8_GROUP * CORNU_INT8_PANEL + k % CORNU_INT8_GROUP] = from[k];
            total += (uint32_t)from[k];
        }
        const uint32_t bias = (uint32_t)(conv->bias ? conv->bias[f] : 0);
        packed->bias[f] = (int32_t)(bias - (uint32_t)(conv->x_zero - CORNU_INT8_MIN) * total);
        const CornuMultiplier by = conv->factors ? (CornuMultiplier){ 0, 0 }
                                                 : conv->multipliers[f];
        packed->mantissa[f] = by.mantissa;
        packed->left[f] = by.shift > 0 ? by.shift : 0;
        packed->right[f] = by.shift > 0 ? 0 : -by.shift;
    }
}

CornuInt8Packed *cornu__int8_pack_create(const CornuInt8Conv *conv)
{
    CornuInt8Packed *packed = cornu__allocate(1, sizeof *packed);
    if (!packed) return NULL;
    const CornuInt8Window *w = &conv->window;
    packed->conv = *conv;
    packed->sum = w->height * w->width * w->in_channels;
    packed->groups = (packed->sum + CORNU_INT8_GROUP - 1) / CORNU_INT8_GROUP;
    packed->panels = (w->out_channels + CORNU_INT8_COLUMNS - 1) / CORNU_INT8_COLUMNS;
    int64_t rows = BLOCK_BYTES / (int64_t)row_bytes(packed);
    rows -= rows % CORNU_INT8_ROWS;
    packed->block_rows = rows < CORNU_INT8_ROWS ? CORNU_INT8_ROWS
                         : rows > MOST_BLOCK_ROWS ? MOST_BLOCK_ROWS : rows;

    const size_t columns = (size_t)(packed->panels * CORNU_INT8_COLUMNS);
    packed->filter = cornu__allocate_aligned((size_t)(packed->panels * packed->groups) *
                                             CORNU_INT8_PANEL);
    packed->bias = cornu__allocate(4 * columns, sizeof *packed->bias);
    if (!packed->filter || !packed->bias) {
        cornu__int8_pack_free(packed);
        return NULL;
    }
    packed->mantissa = packed->bias + columns;
    packed->left = packed->mantissa + columns;
    packed->right = packed->left + columns;
    pack_filter(packed);
    return packed;
}

void cornu__int8_pack_free(CornuInt8Packed *packed)
{
    if (!packed) return;
    cornu__release(packed->filter);
    cornu__release(packed->bias);
    cornu__release(packed);
}

/* Extents of the image with its padding, as far as windows reach. */
static int64_t padded_height(const CornuInt8Window *w)
{
    return (w->out_height - 1) * w->stride_height + (w->height - 1) * w->dilation_height + 1;
}

static int64_t padded_width(const CornuInt8Window *w)
{
    return (w->out_width - 1) * w->stride_width + (w->width - 1) * w->dilation_width + 1;
}

/* An image as u8 with its padding. What windows do not reach is left out. */
static void pad_image(const CornuInt8Packed *packed, const CornuInt8Loops *loops, const int8_t *x,
                      uint8_t *to)
{
    const CornuInt8Window *w = &packed->conv.window;
    const int64_t height = padded_height(w), width = padded_width(w), channels = w->in_channels;
    const int64_t right = width - w->pad_width < w->in_width ? width - w->pad_width : w->in_width;
    const bool    whole = w->pad_width == 0 && w->pad_height == 0 && width == w->in_width &&
                       height <= w->in_height;
    if (whole) {
        loops->raise(height * width * channels, x, to);
        return;
    }
    memset(to, packed->conv.x_zero - CORNU_INT8_MIN, (size_t)(height * width * channels));
    for (int64_t i = 0; i < height; i++) {
        const int64_t row = i - w->pad_height;
        if (row < 0 || row >= w->in_height) continue;
        loops->raise(right * channels, x + row * w->in_width * channels,
                     to + (i * width + w->pad_width) * channels);
    }
}

/* Copies a few bytes and up to COPY - 1 more, for which there is room. */
enum { COPY = 16 };

static inline void copy(uint8_t *to, const uint8_t *from, int64_t count)
{
    if (count <= COPY) memcpy(to, from, COPY);
    else               memcpy(to, from, (size_t)count);
}

/* What is under the windows of outputs first to first + rows, side by side. After the last element
 * of each there may be anything: the filter is 0 there. */
static void copy_windows(const CornuInt8Packed *packed, const uint8_t *image, int64_t first,
                         int64_t rows, uint8_t *to)
{
    const CornuInt8Window *w = &packed->conv.window;
    const int64_t channels = w->in_channels, row = padded_width(w) * channels;
    const int64_t taps = w->dilation_width == 1 ? 1 : w->width;   /* that are copied one by one */
    const int64_t run = w->width / taps * channels;
    int64_t i = first / w->out_width, j = first % w->out_width;
    for (int64_t m = 0; m < rows; m++, to += row_bytes(packed)) {
        const uint8_t *from = image + i * w->stride_height * row + j * w->stride_width * channels;
        uint8_t       *at = to;
        for (int64_t h = 0; h < w->height; h++, from += w->dilation_height * row)
            for (int64_t v = 0; v < taps; v++, at += run)
                copy(at, from + v * w->dilation_width * channels, run);
        if (++j == w->out_width) j = 0, i++;
    }
}

/* Whether the image's pixels are what windows have under them. */
static bool is_pointwise(const CornuInt8Packed *packed)
{
    const CornuInt8Window *w = &packed->conv.window;
    return w->height == 1 && w->width == 1 && w->stride_height == 1 && w->stride_width == 1 &&
           w->pad_height == 0 && w->pad_width == 0 && packed->sum % CORNU_INT8_GROUP == 0;
}

static void multiply_int8(const CornuInt8Packed *packed, const CornuInt8Loops *loops, int64_t rows,
                          const uint8_t *x, int32_t *sums, int8_t *y)
{
    const int64_t   filters = packed->conv.window.out_channels;
    const ptrdiff_t stride = (ptrdiff_t)row_bytes(packed);
    const ptrdiff_t panel = (ptrdiff_t)packed->groups * CORNU_INT8_PANEL;
    for (int64_t p = 0; p < packed->panels; p += 2) {
        const int64_t first = p * CORNU_INT8_COLUMNS, left = filters - first;
        CornuInt8Tile tile = {
            .x_stride = stride, .groups = packed->groups,
            .panel = { packed->filter + p * panel, packed->filter + (p + 1) * panel },
            .panels = p + 1 < packed->panels ? 2 : 1,
            .finish = { packed->bias + first, packed->mantissa + first, packed->left + first,
                        packed->right + first, packed->conv.y_zero, packed->conv.bounds.low,
                        packed->conv.bounds.high },
            .y_stride = (ptrdiff_t)filters
        };
        tile.columns = (int)(left < tile.panels * CORNU_INT8_COLUMNS
                             ? left : tile.panels * CORNU_INT8_COLUMNS);
        for (int64_t m = 0; m < rows; m += CORNU_INT8_ROWS) {
            tile.rows = (int)(rows - m < CORNU_INT8_ROWS ? rows - m : CORNU_INT8_ROWS);
            tile.x = x + m * stride;
            tile.y = y + m * filters + first;
            tile.sums = sums ? sums + m * filters + first : NULL;
            loops->product(&tile);
        }
    }
}

static void finish_in_double(const CornuInt8Conv *conv, int64_t rows, const int32_t *sums,
                             int8_t *y)
{
    const int64_t filters = conv->window.out_channels;
    for (int64_t m = 0; m < rows; m++)
        for (int64_t f = 0; f < filters; f++) {
            const double real = round((double)*sums++ * conv->factors[f]) + conv->y_zero;
            *y++ = (int8_t)fmin(fmax(real, conv->bounds.low), conv->bounds.high);
        }
}

/* Images at a time: of one output each, as rows of fully_connected, a block. */
static int64_t images_of(const CornuInt8Packed *packed)
{
    const int64_t outputs = packed->conv.window.out_height * packed->conv.window.out_width;
    return is_pointwise(packed) && outputs < packed->block_rows ? packed->block_rows / outputs : 1;
}

/* Of the scratch: padded images, a block of windows, and its sums if it is finished in double. */
typedef struct {
    size_t image, images, windows, sums;   /* bytes */
} Parts;

static size_t whole(size_t bytes) { return (bytes + COPY + 63) / 64 * 64; }

static Parts parts_of(const CornuInt8Packed *packed)
{
    const CornuInt8Window *w = &packed->conv.window;
    Parts parts = { .image = (size_t)(padded_height(w) * padded_width(w) * w->in_channels) };
    parts.images = whole(parts.image * (size_t)images_of(packed));
    parts.windows = is_pointwise(packed) ? 0
                    : whole((size_t)packed->block_rows * row_bytes(packed));
    if (packed->conv.factors)
        parts.sums = whole((size_t)(packed->block_rows * w->out_channels) * sizeof(int32_t));
    return parts;
}

size_t cornu__int8_conv2d_scratch(const CornuInt8Packed *packed)
{
    const Parts parts = parts_of(packed);
    return parts.images + parts.windows + parts.sums;
}

/* The outputs of images that are in `images`, block by block. */
static void multiply_images(const CornuInt8Packed *packed, const CornuInt8Loops *loops,
                            int64_t outputs, const uint8_t *images, uint8_t *windows,
                            int32_t *sums, int8_t *y)
{
    const int64_t filters = packed->conv.window.out_channels;
    for (int64_t at = 0; at < outputs; at += packed->block_rows) {
        const int64_t  left = outputs - at;
        const int64_t  rows = left < packed->block_rows ? left : packed->block_rows;
        const uint8_t *x = windows;
        if (is_pointwise(packed)) x = images + at * packed->sum;
        else                      copy_windows(packed, images, at, rows, windows);
        multiply_int8(packed, loops, rows, x, sums, y + at * filters);
        if (sums) finish_in_double(&packed->conv, rows, sums, y + at * filters);
    }
}

void cornu__int8_conv2d(const CornuInt8Packed *packed, int64_t batch, const int8_t *x, int8_t *y,
                        void *scratch)
{
    const CornuInt8Window *w = &packed->conv.window;
    const CornuInt8Loops  *loops = cornu__int8_loops();
    const Parts   parts = parts_of(packed);
    const int64_t outputs = w->out_height * w->out_width, most = images_of(packed);
    const int64_t image = w->in_height * w->in_width * w->in_channels;
    uint8_t      *images = scratch;
    int32_t      *sums = parts.sums ? (int32_t *)(images + parts.images + parts.windows) : NULL;
    for (int64_t b = 0; b < batch; b += most) {
        const int64_t count = batch - b < most ? batch - b : most;
        for (int64_t i = 0; i < count; i++)
            pad_image(packed, loops, x + (b + i) * image, images + (size_t)i * parts.image);
        multiply_images(packed, loops, count * outputs, images, images + parts.images, sums,
                        y + b * outputs * w->out_channels);
    }
}
