/*
 * Convolutions as products of what is under windows, read where it lies in an image with its
 * padding (image.h), and the filter, packed in panels (isa/int8.h).
 *
 * sum f (x - zero) = sum f (x + 128) - (zero + 128) sum f, so that the last term is part of the
 * bias. Padding is the zero point, which stands for 0. Rows of a window that are padding for a
 * whole row of outputs are left out of both sums.
 */
#include <stdlib.h>

#include "../memory_internal.h"
#include "image.h"
#include "window.h"

/* Images at a time, of half a common second-level cache; or of images of which windows are pixels,
 * which make one long row, a number of whole tiles, of all of it: filters of fully connected layers
 * come from beyond and are read for as many rows as there are. */
enum { IMAGES_BYTES = 512 * 1024, PIXELS_BYTES = 1024 * 1024,
       MOST_PIXELS = 32 * CORNU_INT8_ROWS };

/* Outputs that a pool makes one, along an axis. */
enum { POOL = 2 };

/* A row of outputs: rows [first, end) of their windows, and the biases for these. */
typedef struct {
    int64_t        first, end;
    const int32_t *bias;
} OutputRow;

struct CornuInt8Packed {
    CornuInt8Conv   conv;
    const CornuInt8Loops *loops;          /* that read the filter */
    CornuInt8Image  image;
    bool            flat;                 /* pixels are windows */
    int64_t         rows, columns;        /* of outputs, pooled ones; not of flat images */
    int64_t         step;                 /* bytes from a window to the next */
    int64_t         taps, groups;         /* segments of a row of a window; of each */
    int64_t         panels, block;        /* images at a time, or pixels */
    bool            bounded;
    ptrdiff_t      *offsets;              /* of all segments of a window */
    OutputRow      *output_rows;
    uint8_t        *filter;               /* panels one after the other */
    int32_t        *mantissa, *left, *right, *biases;   /* of whole panels */
    double         *factors;
};

/* ---- Packing ---- */

static int64_t columns_of(const CornuInt8Packed *packed)
{
    return packed->panels * CORNU_INT8_COLUMNS;
}

static int64_t panel_bytes(const CornuInt8Packed *packed)
{
    return packed->conv.window.height * packed->taps * packed->groups * CORNU_INT8_PANEL;
}

/* Puts the filter into panels; sums[h * columns + f] gets the sum of row h of filter f. */
static void pack_filter(CornuInt8Packed *packed, uint32_t *sums)
{
    const CornuInt8Window *w = &packed->conv.window;
    const int64_t columns = columns_of(packed);
    const int64_t run = w->width / packed->taps * w->in_channels;   /* of a segment */
    const int     width = packed->loops->width, group = CORNU_INT8_GROUP / width;   /* elements */
    const int8_t *from = packed->conv.filter;
    for (int64_t f = 0; f < w->out_channels; f++) {
        uint8_t *to = packed->filter + f / CORNU_INT8_COLUMNS * panel_bytes(packed) +
                      f % CORNU_INT8_COLUMNS * CORNU_INT8_GROUP;
        for (int64_t h = 0; h < w->height; h++)
            for (int64_t v = 0; v < packed->taps; v++, to += packed->groups * CORNU_INT8_PANEL)
                for (int64_t k = 0; k < run; k++, from++) {
                    cornu__int8_put(width, to + k / group * CORNU_INT8_PANEL, k % group, *from);
                    sums[h * columns + f] += (uint32_t)*from;
                }
    }
}

/* The largest that a sum of filter f can be. */
static int64_t largest_sum(const CornuInt8Conv *conv, int64_t f, int64_t count)
{
    const int32_t zero = conv->x_zero;
    const int64_t most = zero > 0 ? zero - CORNU_INT8_MIN : CORNU_INT8_MAX - zero;
    int64_t       sum = 0;
    for (int64_t k = 0; k < count; k++) sum += conv->filter[f * count + k] < 0
                                                   ? -(int64_t)conv->filter[f * count + k]
                                                   : conv->filter[f * count + k];
    return sum * most + (conv->bias ? llabs((long long)conv->bias[f]) : 0);
}

static void pack_scales(CornuInt8Packed *packed)
{
    const CornuInt8Conv *conv = &packed->conv;
    const int64_t        count = conv->window.height * conv->window.width *
                                 conv->window.in_channels;
    packed->bounded = true;
    for (int64_t f = 0; f < conv->window.out_channels; f++) {
        if (conv->factors) {
            packed->factors[f] = conv->factors[f];
            continue;
        }
        const CornuMultiplier by = conv->multipliers[f];
        packed->mantissa[f] = by.mantissa;
        packed->left[f] = by.shift > 0 ? by.shift : 0;
        packed->right[f] = by.shift > 0 ? 0 : -by.shift;
        packed->bounded = packed->bounded &&
                          cornu__int8_is_bounded(largest_sum(conv, f, count), packed->left[f],
                                                 packed->right[f], conv->y_zero);
    }
}

/* Rows of windows that some output of row i has in the image. */
static CornuTaps taps_of(const CornuInt8Packed *packed, int64_t i)
{
    const CornuInt8Window *w = &packed->conv.window;
    const int64_t          step = packed->conv.pooled ? POOL : 1;
    CornuTaps              all = { .first = w->height };
    for (int64_t k = i * step; k < (i + 1) * step; k++) {
        const CornuTaps taps = cornu__taps(k, w->stride_height, w->pad_height, w->height,
                                           w->dilation_height, w->in_height);
        if (taps.first >= taps.end) continue;
        if (taps.first < all.first) all.first = taps.first;
        if (taps.end > all.end) all.end = taps.end;
    }
    if (all.first > all.end) all.first = all.end;
    return all;
}

/* The rows of outputs; those next to each other with the same part of windows have biases in
 * common, which are counted. */
static int64_t find_rows(CornuInt8Packed *packed)
{
    int64_t count = 0;
    for (int64_t i = 0; i < packed->rows; i++) {
        const CornuTaps taps = taps_of(packed, i);
        OutputRow      *row = &packed->output_rows[i];
        *row = (OutputRow){ .first = taps.first, .end = taps.end };
        count += i == 0 || row->first != row[-1].first || row->end != row[-1].end;
    }
    return count;
}

static void fill_biases(CornuInt8Packed *packed, const uint32_t *sums)
{
    const CornuInt8Conv *conv = &packed->conv;
    const int64_t        columns = columns_of(packed);
    int32_t             *bias = packed->biases;
    for (int64_t i = 0; i < packed->rows; i++) {
        OutputRow *row = &packed->output_rows[i];
        row->bias = bias;
        if (i > 0 && row->first == row[-1].first && row->end == row[-1].end) {
            row->bias = row[-1].bias;
            continue;
        }
        for (int64_t f = 0; f < conv->window.out_channels; f++) {
            uint32_t total = 0;
            for (int64_t h = row->first; h < row->end; h++) total += sums[h * columns + f];
            bias[f] = (int32_t)((uint32_t)(conv->bias ? conv->bias[f] : 0) -
                                (uint32_t)(conv->x_zero - CORNU_INT8_MIN) * total);
        }
        bias += columns;
    }
}

/* Rows of some thousand bytes side by side would fall into the same sets of a first-level cache,
 * which holds fewer than a tile has: an odd number of lines apart they do not. */
static int64_t step_of(int64_t bytes)
{
    enum { LINE = 64, LONG = 1024 };
    return bytes < LONG ? bytes : ((bytes + LINE - 1) / LINE | 1) * LINE;
}

static void set_extents(CornuInt8Packed *packed)
{
    const CornuInt8Window *w = &packed->conv.window;
    const int64_t          pool = packed->conv.pooled ? POOL : 1;
    const int              width = packed->loops->width;
    packed->image = cornu__int8_image(w, width);
    packed->flat = pool == 1 && w->height == 1 && w->width == 1 && w->stride_height == 1 &&
                   w->stride_width == 1 && w->pad_height == 0 && w->pad_width == 0 &&
                   w->in_height == w->out_height && w->in_width == w->out_width;
    packed->rows = packed->flat ? 1 : w->out_height / pool;
    packed->columns = w->out_width / pool;
    packed->taps = w->dilation_width == 1 ? 1 : w->width;
    packed->groups = (w->width / packed->taps * w->in_channels * width + CORNU_INT8_GROUP - 1) /
                     CORNU_INT8_GROUP;
    packed->panels = (w->out_channels + CORNU_INT8_COLUMNS - 1) / CORNU_INT8_COLUMNS;
    packed->step = packed->flat ? step_of(w->in_channels * width)
                                : w->stride_width * w->in_channels * width;
    const size_t bytes = packed->flat ? (size_t)packed->step : packed->image.bytes;
    packed->block = (packed->flat ? PIXELS_BYTES : IMAGES_BYTES) / (int64_t)bytes;
    if (packed->flat) packed->block -= packed->block % CORNU_INT8_ROWS;
    if (packed->block > MOST_PIXELS) packed->block = MOST_PIXELS;
    if (packed->block < 1) packed->block = packed->flat ? CORNU_INT8_ROWS : 1;
}

static CornuStatus allocate(CornuInt8Packed *packed, uint32_t **sums)
{
    const CornuInt8Window *w = &packed->conv.window;
    const size_t           columns = (size_t)columns_of(packed);
    packed->offsets = cornu__allocate((size_t)(w->height * packed->taps), sizeof *packed->offsets);
    packed->output_rows = cornu__allocate((size_t)packed->rows + 1, sizeof *packed->output_rows);
    packed->filter = cornu__allocate_aligned((size_t)(packed->panels * panel_bytes(packed)));
    packed->mantissa = cornu__allocate(3 * columns, sizeof *packed->mantissa);
    packed->factors = cornu__allocate(columns, sizeof *packed->factors);
    *sums = cornu__allocate((size_t)w->height * columns, sizeof **sums);
    if (!packed->offsets || !packed->output_rows || !packed->filter || !packed->mantissa ||
        !packed->factors || !*sums) return CORNU_ERR_MEMORY;
    packed->left = packed->mantissa + columns;
    packed->right = packed->left + columns;
    packed->biases = cornu__allocate((size_t)find_rows(packed) * columns + 1,
                                     sizeof *packed->biases);
    return packed->biases ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuInt8Packed *cornu__int8_pack_create(const CornuInt8Conv *conv)
{
    CornuInt8Packed *packed = cornu__allocate(1, sizeof *packed);
    uint32_t        *sums = NULL;
    if (!packed) return NULL;
    const CornuInt8Window *w = &conv->window;
    packed->conv = *conv;
    packed->loops = cornu__int8_loops();
    set_extents(packed);
    if (allocate(packed, &sums) != CORNU_OK) {
        cornu__release(sums);
        cornu__int8_pack_free(packed);
        return NULL;
    }
    for (int64_t s = 0; s < w->height * packed->taps; s++)
        packed->offsets[s] = (ptrdiff_t)(s / packed->taps * w->dilation_height) *
                                 packed->image.pitch +
                             (ptrdiff_t)(s % packed->taps * w->dilation_width *
                                         w->in_channels * packed->loops->width);
    pack_filter(packed, sums);
    pack_scales(packed);
    fill_biases(packed, sums);
    cornu__release(sums);
    return packed;
}

void cornu__int8_pack_free(CornuInt8Packed *packed)
{
    if (!packed) return;
    cornu__release(packed->offsets);
    cornu__release(packed->output_rows);
    cornu__release(packed->filter);
    cornu__release(packed->mantissa);
    cornu__release(packed->factors);
    cornu__release(packed->biases);
    cornu__release(packed);
}

bool cornu__int8_is_monotonic(const CornuInt8Packed *packed) { return packed->bounded; }

size_t cornu__int8_conv2d_scratch(const CornuInt8Packed *packed)
{
    const size_t bytes = packed->flat ? (size_t)packed->step : packed->image.bytes;
    return (size_t)packed->block * bytes + CORNU_INT8_PAST;
}

/* ---- Running ---- */

/* The outputs that a thread computes: rows, and pairs of panels. */
typedef struct {
    CornuInt8Range rows, pairs;
} Share;

static Share share_of(const CornuInt8Packed *packed, int64_t rows, CornuInt8Part part)
{
    const int64_t       pairs = (packed->panels + 1) / 2;
    const CornuInt8Part whole = { 0, 1 };
    const bool          by_rows = rows >= 2 * part.count || rows >= pairs;
    return (Share){ cornu__int8_share(rows, by_rows ? part : whole),
                    cornu__int8_share(pairs, by_rows ? whole : part) };
}

/* A tile of a pair of panels, but for its rows and what depends on the row of outputs. */
static CornuInt8Tile tile_of(const CornuInt8Packed *packed, int64_t pair)
{
    const CornuInt8Conv *conv = &packed->conv;
    const int64_t        p = 2 * pair, first = p * CORNU_INT8_COLUMNS;
    const int64_t        left = conv->window.out_channels - first;
    CornuInt8Tile tile = {
        .x_stride = (ptrdiff_t)packed->step,
        .half_stride = (ptrdiff_t)conv->window.stride_height * packed->image.pitch,
        .groups = packed->groups, .panels = p + 1 < packed->panels ? 2 : 1,
        .pooled = conv->pooled,
        .finish = { NULL, packed->mantissa + first, packed->left + first, packed->right + first,
                    conv->y_zero, conv->bounds.low, conv->bounds.high, packed->bounded, false,
                    conv->factors ? packed->factors + first : NULL },
        .y_stride = (ptrdiff_t)conv->window.out_channels
    };
    tile.columns = (int)(left < tile.panels * CORNU_INT8_COLUMNS
                         ? left : tile.panels * CORNU_INT8_COLUMNS);
    return tile;
}

/* The part of the windows that row i of outputs has. */
static void set_row(const CornuInt8Packed *packed, int64_t pair, int64_t i, CornuInt8Tile *tile)
{
    const OutputRow *row = &packed->output_rows[i];
    const int64_t    bytes = panel_bytes(packed);
    tile->offsets = packed->offsets + row->first * packed->taps;
    tile->segments = (row->end - row->first) * packed->taps;
    tile->panel[0] = packed->filter + 2 * pair * bytes +
                     row->first * packed->taps * packed->groups * CORNU_INT8_PANEL;
    tile->panel[1] = tile->panel[0] + bytes;
    tile->finish.bias = row->bias + 2 * pair * CORNU_INT8_COLUMNS;
}

/* A row of outputs in tiles of about the same size. */
static void multiply_row(const CornuInt8Packed *packed, const CornuInt8Loops *loops,
                         CornuInt8Tile *tile, int64_t count, const uint8_t *x, int8_t *y)
{
    const int     pool = tile->pooled ? POOL : 1;
    const int64_t most = CORNU_INT8_ROWS / (pool * pool), tiles = (count + most - 1) / most;
    int64_t       at = 0;
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t end = count * (t + 1) / tiles;
        tile->rows = (int)(end - at) * pool * pool;
        tile->x = x + at * pool * tile->x_stride;
        tile->y = y + at * packed->conv.window.out_channels;
        loops->product(tile);
        at = end;
    }
}

/* `count` pixels, from the first of a block on. */
static void multiply_pixels(const CornuInt8Packed *packed, const CornuInt8Loops *loops,
                            int64_t count, const int8_t *x, int8_t *y, uint8_t *block,
                            CornuInt8Part part)
{
    const int64_t  channels = packed->conv.window.in_channels;
    const int64_t  tiles = (count + CORNU_INT8_ROWS - 1) / CORNU_INT8_ROWS;
    const Share    share = share_of(packed, tiles, part);
    const int64_t  begin = share.rows.begin * CORNU_INT8_ROWS;
    const int64_t  all = share.rows.end * CORNU_INT8_ROWS, end = all < count ? all : count;
    if (packed->step == channels * loops->width)
        loops->raise((end - begin) * channels, x + begin * channels, block);
    else
        for (int64_t m = begin; m < end; m++)
            loops->raise(channels, x + m * channels, block + (m - begin) * packed->step);
    for (int64_t p = share.pairs.begin; p < share.pairs.end; p++) {
        CornuInt8Tile tile = tile_of(packed, p);
        set_row(packed, p, 0, &tile);
        multiply_row(packed, loops, &tile, end - begin, block,
                     y + begin * packed->conv.window.out_channels +
                         2 * p * CORNU_INT8_COLUMNS);
    }
}

static void multiply_images(const CornuInt8Packed *packed, const CornuInt8Loops *loops,
                            int64_t count, const int8_t *x, int8_t *y, uint8_t *images,
                            CornuInt8Part part)
{
    const CornuInt8Window *w = &packed->conv.window;
    const int64_t step = w->stride_height * (packed->conv.pooled ? POOL : 1);
    const int64_t above = packed->image.height - (packed->rows - 1) * step;   /* of one row */
    const int64_t filters = w->out_channels, in = w->in_height * w->in_width * w->in_channels;
    const Share   share = share_of(packed, packed->rows, part);
    if (share.rows.begin >= share.rows.end) return;
    for (int64_t b = 0; b < count; b++)
        cornu__int8_image_fill(&packed->conv, loops, share.rows.begin * step,
                               (share.rows.end - 1) * step + above, x + b * in,
                               images + (size_t)b * packed->image.bytes);
    for (int64_t p = share.pairs.begin; p < share.pairs.end; p++) {
        CornuInt8Tile tile = tile_of(packed, p);
        for (int64_t b = 0; b < count; b++)
            for (int64_t i = share.rows.begin; i < share.rows.end; i++) {
                set_row(packed, p, i, &tile);
                multiply_row(packed, loops, &tile, packed->columns,
                             images + (size_t)b * packed->image.bytes + i * step *
                                          packed->image.pitch,
                             y + (b * packed->rows + i) * packed->columns * filters +
                                 2 * p * CORNU_INT8_COLUMNS);
            }
    }
}

void cornu__int8_conv2d(const CornuInt8Packed *packed, int64_t batch, const int8_t *x, int8_t *y,
                        void *scratch, CornuInt8Part part)
{
    const CornuInt8Window *w = &packed->conv.window;
    const CornuInt8Loops  *loops = packed->loops;
    const int64_t pixels = w->out_height * w->out_width, filters = w->out_channels;
    const int64_t count = packed->flat ? batch * pixels : batch;
    const int64_t in = packed->flat ? w->in_channels : w->in_height * w->in_width * w->in_channels;
    const int64_t out = packed->flat ? filters : packed->rows * packed->columns * filters;
    const int64_t blocks = (count + packed->block - 1) / packed->block;
    for (int64_t block = 0; block < blocks; block++) {   /* of about the same size */
        const int64_t at = count * block / blocks, some = count * (block + 1) / blocks - at;
        (packed->flat ? multiply_pixels : multiply_images)(packed, loops, some, x + at * in,
                                                           y + at * out, scratch, part);
    }
}
