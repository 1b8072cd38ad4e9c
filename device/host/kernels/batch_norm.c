/*
 * batch_norm and its gradient. x, y and their gradients are f32 or bf16, which is widened a chunk
 * at a time; everything else is f32. x is a matrix of rows (the positions of all images) by C
 * channels; the first count H W … rows give the statistics.
 *
 * Rows are cut into chunks that fit the second-level cache. Each chunk gives its means and squared
 * differences in one trip to memory; chunks are joined in order, in double:
 *     mean = sum n_i mean_i / n        variance = sum (squares_i + n_i (mean_i - mean)^2) / n
 * A second trip normalizes.
 *
 * Reference: device/ops/batch_norm.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample
 *     Variances", 1979.
 * Gain: not measured.
 */
#include <math.h>
#include <string.h>

#include "../../integer_internal.h"
#include "../machine/bf16.h"
#include "../isa/normalize.h"
#include "kernels.h"

enum { CHUNK = 32 << 10 };   /* elements of x */

typedef struct {
    const CornuKernelCall *call;
    const CornuNormalizes *normalizes;
    const CornuBf16       *bf16;                /* NULL: f32 */
    const void            *x, *d_y;
    const float           *scale, *offset, *mean;
    void                  *out;
    int64_t                rows, valid, channels;
    int64_t                chunk_rows, chunks, valid_chunks;
    float                 *sums;                /* two rows of channels per chunk */
    float                 *factor, *inverse, *a, *b;
    float                 *wide;                /* of bf16: x, d_y and out of a chunk, per thread */
} BatchNorm;

/* Sizes and, in this order, the parts of the scratch memory; returns its bytes. */
static size_t lay_out(BatchNorm *n, CornuType type, int threads, float *scratch)
{
    const CornuShape x = type.shape;
    n->normalizes = cornu__normalizes();
    n->bf16 = type.dtype == CORNU_BF16 ? cornu__bf16() : NULL;
    n->channels = x.extent[x.rank - 1];
    n->rows = n->channels ? cornu_shape_count(x) / n->channels : 0;
    n->chunk_rows = n->channels ? ceil_divide(CHUNK, n->channels) : 1;
    n->chunks = ceil_divide(n->rows, n->chunk_rows);
    n->sums = scratch;
    if (scratch) {
        n->factor = n->sums + 2 * n->chunks * n->channels;
        n->inverse = n->factor + n->channels;
        n->a = n->inverse + n->channels;
        n->b = n->a + n->channels;
        n->wide = n->b + n->channels;
    }
    const int64_t wide = n->bf16 ? 3 * threads * n->chunk_rows * n->channels : 0;
    return (size_t)((2 * n->chunks + 4) * n->channels + wide) * sizeof(float);
}

static bool accepts(const CornuOpCall *op, const CornuType *out_type, const CornuMachine *machine)
{
    (void)machine;
    const CornuDtype dtype = op->in[0].dtype;
    return (dtype == CORNU_F32 || dtype == CORNU_BF16) && out_type->dtype == dtype;
}

static size_t batch_norm_scratch(const CornuOpCall *op, const CornuType *out_type,
                                 const CornuMachine *machine)
{
    (void)out_type;
    BatchNorm n;
    return lay_out(&n, op->in[0], machine->threads, NULL);
}

static CornuStatus set_count(BatchNorm *n, const int64_t *count)
{
    const int64_t batch = n->call->op.in[0].shape.extent[0];
    if (*count < 0 || *count > batch)
        return cornu__fail(CORNU_ERR_VALUE, "count %lld, expected 0 to %lld rows",
                           (long long)*count, (long long)batch);
    n->valid = batch ? *count * (n->rows / batch) : 0;
    n->valid_chunks = ceil_divide(n->valid, n->chunk_rows);
    return CORNU_OK;
}

static int64_t rows_in(const BatchNorm *n, int64_t chunk, int64_t rows)
{
    return smaller(n->chunk_rows, rows - chunk * n->chunk_rows);
}

enum { X, D_Y, OUT, WIDE };

static float *wide_chunk(const BatchNorm *n, int which, int thread)
{
    return n->wide + (WIDE * thread + which) * n->chunk_rows * n->channels;
}

/* `rows` rows of a chunk of x or d_y. */
static const float *chunk_of(const BatchNorm *n, int which, int64_t chunk, int64_t rows, int thread)
{
    const void   *from = which == X ? n->x : n->d_y;
    const int64_t at = chunk * n->chunk_rows * n->channels;
    if (!n->bf16) return (const float *)from + at;
    float *wide = wide_chunk(n, which, thread);
    if (rows > 0) n->bf16->widen((const uint16_t *)from + at, rows * n->channels, wide);
    return wide;
}

/* Where a chunk's result is made, and moving it to its place. */
static float *chunk_out(const BatchNorm *n, int64_t chunk, int thread)
{
    if (n->bf16) return wide_chunk(n, OUT, thread);
    return (float *)n->out + chunk * n->chunk_rows * n->channels;
}

static void chunk_done(const BatchNorm *n, int64_t chunk, int64_t rows, const float *made)
{
    if (n->bf16)
        n->bf16->narrow(made, rows * n->channels,
                        (uint16_t *)n->out + chunk * n->chunk_rows * n->channels);
}

static void chunk_statistics(void *context, int64_t chunk, int thread)
{
    const BatchNorm *n = context;
    const int64_t    rows = rows_in(n, chunk, n->valid);
    float           *sums = n->sums + 2 * chunk * n->channels;
    n->normalizes->statistics(chunk_of(n, X, chunk, rows, thread), rows, n->channels, sums,
                              sums + n->channels);
}

static void join_statistics(const BatchNorm *n, float *mean, float *variance)
{
    const int64_t C = n->channels;
    for (int64_t c = 0; c < C; c++) {
        double sum = 0.0, squares = 0.0;
        for (int64_t k = 0; k < n->valid_chunks; k++)
            sum += (double)rows_in(n, k, n->valid) * (double)n->sums[2 * k * C + c];
        const double centre = n->valid ? sum / (double)n->valid : 0.0;
        for (int64_t k = 0; k < n->valid_chunks; k++) {
            const double off = (double)n->sums[2 * k * C + c] - centre;
            squares += (double)n->sums[(2 * k + 1) * C + c] +
                       (double)rows_in(n, k, n->valid) * off * off;
        }
        mean[c] = (float)centre;
        variance[c] = n->valid ? (float)(squares / (double)n->valid) : 1.0f;
    }
}

static void chunk_apply(void *context, int64_t chunk, int thread)
{
    const BatchNorm *n = context;
    const int64_t    rows = rows_in(n, chunk, n->rows);
    float           *out = chunk_out(n, chunk, thread);
    n->normalizes->apply(chunk_of(n, X, chunk, rows, thread), rows, n->channels, n->mean, n->factor,
                         n->offset, out);
    chunk_done(n, chunk, rows, out);
}

static CornuStatus batch_norm(const CornuKernelCall *call)
{
    BatchNorm n = { .call = call, .x = call->in[0], .scale = call->in[1], .offset = call->in[2],
                    .out = call->out[0], .mean = call->out[1] };
    float        *variance = call->out[2];
    const double  epsilon = call->op.attributes->epsilon.epsilon;
    lay_out(&n, call->op.in[0], cornu__threads_count(call->threads), call->scratch);
    CORNU__TRY(set_count(&n, call->in[3]));
    cornu__threads_run(call->threads, n.valid_chunks, chunk_statistics, &n);
    join_statistics(&n, call->out[1], variance);
    for (int64_t c = 0; c < n.channels; c++)
        n.factor[c] = (float)(n.scale[c] / sqrt((double)variance[c] + epsilon));
    cornu__threads_run(call->threads, n.chunks, chunk_apply, &n);
    return CORNU_OK;
}

static void chunk_sums(void *context, int64_t chunk, int thread)
{
    const BatchNorm *n = context;
    const int64_t    rows = rows_in(n, chunk, n->valid);
    float           *sums = n->sums + 2 * chunk * n->channels;
    n->normalizes->sums(chunk_of(n, X, chunk, rows, thread), chunk_of(n, D_Y, chunk, rows, thread),
                        rows, n->channels, n->mean, n->inverse, sums, sums + n->channels);
}

/* Rows after the first `count` have no gradient. */
static void chunk_apply_grad(void *context, int64_t chunk, int thread)
{
    const BatchNorm *n = context;
    const int64_t    rows = rows_in(n, chunk, n->rows);
    float           *out = chunk_out(n, chunk, thread);
    int64_t          valid = rows_in(n, chunk, n->valid);
    if (valid < 0) valid = 0;
    n->normalizes->apply_grad(chunk_of(n, X, chunk, valid, thread),
                              chunk_of(n, D_Y, chunk, valid, thread), valid, n->channels, n->mean,
                              n->factor, n->a, n->b, out);
    memset(out + valid * n->channels, 0, (size_t)((rows - valid) * n->channels) * sizeof(float));
    chunk_done(n, chunk, rows, out);
}

static CornuStatus batch_norm_grad(const CornuKernelCall *call)
{
    BatchNorm n = { .call = call, .x = call->in[0], .scale = call->in[1], .mean = call->in[2],
                    .d_y = call->in[4], .out = call->out[0] };
    const float *variance = call->in[3];
    float       *d_scale = call->out[1], *d_offset = call->out[2];
    lay_out(&n, call->op.in[0], cornu__threads_count(call->threads), call->scratch);
    CORNU__TRY(set_count(&n, call->in[5]));
    for (int64_t c = 0; c < n.channels; c++)
        n.inverse[c] = (float)(1.0 / sqrt((double)variance[c] +
                                          call->op.attributes->epsilon.epsilon));
    cornu__threads_run(call->threads, n.valid_chunks, chunk_sums, &n);
    const double rows = n.valid ? (double)n.valid : 1.0;
    for (int64_t c = 0; c < n.channels; c++) {
        double offset = 0.0, scale = 0.0;
        for (int64_t k = 0; k < n.valid_chunks; k++) {
            offset += (double)n.sums[2 * k * n.channels + c];
            scale += (double)n.sums[(2 * k + 1) * n.channels + c];
        }
        d_offset[c] = (float)offset;
        d_scale[c] = (float)scale;
        n.factor[c] = n.scale[c] * n.inverse[c];
        n.a[c] = (float)(offset / rows);
        n.b[c] = (float)(scale / rows * (double)n.inverse[c]);
    }
    cornu__threads_run(call->threads, n.chunks, chunk_apply_grad, &n);
    return CORNU_OK;
}

const CornuKernel cornu__host_batch_norm = {
    .accepts = accepts, .scratch = batch_norm_scratch, .run = batch_norm,
};
const CornuKernel cornu__host_batch_norm_grad = {
    .accepts = accepts, .scratch = batch_norm_scratch, .run = batch_norm_grad,
};
