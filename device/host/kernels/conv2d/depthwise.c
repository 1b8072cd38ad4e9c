/*
 * Grouped convolutions with one group for each channel, and their gradients: f32 or bf16 in and
 * out, f32 in the products and sums, on tpu too, where the vector unit would compute them.
 *
 *     x (B, H, W, C), filter (h, w, 1, C), y (B, Ho, Wo, C), d_filter like the filter
 *
 * Nine multiply-adds for each element read leave nothing to tile for: a register holds channels,
 * and some registers of sums are the next outputs of a row, or the taps of d_filter
 * (isa/depthwise.h). Taps on padding are left out. Where channels are fewer than a register holds
 * and divide it, neighbouring outputs fill it: their channels are side by side in x and y, and
 * repeated in the filter. bf16 is widened an image at a time, in the cache. Where the rows of x
 * that a row of outputs meets exceed the first-level cache, a block makes all rows of some channels
 * after the others.
 *
 * The input gradient is the same walk over d_y, transposed. For d_filter the batch is cut into
 * chunks; each makes its own sum, and these are added in order.
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own.
 * Gain, Xeon (model 207), AVX-512, one thread, some channels after the others: 14 x 14 x 672 by
 *     5 x 5 taps 0.23 ms, then 0.16.
 */
#include <string.h>

#include "../../../integer_internal.h"
#include "../../../ops/window.h"
#include "../../machine/bf16.h"
#include "../../machine/cpu.h"
#include "convolution.h"
#include "../../isa/depthwise.h"
#include "../kernels.h"
#include "../precision.h"

enum {
    PART_CHANNELS = 64,      /* of a block that takes some channels after the others, at least,
                                or a multiple               */
    THREAD_SLABS = 4,        /* of a thread, where it can be */
    SUM_BYTES = 16 << 20     /* of all chunks' sums together */
};

/* Outputs j, j + step, … of each row, which meet the same taps of a row of the filter; those side
 * by side count as one, of so many channels. */
typedef struct {
    int64_t j, outputs, channels;
} Columns;

typedef struct {
    const CornuKernelCall *call;
    const CornuDepthwises *kernels;
    CornuWalk              walk;
    bool                   wide_in, wide_out;   /* f32, not bf16 */
    int64_t                channels, taps, x_image, y_row, y_image, slabs, chunks;
    int64_t                part;                /* channels at a time            */
    int64_t                side;                /* outputs that fill a register, in turn; 1 */
    Columns               *columns;             /* at most two for each output of a row */
    int64_t                columns_count;
    CornuDepthwiseRun     *runs;                /* of a row, per thread          */
    CornuDepthwiseTap     *tap;                 /* h w of them for each          */
    float                 *x, *y;               /* of bf16, per thread: the operands' rows that a
                                                   block reads, and a row of y, or of d_filter all
                                                   of d_y */
    const float           *filter, *bias;       /* for `side` outputs            */
    CornuFinish            finish;
    float                 *repeated;            /* these, where they are not operands */
    float                 *sums;
} Depthwise;

static bool is_grad_filter(const CornuOpCall *op)
{
    return op->id == CORNU_OP_GROUPED_CONV2D_GRAD_FILTER;
}

static CornuDecline depthwise_declines(const CornuQuery *q)
{
    const CornuDtype in = q->op->in[0].dtype, out = q->out_type->dtype;
    const int64_t    groups = cornu__conv_groups(q->op);
    if ((in != CORNU_F32 && in != CORNU_BF16) || (out != CORNU_F32 && out != CORNU_BF16))
        return cornu__needs(false, "f32 or bf16");
    return cornu__needs(q->op->in[0].shape.extent[3] == groups &&
                        q->op->in[1].shape.extent[3] == groups &&
                        q->out_type->shape.extent[3] == groups,
                        "one filter for each channel");
}

static void add_columns(Depthwise *d, int64_t j, int64_t outputs, int64_t channels)
{
    if (outputs > 0) d->columns[d->columns_count++] = (Columns){ j, outputs, channels };
}

static void find_columns(Depthwise *d)
{
    const CornuAxis *width = &d->walk.axis[1];
    const int64_t    step = cornu__axis_step(width), C = d->channels, side = d->side;
    d->columns_count = 0;
    for (int64_t phase = 0; phase < smaller(step, width->out); phase++)
        for (int64_t j = phase; j < width->out; j = width->ends[j]) {
            const int64_t outputs = (width->ends[j] - j) / step, rest = outputs % side;
            add_columns(d, j, outputs / side, side * C);
            add_columns(d, j + outputs - rest, rest > 0, rest * C);
        }
}

/* How rows and channels are cut: rows alone, or where those of x that meet a row of outputs take
 * more than half of the first-level cache, also channels, unless a row is then made something else.
 */
static void cut(Depthwise *d, const CornuQuery *q, bool by_filter)
{
    const CornuAxis *height = &d->walk.axis[0], *width = &d->walk.axis[1];
    const int64_t    batch = larger(1, d->walk.batch), near = cornu__cpu()->l1d / 2;
    const int64_t    each = 4 * larger(1, height->taps * width->in);   /* bytes of a channel */
    const bool       whole = !d->wide_out || by_filter || each * d->channels <= near ||
                             q->op->id != CORNU_OP_GROUPED_CONV2D;
    const int64_t    most = larger(1, near / each / PART_CHANNELS) * PART_CHANNELS;
    d->part = whole ? d->channels : most;
    d->slabs = smaller(height->out, ceil_divide(THREAD_SLABS * q->machine.threads, batch));
}

/* Outputs whose channels are side by side in x and y, and fill a register together. */
static int64_t outputs_aside(const Depthwise *d)
{
    const CornuAxis *width = &d->walk.axis[1];
    const int64_t    lanes = cornu__products()->lanes, C = d->channels;
    return width->stride == 1 && C > 0 && C < lanes && lanes % C == 0 ? lanes / C : 1;
}

/* Sizes, and the parts of the scratch memory. */
static void lay_out(Depthwise *d, const CornuQuery *q, CornuScratch *scratch)
{
    const bool by_filter = is_grad_filter(q->op);
    d->kernels = cornu__depthwises();
    d->walk = cornu__walk(q->op, q->out_type);
    const CornuAxis *height = &d->walk.axis[0], *width = &d->walk.axis[1];
    const int64_t    threads = q->machine.threads, C = d->walk.in_channels;
    d->channels = C;
    d->taps = height->taps * width->taps;
    d->wide_in = q->op->in[0].dtype == CORNU_F32;
    d->wide_out = q->out_type->dtype == CORNU_F32;
    d->x_image = height->in * width->in * C;
    d->y_row = width->out * C;
    d->y_image = height->out * d->y_row;
    d->side = by_filter ? 1 : outputs_aside(d);
    cut(d, q, by_filter);
    d->chunks = smaller(d->walk.batch, SUM_BYTES / (4 * d->taps * C));
    d->chunks = larger(1, d->chunks);
    const int64_t x = d->wide_in ? 0 : d->x_image;
    const int64_t y = by_filter ? (d->wide_in ? 0 : d->y_image) : (d->wide_out ? 0 : d->y_row);
    d->columns = cornu__take(scratch, 2 * (size_t)width->out * sizeof *d->columns);
    const int64_t runs = threads * 2 * width->out;
    d->runs = cornu__take(scratch, (size_t)runs * sizeof *d->runs);
    d->tap = cornu__take(scratch, (size_t)(runs * d->taps) * sizeof *d->tap);
    void *met = cornu__take(scratch, cornu__walk_size(&d->walk));
    if (met) {
        cornu__walk_start(&d->walk, met);
        find_columns(d);
    }
    d->x = cornu__take_floats(scratch, threads * x);
    d->y = cornu__take_floats(scratch, threads * y);
    d->sums = cornu__take_floats(scratch, by_filter ? d->chunks * d->taps * C : 0);
    d->repeated = cornu__take_floats(scratch, by_filter ? 0 : (d->taps + 1 + CORNU_FINISH_COLUMNS) *
                                                              d->side * C);
}

static size_t depthwise_scratch(const CornuQuery *q)
{
    Depthwise    d;
    CornuScratch scratch = { 0 };
    lay_out(&d, q, &scratch);
    return scratch.bytes;
}

/* The outputs of row i in columns k. */
static CornuDepthwiseRun run_of(const Depthwise *d, int64_t i, int64_t k, int thread)
{
    const CornuAxis   *height = &d->walk.axis[0], *width = &d->walk.axis[1];
    const int64_t      C = d->channels, row = width->in * C, aside = d->side * C;
    const Columns     *columns = &d->columns[k];
    const CornuMet     rows = height->met[i], met = width->met[columns->j];
    CornuDepthwiseTap *taps = d->tap + (thread * 2 * width->out + k) * d->taps;
    CornuDepthwiseRun  run = {
        .taps = taps, .outputs = columns->outputs, .channels = columns->channels,
        .x_step = (width->transposed ? 1 : width->stride) * aside,
        .y_step = cornu__axis_step(width) * aside,
    };
    if (width->row_step * C == run.x_step) run.row_taps = met.count;
    for (int64_t u = 0; u < rows.count; u++) {
        const int64_t from = (rows.row + u * height->row_step) * row;
        const int64_t filter = cornu__axis_tap(height, rows.slot + u * height->slot_step) *
                               width->taps * aside;
        for (int64_t v = 0; v < met.count; v++)
            taps[run.tap_count++] = (CornuDepthwiseTap){
                from + (met.row + v * width->row_step) * C,
                filter + cornu__axis_tap(width, met.slot + v * width->slot_step) * aside,
            };
    }
    return run;
}

/* Rows [from, to) of image b of an operand, with so many elements a row and an image, in f32; in
 * place if there is nothing to widen. */
static const float *rows_of(const Depthwise *d, int operand, int64_t image, int64_t b, int64_t row,
                            int64_t from, int64_t to, float *made)
{
    const void *all = d->call->in[operand];
    if (d->wide_in) return (const float *)all + b * image;
    if (from < to)
        cornu__bf16()->widen((const uint16_t *)all + b * image + from * row, (to - from) * row,
                             made + from * row);
    return made;
}

/* Row i of image b from x, as the thread's runs say, of `channels` channels from c on. */
static void convolve_row(const Depthwise *d, int64_t b, int64_t i, const float *x, int64_t c,
                         int64_t channels, int thread)
{
    const CornuEpilogue     *epilogue = d->call->epilogue;
    const CornuDepthwiseRun *runs = d->runs + thread * 2 * d->walk.axis[1].out;
    const int64_t C = d->channels, at = b * d->y_image + i * d->y_row;
    float        *y = d->wide_out ? (float *)d->call->out[0] + at : d->y + thread * d->y_row;
    CornuDepthwiseOperands o = { .x = x + c, .filter = d->filter + c,
                                 .bias = d->bias + c,
                                 .finish = cornu__finish_from(&d->finish, c) };
    for (int64_t k = 0; k < d->columns_count; k++) {
        const int64_t     to = d->columns[k].j * C + c;
        CornuDepthwiseRun run = runs[k];
        if (channels < C) run.channels = channels;
        o.y = y + to;
        o.term = epilogue->term ? epilogue->term + at + to : NULL;
        d->kernels->convolve(&run, &o);
    }
    const CornuEpilogue rest = cornu__epilogue_after_tiles(epilogue);
    if (rest.activation != CORNU_OP_COUNT)
        cornu__epilogue_apply(&rest, &(CornuEpilogueRows){
            .y = y + c, .rows = d->walk.axis[1].out, .columns = channels, .stride = C,
            .width = C });
    void *made = d->wide_out ? (void *)y : (uint16_t *)d->call->out[0] + at;
    if (!d->wide_out) cornu__bf16()->narrow(y, d->y_row, made);
    if (epilogue->gate)
        cornu__epilogue_gate(epilogue, d->call->out_type->dtype, at, d->y_row, made);
}

/* The rows from i to i_end whose taps are those of row i, moved. */
static int64_t rows_alike(const CornuAxis *height, int64_t i, int64_t i_end)
{
    return cornu__axis_step(height) > 1 ? 1 : smaller(height->ends[i], i_end) - i;
}

/* Some rows of one image. */
static void convolve(void *context, int64_t block, int thread)
{
    const Depthwise *d = context;
    const CornuAxis *height = &d->walk.axis[0], *width = &d->walk.axis[1];
    const int64_t    b = block / d->slabs, slab = block % d->slabs, C = d->channels;
    const int64_t    begin = slab * height->out / d->slabs;
    const int64_t    end = (slab + 1) * height->out / d->slabs;
    const int64_t    next = (height->transposed ? 1 : height->stride) * width->in * C;
    int64_t from, to;
    cornu__rows_met(height, begin, end, &from, &to);
    const float *x = rows_of(d, 0, d->x_image, b, width->in * C, from, to,
                             d->x + thread * d->x_image);
    for (int64_t c = 0; c < C; c += d->part)
        for (int64_t i = begin, alike; i < end; i += alike) {
            alike = rows_alike(height, i, end);
            for (int64_t k = 0; k < d->columns_count; k++)
                d->runs[thread * 2 * width->out + k] = run_of(d, i, k, thread);
            for (int64_t m = 0; m < alike; m++)
                convolve_row(d, b, i + m, x + m * next, c, smaller(d->part, C - c), thread);
        }
}

/* Of the first of the outputs side by side for the others; returns what follows. */
static float *repeat(const Depthwise *d, float *first)
{
    const int64_t C = d->channels;
    for (int64_t i = 1; i < d->side; i++) memcpy(first + i * C, first, (size_t)C * sizeof *first);
    return first + d->side * C;
}

static const float *repeated(const Depthwise *d, const float *from, float **to)
{
    if (!from || d->side == 1) return from;
    float *made = memcpy(*to, from, (size_t)d->channels * sizeof *from);
    *to = repeat(d, made);
    return made;
}

/* The filter, the bias and what finishes sums, as runs read them. */
static void find_operands(Depthwise *d)
{
    const CornuKernelCall *call = d->call;
    const int64_t          C = d->channels;
    float                 *to = d->repeated;
    d->filter = d->wide_in && d->side == 1 ? call->in[1] : to;
    for (int64_t t = 0; t < d->taps && d->filter == d->repeated; t++, to = repeat(d, to))
        if (d->wide_in) memcpy(to, (const float *)call->in[1] + t * C, (size_t)C * sizeof *to);
        else cornu__bf16()->widen((const uint16_t *)call->in[1] + t * C, C, to);
    d->bias = to;
    cornu__biases(call->epilogue, call->out_type->dtype, C, C, to);
    to = repeat(d, to);
    d->finish = cornu__epilogue_finish(call->epilogue);
    d->finish.scale = repeated(d, d->finish.scale, &to);
    d->finish.shift = repeated(d, d->finish.shift, &to);
    d->finish.slope = repeated(d, d->finish.slope, &to);
}

static CornuStatus depthwise(const CornuKernelCall *call)
{
    Depthwise        d = { .call = call };
    const CornuQuery q = cornu__query_of(call);
    lay_out(&d, &q, &(CornuScratch){ .memory = call->scratch });
    find_operands(&d);
    cornu__threads_run(call->threads, d.walk.batch * d.slabs, convolve, &d);
    return CORNU_OK;
}

/* ---- The gradient of the filter ---- */

static void sum_chunk(void *context, int64_t chunk, int thread)
{
    const Depthwise *d = context;
    const CornuAxis *height = &d->walk.axis[0], *width = &d->walk.axis[1];
    const int64_t    C = d->channels, batch = d->walk.batch;
    float           *sums = d->sums + chunk * d->taps * C;
    memset(sums, 0, (size_t)(d->taps * C) * sizeof(float));
    for (int64_t b = chunk * batch / d->chunks; b < (chunk + 1) * batch / d->chunks; b++) {
        const float *x = rows_of(d, 0, d->x_image, b, width->in * C, 0, height->in,
                                 d->x + thread * d->x_image);
        const float *y = rows_of(d, 1, d->y_image, b, d->y_row, 0, height->out,
                                 d->y + thread * d->y_image);
        for (int64_t i = 0; i < height->out; i++)
            for (int64_t k = 0; k < d->columns_count; k++) {
                const CornuDepthwiseRun run = run_of(d, i, k, thread);
                d->kernels->grad_filter(&run, x, y + i * d->y_row + d->columns[k].j * C, sums);
            }
    }
}

static CornuStatus depthwise_grad_filter(const CornuKernelCall *call)
{
    Depthwise          d = { .call = call };
    const CornuQuery q = cornu__query_of(call);
    lay_out(&d, &q, &(CornuScratch){ .memory = call->scratch });
    const int64_t count = d.taps * d.channels;
    cornu__threads_run(call->threads, d.chunks, sum_chunk, &d);
    for (int64_t chunk = 1; chunk < d.chunks; chunk++)
        for (int64_t k = 0; k < count; k++) d.sums[k] += d.sums[chunk * count + k];
    if (d.wide_out) memcpy(call->out[0], d.sums, (size_t)count * sizeof(float));
    else cornu__bf16()->narrow(d.sums, count, call->out[0]);
    return CORNU_OK;
}

const CornuKernel cornu__host_depthwise = {
    .name = "depthwise", .declines = depthwise_declines, .scratch = depthwise_scratch,
    .run = depthwise, .takes_epilogue = true, .takes_scale = true,
};
const CornuKernel cornu__host_depthwise_grad_input = {
    .name = "depthwise", .declines = depthwise_declines, .scratch = depthwise_scratch,
    .run = depthwise, .takes_gate = true,
};
const CornuKernel cornu__host_depthwise_grad_filter = {
    .name = "depthwise", .declines = depthwise_declines, .scratch = depthwise_scratch,
    .run = depthwise_grad_filter,
};
