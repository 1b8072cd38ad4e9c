/*
 * Convolutions as products: blocks of outputs of an image, with what is under their windows copied
 * side by side as u8 (im2col), times the filter packed in panels (isa/int8.h).
 *
 * sum f (x - zero) = sum f (x + 128) - (zero + 128) sum f, so that the last term is part of the
 * bias. Elements outside the image are the zero point.
 */
#include <math.h>
#include <string.h>

#include "../memory_internal.h"
#include "isa/int8.h"
#include "kernels.h"
#include "window.h"

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

/* The block's rows; with factors, after them the block's sums. */
static size_t block_bytes(const CornuInt8Packed *packed)
{
    return ((size_t)packed->block_rows * row_bytes(packed) + 63) / 64 * 64;
}

size_t cornu__int8_conv2d_scratch(const CornuInt8Packed *packed)
{
    const size_t sums = packed->conv.factors
                        ? (size_t)(packed->block_rows * packed->conv.window.out_channels) : 0;
    return block_bytes(packed) + sums * sizeof(int32_t);
}

/* What is under the window of one output. `to` keeps whatever is after the last element: the
 * filter is 0 there. */
static void copy_window(const CornuInt8Packed *packed, const CornuInt8Loops *loops,
                        const int8_t *image, int64_t i, int64_t j, uint8_t *to)
{
    const CornuInt8Window *w = &packed->conv.window;
    const int     zero = packed->conv.x_zero - CORNU_INT8_MIN;
    const int64_t channels = w->in_channels, row_width = w->width * channels;
    const CornuTaps rows = cornu__taps(i, w->stride_height, w->pad_height, w->height,
                                       w->dilation_height, w->in_height);
    const CornuTaps columns = cornu__taps(j, w->stride_width, w->pad_width, w->width,
                                          w->dilation_width, w->in_width);
    const bool inside = rows.first == 0 && rows.end == w->height && columns.first == 0 &&
                        columns.end == w->width;
    if (!inside) memset(to, zero, (size_t)(w->height * row_width));
    for (int64_t h = rows.first; h < rows.end; h++) {
        const int8_t *from = image + ((rows.begin + h * w->dilation_height) * w->in_width +
                                      columns.begin) * channels;
        uint8_t *row = to + h * row_width;
        if (w->dilation_width == 1) {
            loops->raise((columns.end - columns.first) * channels, from + columns.first * channels,
                         row + columns.first * channels);
        } else {
            for (int64_t v = columns.first; v < columns.end; v++)
                loops->raise(channels, from + v * w->dilation_width * channels,
                             row + v * channels);
        }
    }
}

static void multiply(const CornuInt8Packed *packed, const CornuInt8Loops *loops, int64_t rows,
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

void cornu__int8_conv2d(const CornuInt8Packed *packed, int64_t batch, const int8_t *x, int8_t *y,
                        void *scratch)
{
    const CornuInt8Window *w = &packed->conv.window;
    const CornuInt8Loops  *loops = cornu__int8_loops();
    const int64_t outputs = w->out_height * w->out_width, total = batch * outputs;
    const int64_t image = w->in_height * w->in_width * w->in_channels;
    uint8_t      *block = scratch;
    int32_t      *sums = packed->conv.factors ? (int32_t *)(block + block_bytes(packed)) : NULL;
    for (int64_t at = 0; at < total; at += packed->block_rows) {
        const int64_t left = total - at;
        const int64_t rows = left < packed->block_rows ? left : packed->block_rows;
        for (int64_t m = 0; m < rows; m++) {
            const int64_t output = (at + m) % outputs;
            copy_window(packed, loops, x + (at + m) / outputs * image, output / w->out_width,
                        output % w->out_width, block + m * (int64_t)row_bytes(packed));
        }
        multiply(packed, loops, rows, block, sums, y + at * w->out_channels);
        if (sums) finish_in_double(&packed->conv, rows, sums, y + at * w->out_channels);
    }
}
