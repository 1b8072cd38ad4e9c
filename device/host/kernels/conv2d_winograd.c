/*
 * conv2d and its input gradient of 3 x 3 taps in f32, with fewer multiplications: 2 x 2 outputs are
 * computed from 4 x 4 elements by 16 products of channels in place of 36.
 *
 *     y = A' [ sum over c of (G g_c G') * (B' x_c B) ] A
 *
 * For each of the 16 points the sum is a product of matrices, of tiles by channels with channels by
 * filters, made by the tiles of isa/product.h. Some tiles of outputs at a time are transformed (V),
 * multiplied with one panel of the transformed filter (U) after the other, and the products of a
 * panel (M) become outputs, with the epilogue: V and M stay in the second-level cache. x beside the
 * image is zero: taps on padding are multiplied, too. Before a max pooling of two by two a tile is
 * a window, of which only the largest element leaves the registers; bias and activation come last.
 * With strides, and three taps for each phase, the channels are those of all phases.
 *
 * The transforms add numbers of like size: rounding errors are about twice those of a sum of
 * products. An infinity makes NaN of all outputs of the tiles that read it. Which calls are taken
 * depends on extents without the batch: an image has the same bits in every batch.
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own; Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016.
 * Gain, Zen 4, f32, a step's processor time: U-Net at 8 x 128 x 128 1.30 of it without, resnet20 at
 *     128 1.08; predictions of resnet20, one image 1.37, 256 images 1.15 to 1.2. Zen 3, AVX2:
 *     joined with the pool, mnist_cnn at 128 25.1 ms a step, then 22.1.
 * Gain, Xeon (model 207), one image of resnet20, whose U take all of the second-level cache, one
 *     core: the next panel requested in time 0.456 ms, then 0.433.
 * Gain, Xeon (L2 2 MiB), mnist_cnn_bn at 1024, whose convolutions have strides of 2 and 6 x 6 taps,
 *     phases read and written where they are, x requested: AVX-512, the second convolution with its
 *     transpose 16.6 ms, then 12.6; the gradient of its x, with its gate, 19.0, then 11.2; that of
 *     the third 13.4, then 8. AVX2, the first two 19.4 and 23.6, then 15.8 and 16.9.
 * Loss, Zen 5, AVX-512, with 16 channels: a layer of resnet20 at 128 1.24 times as long; without
 *     it a step 1.07 of the time before, then 1, predictions of 256 images 1.06.
 */
#include "../../integer_internal.h"
#include "../isa/winograd.h"
#include "../machine/prefetch.h"
#include "convolution.h"
#include "kernels.h"
#include "pool.h"
#include "precision.h"

#include <string.h>

enum {
    V_BYTES = 96 << 10,    /* of the second-level cache, beside panels and M */
    PACKED_ROWS = 16,      /* of U, transformed and packed at once           */
    ROWS_AHEAD = 2,        /* of tiles, is what is requested of x            */
    OUT = CORNU_WINOGRAD_OUT, IN = CORNU_WINOGRAD_IN, TAPS = CORNU_WINOGRAD_TAPS,
    POINTS = CORNU_WINOGRAD_POINTS, OUTPUTS = CORNU_WINOGRAD_OUTPUTS,
    FILTER = CORNU_WINOGRAD_FILTER
};

typedef struct {
    const CornuKernelCall *call;
    const CornuProducts   *products;
    const CornuWinograd   *winograd;
    CornuWalk              walk;          /* over phases                                      */
    CornuPhases            in, made;      /* of the rows read, and of the outputs             */
    int64_t                low[2];        /* rows and columns of padding before x             */
    bool                   pools;
    int64_t                out[2];        /* outputs along the height and the width: those that
                                             the pool reads                                   */
    int64_t                tiles[2];      /* of these                                         */
    int64_t                in_padded, out_padded;   /* channels, the last group's rounded up to
                                                       whole registers                        */
    int64_t                count, each;   /* tiles of all images; of a block at most          */
    size_t                 x_bytes, share;   /* of all images; for each tile                  */
    const float           *panels;
    float                 *bias;          /* and after it scales and shifts                   */
    bool                   scales;
    float                 *zeros;         /* of a position beside the image, and of biases of M */
    float                 *v, *m;         /* per thread: points, tiles of a block, channels   */
    int64_t                v_count, m_count;
} Winograd;

static int64_t panel_width(const Winograd *w, int64_t n)
{
    return smaller(2 * w->products->lanes, w->out_padded - n);
}

/* Elements of U before the panel of a point at filter n. */
static int64_t panel_offset(const Winograd *w, int64_t n, int point)
{
    return (n * POINTS + point * panel_width(w, n)) * w->walk.in_channels;
}

/* Rows of x that meet taps, over all outputs of an axis. */
static int64_t taps_met(const CornuAxis *axis)
{
    int64_t met = 0;
    for (int64_t out = 0; out < axis->out; out++)
        for (int64_t slot = 0; slot < axis->taps; slot++)
            met += cornu__axis_row(axis, out, slot) >= 0;
    return met;
}

static int64_t round_up(int64_t a, int64_t unit) { return ceil_divide(a, unit) * unit; }

/* Compares multiply-adds, and those that a pair of transforms takes as long as, with the ones that
 * the taps need; filters in whole registers, without phases those of each phase. Where those of 512
 * bits run whole, transforms, which move more than they add, take as long as more of them. */
static bool pays(const CornuWalk *walk, int64_t phases)
{
    enum { TRANSFORMS = 120, TRANSFORMS_512 = 140, GAIN_PERCENT = 110 };
    const CornuProducts *products = cornu__products();
    const double  transforms = cornu__multiplies_wide(products) ? TRANSFORMS_512 : TRANSFORMS;
    const int64_t C = walk->in_channels, F = walk->out_channels, lanes = products->lanes;
    const double  tiles = (double)ceil_divide(walk->axis[0].out, OUT) *
                          (double)ceil_divide(walk->axis[1].out, OUT);
    const double  direct = (double)taps_met(&walk->axis[0]) * (double)taps_met(&walk->axis[1]) *
                           (double)C * (double)(phases * round_up(F / phases, lanes));
    const double  here = tiles * (POINTS * (double)C * (double)round_up(F, lanes) +
                                  transforms * (double)(C + F));
    return direct * 100 >= here * GAIN_PERCENT;
}

static bool accepts(const CornuOpCall *op, const CornuType *out_type, const CornuMachine *machine)
{
    enum { LEAST_CHANNELS = 12 };
    if (!cornu__product_accepts(op, out_type, machine) || op->in[0].dtype != CORNU_F32 ||
        out_type->dtype != CORNU_F32)
        return false;
    const CornuMultiplication how = cornu__multiplication(machine->multiplier, CORNU_F32);
    CornuWalk                 walk = cornu__walk(op, out_type);
    const int64_t             filters = walk.out_channels;
    cornu__walk_phases(&walk, TAPS);
    for (int a = 0; a < 2; a++)
        if (walk.axis[a].taps != TAPS || walk.axis[a].stride != 1 || walk.axis[a].dilation != 1)
            return false;
    return how.in_place && how.products->depth == 1 && walk.in_channels >= LEAST_CHANNELS &&
           walk.out_channels >= LEAST_CHANNELS &&
           pays(&walk, walk.out_channels / larger(1, filters));
}

/* Tiles of a block: as many as the cache holds, in whole tiles of registers, but several blocks for
 * each thread, or one. */
static int64_t block_tiles(const Winograd *w, int threads)
{
    const int64_t rows = w->products->tile_rows;
    const int64_t each = V_BYTES / (POINTS * w->in_padded * (int64_t)sizeof(float));
    const int64_t wanted = smaller(each, ceil_divide(w->count, 4 * threads));
    return larger(1, smaller(larger(1, wanted / rows) * rows, ceil_divide(w->count, threads)));
}

static void find_extents(Winograd *w, const CornuOpCall *op, const CornuType *out_type, int threads)
{
    const int64_t lanes = cornu__products()->lanes;
    w->products = cornu__products();
    w->winograd = cornu__winograd();
    w->walk = cornu__walk(op, out_type);
    const CornuPhases phases = cornu__walk_phases(&w->walk, TAPS);
    const bool        transposed = w->walk.axis[0].transposed;
    w->in = transposed ? (CornuPhases){ 1, w->walk.in_channels } : phases;
    w->made = transposed ? phases : (CornuPhases){ 1, w->walk.out_channels };
    w->count = w->walk.batch;
    for (int a = 0; a < 2; a++) {
        const CornuAxis *axis = &w->walk.axis[a];
        w->low[a] = transposed ? TAPS - 1 - axis->low : axis->low;
        w->out[a] = w->pools ? axis->out / OUT * OUT : axis->out;
        w->tiles[a] = ceil_divide(w->out[a], OUT);
        w->count *= w->tiles[a];
    }
    w->in_padded = (w->in.groups - 1) * w->in.channels + round_up(w->in.channels, lanes);
    w->out_padded = round_up(w->walk.out_channels, lanes);
    w->each = block_tiles(w, threads);
    w->x_bytes = (size_t)(w->walk.batch * w->walk.axis[0].in * w->walk.axis[1].in *
                          w->walk.in_channels) * sizeof(float);
    w->share = w->x_bytes / (size_t)larger(1, w->count);
}

/* Sizes and, in this order, the parts of the scratch memory; returns its bytes. */
static size_t lay_out(Winograd *w, const CornuOpCall *op, const CornuType *out_type, int threads,
                      char *scratch)
{
    find_extents(w, op, out_type, threads);
    const int64_t rest = w->products->lanes;   /* read after the last channel of a group */
    const size_t  bias = cornu__aligned((size_t)(3 * w->out_padded + rest) * sizeof(float));
    const size_t  zeros = cornu__aligned((size_t)larger(w->in_padded, panel_width(w, 0)) *
                                         sizeof(float));
    w->v_count = POINTS * w->each * w->in_padded;
    w->m_count = POINTS * w->each * panel_width(w, 0) + rest;
    if (scratch) {
        w->bias = (float *)(void *)scratch;
        w->zeros = (float *)(void *)(scratch += bias);
        w->v = (float *)(void *)(scratch + zeros);
        w->m = w->v + threads * w->v_count;
    }
    return bias + zeros + (size_t)(threads * (w->v_count + w->m_count)) * sizeof(float);
}

static size_t winograd_scratch(const CornuOpCall *op, const CornuType *out_type,
                               const CornuMachine *machine)
{
    Winograd w = { .pools = false };
    return lay_out(&w, op, out_type, machine->threads, NULL);
}

static size_t pooled_scratch(const CornuOpCall *op, const CornuType *out_type,
                             const CornuMachine *machine)
{
    Winograd w = { .pools = true };
    return lay_out(&w, op, out_type, machine->threads, NULL);
}

/* Windows of two by two side by side, which are tiles. */
static bool joins(const CornuOpCall *call)
{
    const CornuPool pool = cornu__pool(call);
    return call->id == CORNU_OP_MAX_POOL2D && cornu__pool_is_two_by_two(&pool) &&
           pool.height.out == pool.height.in / OUT && pool.width.out == pool.width.in / OUT;
}

/* ---- The filter ---- */

typedef struct {
    Winograd     winograd;
    const float *filter;
    float       *panels;
} Pack;

static size_t pack_bytes(const CornuOpCall *op, const CornuType *out_type,
                         const CornuMachine *machine)
{
    Winograd w = { .pools = false };
    find_extents(&w, op, out_type, machine->threads);
    return (size_t)(POINTS * w.walk.in_channels * w.out_padded) * sizeof(float);
}

/* The elements of all taps for channel `channel` of x or d_x and from `first` on of the others,
 * `others` of which are neighbours. */
static void find_taps(const Winograd *w, const float *filter, int64_t channel, int64_t first,
                      int64_t others, const float *g[FILTER])
{
    const CornuAxis  *height = &w->walk.axis[0], *width = &w->walk.axis[1];
    const CornuPhases phases = width->transposed ? w->made : w->in;
    const int64_t     group = channel / phases.channels, c = channel % phases.channels;
    for (int t = 0; t < FILTER; t++) {
        const int64_t row = cornu__axis_tap(height, t / TAPS) * phases.groups + group;
        const int64_t tap = row * TAPS + cornu__axis_tap(width, t % TAPS);
        g[t] = filter + (tap * phases.channels + c) * others + first;
    }
}

/* Packs some rows of all points' panels at one filter. Of a gradient the filter's rows are its
 * columns in memory. */
static void pack_rows(void *context, int64_t block, int thread)
{
    (void)thread;
    enum { MOST = PACKED_ROWS * 2 * 16 };
    const Pack     *p = context;
    const Winograd *w = &p->winograd;
    const int64_t   C = w->walk.in_channels, F = w->walk.out_channels;
    const int64_t   blocks = ceil_divide(C, PACKED_ROWS), step = panel_width(w, 0);
    const int64_t   n = block / blocks * step, k = block % blocks * PACKED_ROWS;
    const int64_t   rows = smaller(PACKED_ROWS, C - k), columns = smaller(step, F - n);
    const bool      by_row = !w->walk.axis[1].transposed;   /* filters are neighbours in memory */
    const int64_t   lines = by_row ? rows : columns, length = by_row ? columns : rows;
    float           u[POINTS * MOST];
    for (int64_t i = 0; i < lines; i++) {
        const float *g[FILTER];
        if (by_row) find_taps(w, p->filter, k + i, n, F, g);
        else find_taps(w, p->filter, n + i, k, C, g);
        w->winograd->filter(g, length, u + i * length, MOST);
    }
    for (int point = 0; point < POINTS; point++)
        w->products->pack(p->panels + panel_offset(w, n, point), panel_width(w, n), k, rows,
                          u + point * MOST, by_row ? length : 1, by_row ? 1 : length, columns);
}

static void pack(const CornuKernelCall *call)
{
    Pack p = { .filter = call->in[1], .panels = call->out[0] };
    find_extents(&p.winograd, &call->op, call->out_type, cornu__threads_count(call->threads));
    const Winograd *w = &p.winograd;
    cornu__threads_run(call->threads, ceil_divide(w->walk.in_channels, PACKED_ROWS) *
                       ceil_divide(w->out_padded, panel_width(w, 0)), pack_rows, &p);
}

/* ---- The product ---- */

/* Where tile number `tile` is: its image, and the first row and column of its outputs. */
typedef struct { int64_t b, i, j; } Place;

static Place place_of(const Winograd *w, int64_t tile)
{
    const int64_t rest = tile / w->tiles[1];
    return (Place){ rest / w->tiles[0], rest % w->tiles[0] * OUT, tile % w->tiles[1] * OUT };
}

static void next_place(const Winograd *w, Place *place)
{
    place->j += OUT;
    if (place->j < w->out[1]) return;
    place->j = 0;
    place->i += OUT;
    if (place->i < w->out[0]) return;
    place->i = 0;
    place->b++;
}

/* The elements that a tile reads of a group, zeros for those beside the image. */
static void find_elements(const Winograd *w, const Place *place, int64_t group,
                          const float *x[POINTS])
{
    const int64_t C = w->in.channels, height = w->walk.axis[0].in, width = w->walk.axis[1].in;
    const int64_t top = place->i - w->low[0], left = place->j - w->low[1];
    const int64_t row = w->in.groups * width;   /* positions between rows */
    const float  *all = w->call->in[0];
    const int64_t first = ((place->b * height + top) * row + group * width + left) * C;
    const bool    inside = top >= 0 && top + IN <= height && left >= 0 && left + IN <= width;
    for (int k = 0; k < POINTS && inside; k++) x[k] = all + first + (k / IN * row + k % IN) * C;
    for (int k = 0; k < POINTS && !inside; k++) {
        const int64_t i = k / IN, j = k % IN;
        const bool    exists = top + i >= 0 && top + i < height && left + j >= 0 &&
                               left + j < width;
        x[k] = exists ? all + first + (i * row + j) * C : w->zeros;
    }
}

/* Tiles read x in order, but of several rows at a time, which the processor does not follow. Each
 * requests its share of what those some rows of tiles after it read. */
static void request(const Winograd *w, int64_t tile)
{
    const size_t from = (size_t)(tile + ROWS_AHEAD * w->tiles[1]) * w->share;
    const size_t end = from + w->share < w->x_bytes ? from + w->share : w->x_bytes;
    for (size_t at = from; at < end; at += CORNU_LINE_BYTES)
        cornu__prefetch_near(w->call->in[0], at);
}

/* The zeros after the last channel of a group are those of the next one, made after it. */
static void transform(const Winograd *w, int64_t first, int64_t count, float *v)
{
    Place place = place_of(w, first);
    for (int64_t t = 0; t < count; t++, next_place(w, &place)) {
        request(w, first + t);
        for (int64_t group = 0; group < w->in.groups; group++) {
            const float *x[POINTS];
            find_elements(w, &place, group, x);
            w->winograd->input(x, w->in.channels, v + t * w->in_padded + group * w->in.channels,
                               w->each * w->in_padded);
        }
    }
}

/* M of the panel at filter n. */
static void multiply(const Winograd *w, int64_t n, int64_t count, const float *v, float *m)
{
    const int64_t  width = panel_width(w, n), tiles = ceil_divide(count, w->products->tile_rows);
    const CornuRun run = { 0, 0, w->walk.in_channels };
    CornuAhead     ahead = { .sums = { .rows = 0 } };
    CornuTile      tile = { .x_stride = w->in_padded, .runs = &run, .run_count = 1,
                            .bias = w->zeros, .y_stride = width, .ahead = &ahead,
                            .vectors = (int)(width / w->products->lanes), .columns = (int)width };
    for (int point = 0; point < POINTS; point++) {
        const float *panel = w->panels + panel_offset(w, n, point);
        tile.panel = panel;
        ahead.panel = cornu__ahead_lines(panel + w->walk.in_channels * width,
                                         w->walk.in_channels * width * (int64_t)sizeof *panel /
                                         CORNU_LINE_BYTES);
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t row = t * count / tiles;
            tile.rows = (int)((t + 1) * count / tiles - row);
            tile.x = v + (point * w->each + row) * w->in_padded;
            tile.y = m + (point * w->each + row) * width;
            w->products->tile(&tile);
        }
    }
}

/* Of the outputs at (b, i, j), that of channel c of a group. */
static int64_t output_number(const Winograd *w, int64_t b, int64_t i, int64_t j, int64_t group,
                             int64_t c)
{
    const int64_t row = (b * w->walk.axis[0].out + i) * w->made.groups + group;
    return (row * w->walk.axis[1].out + j) * w->made.channels + c;
}

/* `columns` outputs, of one group, from filter n on, of all tiles. */
static void finish_some(const Winograd *w, int64_t n, int64_t columns, int64_t first,
                        int64_t count, const float *m, int64_t m_row)
{
    const CornuEpilogue *epilogue = w->call->epilogue;
    const int64_t        group = n / w->made.channels, c = n % w->made.channels;
    Place                place = place_of(w, first);
    CornuWinogradOutputs outputs = { .bias = w->bias + n,
                                     .relu = epilogue->activation == CORNU_OP_RELU };
    if (w->scales) {
        outputs.scale = outputs.bias + w->out_padded;
        outputs.shift = outputs.scale + w->out_padded;
    }
    for (int64_t t = 0; t < count; t++, next_place(w, &place)) {
        for (int k = 0; k < OUTPUTS; k++) {
            const int64_t i = place.i + k / OUT, j = place.j + k % OUT;
            const bool    inside = i < w->walk.axis[0].out && j < w->walk.axis[1].out;
            const int64_t at = output_number(w, place.b, i, j, group, c);
            outputs.y[k] = inside ? (float *)w->call->out[0] + at : NULL;
            outputs.term[k] = inside && epilogue->term ? epilogue->term + at : NULL;
        }
        w->winograd->output(m + t * m_row, w->each * m_row, columns, &outputs);
    }
}

/* The outputs of the filters of a panel. */
static void finish(const Winograd *w, int64_t n, int64_t first, int64_t count, const float *m)
{
    const int64_t row = panel_width(w, n), end = smaller(n + row, w->walk.out_channels);
    for (int64_t f = n, next; f < end; f = next) {
        next = smaller(end, (f / w->made.channels + 1) * w->made.channels);
        finish_some(w, f, next - f, first, count, m + f - n, row);
    }
}

/* The windows of the filters of a panel. */
static void pool_windows(const Winograd *w, int64_t n, int64_t first, int64_t count, const float *m)
{
    const int64_t       F = w->walk.out_channels, columns = panel_width(w, n);
    CornuWinogradWindow window = { .bias = w->bias + n,
                                   .relu = w->call->epilogue->activation == CORNU_OP_RELU };
    for (int64_t t = 0; t < count; t++) {
        const int64_t at = (first + t) * F + n;
        window.y = (float *)w->call->out[0] + at;
        window.index = (uint8_t *)w->call->out[1] + at;
        w->winograd->window(m + t * columns, w->each * columns, smaller(columns, F - n), &window);
    }
}

/* What windows do not apply. */
static void finish_windows(const Winograd *w, int64_t first, int64_t count)
{
    const CornuEpilogue rest = cornu__epilogue_after_tiles(w->call->epilogue);
    const int64_t       F = w->walk.out_channels;
    if (rest.activation == CORNU_OP_COUNT) return;
    cornu__epilogue_apply(&rest, &(CornuEpilogueRows){
        .y = (float *)w->call->out[0] + first * F, .rows = count, .columns = F, .stride = F,
        .width = F });
}

/* What tiles of outputs do not apply, to `count` outputs side by side, of a group. */
static void finish_row(const Winograd *w, const CornuEpilogue *rest, int64_t at, int64_t count)
{
    const int64_t F = w->made.channels;
    float        *y = (float *)w->call->out[0] + at;
    if (rest->activation != CORNU_OP_COUNT)
        cornu__epilogue_apply(rest, &(CornuEpilogueRows){
            .y = y, .rows = count, .columns = F, .stride = F, .width = F });
    if (w->call->epilogue->gate)
        cornu__epilogue_gate(w->call->epilogue, CORNU_F32, at, count * F, y);
}

static void finish_rows(const Winograd *w, int64_t first, int64_t count)
{
    const CornuEpilogue rest = cornu__epilogue_after_tiles(w->call->epilogue);
    const int64_t       height = w->walk.axis[0].out, width = w->walk.axis[1].out;
    Place               place = place_of(w, first);
    for (int64_t t = 0; t < count; t++, next_place(w, &place))
        for (int64_t i = place.i; i < smaller(height, place.i + OUT); i++)
            for (int64_t group = 0; group < w->made.groups; group++)
                finish_row(w, &rest, output_number(w, place.b, i, place.j, group, 0),
                           smaller(OUT, width - place.j));
}

static void convolve(void *context, int64_t block, int thread)
{
    const Winograd *w = context;
    const int64_t   blocks = ceil_divide(w->count, w->each);
    const int64_t   first = block * w->count / blocks;
    const int64_t   count = (block + 1) * w->count / blocks - first;
    float          *v = w->v + thread * w->v_count, *m = w->m + thread * w->m_count;
    transform(w, first, count, v);
    for (int64_t n = 0; n < w->out_padded; n += panel_width(w, 0)) {
        multiply(w, n, count, v, m);
        (w->pools ? pool_windows : finish)(w, n, first, count, m);
    }
    (w->pools ? finish_windows : finish_rows)(w, first, count);
}

static CornuStatus conv2d(const CornuKernelCall *call)
{
    Winograd w = { .call = call, .panels = call->in[1], .pools = call->pool };
    lay_out(&w, &call->op, call->out_type, cornu__threads_count(call->threads), call->scratch);
    cornu__biases(call->epilogue, CORNU_F32, w.walk.out_channels, w.out_padded, w.bias);
    w.scales = cornu__scales(call->epilogue, w.walk.out_channels, w.out_padded,
                             w.bias + w.out_padded);
    memset(w.zeros, 0, (size_t)larger(w.in_padded, panel_width(&w, 0)) * sizeof(float));
    if (w.count > 0)
        cornu__threads_run(call->threads, ceil_divide(w.count, w.each), convolve, &w);
    return CORNU_OK;
}

const CornuKernel cornu__host_conv2d_winograd = {
    .accepts = accepts, .scratch = winograd_scratch, .run = conv2d,
    .takes_epilogue = true, .takes_scale = true, .pack_bytes = pack_bytes, .pack = pack, .packs = 1,
    .otherwise = &cornu__host_conv2d_padded,
};
const CornuKernel cornu__host_conv2d_pooled_winograd = {
    .accepts = accepts, .joins = joins, .scratch = pooled_scratch, .run = conv2d,
    .takes_epilogue = true, .pack_bytes = pack_bytes, .pack = pack, .packs = 1,
    .otherwise = &cornu__host_conv2d_pooled_padded,
};
const CornuKernel cornu__host_conv2d_grad_input_winograd = {
    .accepts = accepts, .scratch = winograd_scratch, .run = conv2d, .takes_gate = true,
    .pack_bytes = pack_bytes, .pack = pack, .packs = 1,
    .otherwise = &cornu__host_conv2d_grad_input_few,
};
