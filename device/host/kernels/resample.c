/*
 * resample: a product with a matrix along one axis of x, f32, of which each row has few elements
 * that are not zero, next to each other: an interpolation. Zeros are found when the kernel runs,
 * and cost no multiplication.
 *
 *     x (O, K, I), m (T, K), y (O, T, I)
 *
 * Vectors run over I. Where that is short, as along the last axis, lines of x are turned into
 * columns, as many as a line of the cache holds, in pieces of T, and the results turned back.
 *
 * Reference: device/ops/matmul.c; tests/device/ops/test_ops.c compares them.
 * Source: own.
 * Gain, Zen 4, one thread, channels first, bilinear to twice the extents: 8 x 128 x 128 as products
 *     23.1 ms, then 0.25 to 0.34; 48 x 32 x 32 3.22 ms, then 0.094.
 */
#include "../../integer_internal.h"
#include "../isa/resample.h"
#include "../isa/transpose.h"
#include "kernels.h"

enum {
    LINES = 16,            /* turned at once; shorter I are                             */
    WIDTH = 2048,          /* of I at once, so that a row of x is near when met again   */
    PIECE = 256,           /* elements of a line of y that are turned back at once      */
    GRAIN = 32 << 10       /* elements of y in a block, about                           */
};

typedef struct {
    const CornuKernelCall *call;
    const CornuResamples  *resamples;
    int64_t    outer, inner, rows, columns;     /* O, I, T, K                                */
    bool       turned;
    int64_t    piece, pieces, widths, grain;    /* of T; pieces of T, of I; lines in a block */
    CornuBand *bands;
    float     *x, *y;                           /* columns, per thread                       */
} Resample;

/* Extents, and the parts of the scratch memory. */
static void lay_out(Resample *r, const CornuQuery *q, CornuScratch *scratch)
{
    const CornuShape x = q->op->in[0].shape;
    const int        axis = (int)q->op->attributes->axis.axis;
    r->outer = r->inner = 1;
    for (int i = 0; i < x.rank; i++)
        if (i != axis) *(i < axis ? &r->outer : &r->inner) *= x.extent[i];
    r->rows = q->op->in[1].shape.extent[0];
    r->columns = x.extent[axis];
    r->turned = r->inner < LINES;
    r->widths = ceil_divide(r->inner, WIDTH);
    const int64_t each = r->turned ? PIECE : GRAIN;
    r->piece = larger(1, each / larger(1, smaller(r->inner, WIDTH)));
    r->pieces = ceil_divide(r->rows, r->piece);
    r->grain = larger(1, GRAIN / larger(1, LINES * r->rows * r->inner)) * LINES;
    const int64_t turned = r->turned ? q->machine.threads * LINES * r->inner : 0;
    r->bands = cornu__take(scratch, (size_t)r->rows * sizeof *r->bands);
    cornu__take_line(scratch);
    r->x = cornu__take_floats(scratch, turned * r->columns);
    r->y = cornu__take_floats(scratch, turned * r->piece);
}

static size_t resample_scratch(const CornuQuery *q)
{
    Resample     r;
    CornuScratch scratch = { 0 };
    lay_out(&r, q, &scratch);
    return scratch.bytes;
}

static CornuResample of_rows(const Resample *r, int64_t t)
{
    return (CornuResample){
        .weights = (const float *)r->call->in[1] + t * r->columns, .bands = r->bands + t,
        .rows = smaller(r->piece, r->rows - t), .columns = r->columns,
    };
}

/* A piece of T and I. */
static void sum_rows(void *context, int64_t block, int thread)
{
    (void)thread;
    const Resample *r = context;
    const int64_t   t = block % r->pieces * r->piece, rest = block / r->pieces;
    const int64_t   i = rest % r->widths * WIDTH, o = rest / r->widths;
    CornuResample   piece = of_rows(r, t);
    piece.width = smaller(WIDTH, r->inner - i);
    piece.x = (const float *)r->call->in[0] + o * r->columns * r->inner + i;
    piece.y = (float *)r->call->out[0] + (o * r->rows + t) * r->inner + i;
    piece.x_row = piece.y_row = r->inner;
    r->resamples->rows(&piece);
}

/* A piece of T of up to LINES lines. */
static void sum_columns(const Resample *r, const float *x, float *y, int64_t lines, int64_t t,
                        int thread)
{
    const CornuTransposes *turn = cornu__transposes();
    const int64_t          I = r->inner;
    float                 *columns = r->x + thread * LINES * I * r->columns;
    float                 *sums = r->y + thread * LINES * I * r->piece;
    CornuResample          piece = of_rows(r, t);
    int64_t                from = r->columns, to = 0;
    for (int64_t row = 0; row < piece.rows; row++) {
        const CornuBand band = piece.bands[row];
        if (band.count == 0) continue;
        from = smaller(from, band.first);
        to = larger(to, band.first + band.count);
    }
    if (from < to)
        turn->words((const uint32_t *)(const void *)(x + from * I), r->columns * I, lines,
                    (to - from) * I, (uint32_t *)(void *)columns + from * I * LINES, LINES);
    piece.x = columns;
    piece.y = sums;
    piece.x_row = piece.y_row = piece.width = I * LINES;
    r->resamples->rows(&piece);
    turn->words((const uint32_t *)(const void *)sums, LINES, piece.rows * I, lines,
                (uint32_t *)(void *)(y + t * I), r->rows * I);
}

static void sum_lines(void *context, int64_t block, int thread)
{
    const Resample *r = context;
    const int64_t   end = smaller(r->outer, (block + 1) * r->grain);
    for (int64_t o = block * r->grain; o < end; o += LINES) {
        const float *x = (const float *)r->call->in[0] + o * r->columns * r->inner;
        float       *y = (float *)r->call->out[0] + o * r->rows * r->inner;
        for (int64_t t = 0; t < r->rows; t += r->piece)
            sum_columns(r, x, y, smaller(LINES, end - o), t, thread);
    }
}

static CornuStatus resample(const CornuKernelCall *call)
{
    Resample         r = { .call = call, .resamples = cornu__resamples() };
    const CornuQuery q = cornu__query_of(call);
    lay_out(&r, &q, &(CornuScratch){ .memory = call->scratch });
    r.resamples->bands(call->in[1], r.rows, r.columns, r.bands);
    if (r.turned)
        cornu__threads_run(call->threads, ceil_divide(r.outer, r.grain), sum_lines, &r);
    else
        cornu__threads_run(call->threads, r.outer * r.widths * r.pieces, sum_rows, &r);
    return CORNU_OK;
}

const CornuKernel cornu__host_resample = {
    .name = "resample", .scratch = resample_scratch, .run = resample,
};
