/*
 * conv2d of few filters, f32, of one channel or with a stride along the width: as a product over
 * windows that lie next to each other in a row of x.
 *
 *     x (B, H, W, C), filter (h, w, C, F), y (B, Ho, Wo, F), all row-major
 *
 * The F columns of a product would leave most of a register empty. P neighbouring outputs together
 * read one longer window, w + (P - 1) stride positions, and are P F columns side by side in y:
 *
 *     y[i, j P + p, f] = sum over u, k of x[i stride + u - low, j P stride + k - low]
 *                        panel[u, k, p F + f]
 *     panel[u, k, p F + f] = filter[u, k - p stride, f], zero beside the filter
 *
 * The panel is packed in advance; P is what takes the fewest multiplications. A block is a strip of
 * a row of outputs, which copies what it reads of x between zeros. An output's terms are in the
 * order of the taps, with zeros before and after them.
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own; the panel is a Toeplitz matrix, as in Golub and Van Loan, Matrix Computations, 4.7.
 * Gain, Zen 4, one thread, 44,098 samples by one filter of 256 taps, stride 2: 1.86 ms by
 *     conv2d_direct, then 0.14, which is 44 multiply-adds a ns, of 61; AVX2 0.17, portable 0.46.
 */
#include <string.h>

#include "../../../integer_internal.h"
#include "../kernels.h"
#include "../precision.h"
#include "convolution.h"

enum { STRIP_TILES = 8, GAIN = 150 };   /* tiles of a strip; percent, of the estimates */

typedef struct {
    const CornuKernelCall *call;
    const CornuProducts   *products;
    CornuWalk              walk;
    int64_t                together, columns, padded;   /* P, P F, and that in whole registers */
    int64_t                window, reach;   /* elements of a long window; of a strip's rows    */
    int64_t                each, strips;    /* outputs of a strip, strips of a row             */
    float                 *zeros, *bias;
    float                 *x;               /* rows of a strip, per thread                     */
    CornuRun              *runs;            /* per thread                                      */
} Shifted;

static int64_t window_of(const CornuWalk *walk, int64_t together)
{
    const CornuAxis *width = &walk->axis[1];
    return (width->taps + (together - 1) * width->stride) * walk->in_channels;
}

/* Steps on registers for so many outputs. */
static int64_t steps_of(const CornuWalk *walk, int64_t together, int64_t lanes)
{
    return walk->axis[0].taps * window_of(walk, together) *
           ceil_divide(together * walk->out_channels, lanes);
}

static void find_extents(Shifted *s, const CornuQuery *q)
{
    s->products = cornu__multiplication(q->machine.multiplier, CORNU_F32).products;
    s->walk = cornu__walk(q->op, q->out_type);
    const int64_t F = s->walk.out_channels, lanes = s->products->lanes;
    s->together = 1;
    for (int64_t p = 2; p * F <= 2 * lanes; p++)
        if (steps_of(&s->walk, p, lanes) * s->together <
            steps_of(&s->walk, s->together, lanes) * p)
            s->together = p;
    s->columns = s->together * F;
    s->padded = ceil_multiple(s->columns, lanes);
    s->window = window_of(&s->walk, s->together);
    s->each = STRIP_TILES * s->products->tile_rows * s->together;
    s->strips = ceil_divide(s->walk.axis[1].out, s->each);
    s->reach = s->window + (s->each - s->together) * s->walk.axis[1].stride * s->walk.in_channels;
}

static CornuDecline shifted_declines(const CornuQuery *q)
{
    const CornuDecline decline = cornu__product_of_f32_declines(q);
    if (decline.needs) return decline;
    const CornuWalk walk = cornu__walk(q->op, q->out_type);
    const int64_t   most = cornu__products()->lanes;
    if (walk.out_channels < 1 || walk.out_channels > most)
        return cornu__needs_most(most, "filters", walk.out_channels);
    if (walk.axis[1].dilation != 1) return cornu__needs(false, "no dilation along the width");
    return cornu__needs(walk.in_channels == 1 || walk.axis[1].stride > 1,
                        "one channel, or a stride along the width");
}

static double shifted_cost(const CornuQuery *q, CornuCost cost)
{
    Shifted s;
    (void)cost;
    find_extents(&s, q);
    return (double)steps_of(&s.walk, s.together, s.products->lanes) / (double)s.together;
}

static void lay_out(Shifted *s, const CornuQuery *q, CornuScratch *scratch)
{
    find_extents(s, q);
    const int64_t threads = q->machine.threads, taps = s->walk.axis[0].taps;
    s->zeros = cornu__take_floats(scratch, s->padded);
    s->bias = cornu__take_floats(scratch, s->walk.out_channels);
    cornu__take_line(scratch);
    s->x = cornu__take_floats(scratch, threads * taps * s->reach);
    cornu__take_line(scratch);
    s->runs = cornu__take(scratch, (size_t)(threads * taps) * sizeof *s->runs);
}

static size_t shifted_scratch(const CornuQuery *q)
{
    Shifted      s;
    CornuScratch scratch = { 0 };
    lay_out(&s, q, &scratch);
    return scratch.bytes;
}

static size_t pack_bytes(const CornuQuery *q)
{
    Shifted s;
    find_extents(&s, q);
    return cornu__aligned((size_t)(s.walk.axis[0].taps * s.window * s.padded) * sizeof(float));
}

static void pack(const CornuKernelCall *call)
{
    Shifted          s;
    const CornuQuery q = cornu__query_of(call);
    find_extents(&s, &q);
    const int64_t F = s.walk.out_channels, taps = s.walk.axis[1].taps * s.walk.in_channels;
    const int64_t shift = s.walk.axis[1].stride * s.walk.in_channels;
    const float  *filter = call->in[1];
    float        *panel = call->out[0];
    memset(panel, 0, pack_bytes(&q));
    for (int64_t u = 0; u < s.walk.axis[0].taps; u++)
        for (int64_t p = 0; p < s.together; p++)
            for (int64_t k = 0; k < taps; k++)
                memcpy(panel + (u * s.window + p * shift + k) * s.padded + p * F,
                       filter + (u * taps + k) * F, (size_t)F * sizeof *filter);
}

/* What outputs j to j_end of row i read of image b, a row for each tap that has one, and the runs
 * of these; returns their number. */
static int64_t copy_rows(const Shifted *s, int64_t b, int64_t i, int64_t j, int64_t j_end,
                         float *to, CornuRun *runs)
{
    const CornuAxis *height = &s->walk.axis[0], *width = &s->walk.axis[1];
    const int64_t    C = s->walk.in_channels, first = j * width->stride - width->low;
    const int64_t    positions = (ceil_multiple(j_end - j, s->together) - s->together) *
                                 width->stride + s->window / C;
    const int64_t    before = larger(0, smaller(-first, positions));   /* beside x */
    const int64_t    inside = larger(0, smaller(width->in - larger(0, first), positions - before));
    const int64_t    from = inside ? larger(0, first) : 0;
    int64_t          count = 0;
    for (int64_t u = 0; u < height->taps; u++) {
        const int64_t row = cornu__axis_row(height, i, u);
        if (row < 0) continue;
        const float *x = (const float *)s->call->in[0] +
                         ((b * height->in + row) * width->in + from) * C;
        memset(to, 0, (size_t)(before * C) * sizeof *to);
        memcpy(to + before * C, x, (size_t)(inside * C) * sizeof *to);
        memset(to + (before + inside) * C, 0,
               (size_t)((positions - before - inside) * C) * sizeof *to);
        runs[count] = (CornuRun){ count * s->reach, u * s->window, s->window };
        to += s->reach;
        count++;
    }
    return count;
}

/* A strip of a row of outputs. */
static void make_strip(void *context, int64_t block, int thread)
{
    const Shifted   *s = context;
    const CornuAxis *height = &s->walk.axis[0], *width = &s->walk.axis[1];
    const int64_t    F = s->walk.out_channels, P = s->together;
    const int64_t    j = block % s->strips * s->each, j_end = smaller(width->out, j + s->each);
    const int64_t    i = block / s->strips % height->out, b = block / s->strips / height->out;
    const int64_t    at = ((b * height->out + i) * width->out + j) * F;
    float           *x = s->x + thread * height->taps * s->reach;
    float           *y = (float *)s->call->out[0] + at;
    CornuRun        *runs = s->runs + thread * height->taps;
    CornuTile        tile = {
        .x_stride = P * width->stride * s->walk.in_channels, .runs = runs, .panel = s->call->in[1],
        .run_count = copy_rows(s, b, i, j, j_end, x, runs), .bias = s->zeros,
        .y_stride = s->columns, .vectors = (int)(s->padded / s->products->lanes),
    };
    const int64_t windows = (j_end - j) / P, left = (j_end - j) % P;
    tile.columns = (int)s->columns;
    for (int64_t m = 0; m < windows; m += tile.rows) {
        tile.rows = (int)smaller(windows - m, s->products->tile_rows);
        tile.x = x + m * tile.x_stride;
        tile.y = y + m * s->columns;
        s->products->tile(&tile);
    }
    if (left) {
        tile.rows = 1;
        tile.columns = (int)(left * F);
        tile.x = x + windows * tile.x_stride;
        tile.y = y + windows * s->columns;
        s->products->tile(&tile);
    }
    CornuEpilogue epilogue = *s->call->epilogue;
    if (epilogue.bias) epilogue.bias = s->bias;
    cornu__epilogue_apply(&epilogue, &(CornuEpilogueRows){
        .y = y, .rows = j_end - j, .columns = F, .stride = F, .first = at, .width = F });
}

static CornuStatus shifted(const CornuKernelCall *call)
{
    const CornuQuery q = cornu__query_of(call);
    Shifted          s = { .call = call };
    lay_out(&s, &q, &(CornuScratch){ .memory = call->scratch });
    memset(s.zeros, 0, (size_t)s.padded * sizeof *s.zeros);
    cornu__biases(call->epilogue, call->out_type->dtype, s.walk.out_channels, s.walk.out_channels,
                  s.bias);
    cornu__threads_run(call->threads, s.walk.batch * s.walk.axis[0].out * s.strips, make_strip, &s);
    return CORNU_OK;
}

const CornuKernel cornu__host_conv2d_shifted = {
    .name = "conv2d_shifted", .declines = shifted_declines, .cost = shifted_cost,
    .compares = CORNU_COST_STEPS, .gain_percent = GAIN, .scratch = shifted_scratch,
    .run = shifted, .takes_epilogue = true, .takes_scale = true, .pack_bytes = pack_bytes,
    .pack = pack, .packs = 1,
};
