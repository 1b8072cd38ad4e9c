/*
 * softmax and log_softmax over the last axis, and sparse_cross_entropy, f32 or bf16 widened to it,
 * in blocks of rows. The latter's logarithms stay in the cache: one of each row is its result.
 *
 * Reference: device/ops/softmax.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own.
 * Gain: one exponential a number, rows of 256, Zen 4: 1.17 ns an element before, 0.5 after
 *     (isa/normalize.c).
 */
#include "../../integer_internal.h"
#include "../machine/bf16.h"
#include "../isa/normalize.h"
#include "kernels.h"
#include "rows.h"

enum {
    BLOCK = 4096,      /* elements a block holds at least                  */
    TOGETHER = 1024    /* in scratch memory at once, unless a row has more */
};

typedef struct {
    const CornuKernelCall *call;
    const CornuNormalizes *normalizes;
    int64_t                rows, classes, block_rows;
} Softmax;

/* Rows in scratch memory. */
static int64_t rows_together(int64_t classes) { return larger(1, TOGETHER / classes); }

/* Rows of x, replaced by those of y, per thread. */
static size_t softmax_scratch(const CornuQuery *q)
{
    const CornuShape shape = q->out_type->shape;
    if (q->op->in[0].dtype != CORNU_BF16) return 0;
    const int64_t classes = shape.extent[shape.rank - 1];
    return (size_t)(q->machine.threads * rows_together(classes) * classes) * sizeof(float);
}

static void softmax_bf16(const Softmax *s, int64_t first, int64_t end, bool logarithm, float *wide)
{
    const CornuBf16 *bf16 = cornu__bf16();
    for (int64_t row = first, rows; row < end; row += rows) {
        rows = smaller(end - row, rows_together(s->classes));
        const int64_t at = row * s->classes, count = rows * s->classes;
        bf16->widen((const uint16_t *)s->call->in[0] + at, count, wide);
        s->normalizes->softmax(wide, rows, s->classes, logarithm, wide);
        bf16->narrow(wide, count, (uint16_t *)s->call->out[0] + at);
    }
}

static void softmax_block(void *context, int64_t block, int thread)
{
    const Softmax *s = context;
    const bool     logarithm = s->call->op.id == CORNU_OP_LOG_SOFTMAX;
    const int64_t  first = block * s->block_rows;
    const int64_t  end = first + s->block_rows < s->rows ? first + s->block_rows : s->rows;
    if (s->call->out_type->dtype == CORNU_BF16)
        softmax_bf16(s, first, end, logarithm, (float *)s->call->scratch +
                     thread * rows_together(s->classes) * s->classes);
    else
        s->normalizes->softmax((const float *)s->call->in[0] + first * s->classes, end - first,
                               s->classes, logarithm,
                               (float *)s->call->out[0] + first * s->classes);
}

static Softmax softmax_of(const CornuKernelCall *call)
{
    const CornuShape shape = call->op.in[0].shape;
    Softmax          s = { call, cornu__normalizes(), 0, shape.extent[shape.rank - 1], 0 };
    s.rows = cornu_shape_count(shape) / s.classes;
    s.block_rows = ceil_divide(BLOCK, s.classes);
    return s;
}

static CornuStatus softmax(const CornuKernelCall *call)
{
    Softmax s = softmax_of(call);
    cornu__threads_run(call->threads, ceil_divide(s.rows, s.block_rows), softmax_block, &s);
    return CORNU_OK;
}

const CornuKernel cornu__host_softmax = {
    .name = "softmax", .declines = cornu__takes_f32_or_bf16,
    .scratch = softmax_scratch, .run = softmax,
};
const CornuKernel cornu__host_log_softmax = {
    .name = "softmax", .declines = cornu__takes_f32_or_bf16,
    .scratch = softmax_scratch, .run = softmax,
};

/* ---- sparse_cross_entropy: logits (R, C), labels (R), y (R) ---- */

static size_t cross_entropy_scratch(const CornuQuery *q)
{
    const CornuShape shape = q->op->in[0].shape;
    const int64_t    classes = shape.extent[shape.rank - 1];
    return (size_t)(q->machine.threads * rows_together(classes) * classes) * sizeof(float);
}

static void cross_entropy_block(void *context, int64_t block, int thread)
{
    const Softmax   *s = context;
    const CornuArray labels = cornu__indices_of(s->call, 1);
    const bool       narrow = s->call->out_type->dtype == CORNU_BF16;
    float           *log_p = (float *)s->call->scratch +
                             thread * rows_together(s->classes) * s->classes;
    const int64_t end = smaller(s->rows, (block + 1) * s->block_rows);
    for (int64_t row = block * s->block_rows, rows; row < end; row += rows) {
        rows = smaller(end - row, rows_together(s->classes));
        const int64_t at = row * s->classes;
        const float  *x = (const float *)s->call->in[0] + at;
        if (narrow) {
            cornu__bf16()->widen((const uint16_t *)s->call->in[0] + at, rows * s->classes, log_p);
            x = log_p;
        }
        s->normalizes->softmax(x, rows, s->classes, true, log_p);
        for (int64_t i = 0; i < rows; i++) {
            const float y = -log_p[i * s->classes + cornu__index_at(labels, row + i)];
            if (narrow) cornu__bf16()->narrow(&y, 1, (uint16_t *)s->call->out[0] + row + i);
            else ((float *)s->call->out[0])[row + i] = y;
        }
    }
}

static CornuStatus cross_entropy(const CornuKernelCall *call)
{
    Softmax s = softmax_of(call);
    CORNU__TRY(cornu__indices_check("label", cornu__indices_of(call, 1), s.classes, 0));
    cornu__threads_run(call->threads, ceil_divide(s.rows, s.block_rows), cross_entropy_block, &s);
    return CORNU_OK;
}

const CornuKernel cornu__host_sparse_cross_entropy = {
    .name = "softmax", .declines = cornu__takes_f32_or_bf16, .scratch = cross_entropy_scratch,
    .run = cross_entropy,
};
