/*
 * reduce_sum and reduce_max.
 *
 * f32 or bf16 whose reduced axes are adjacent is x (A, R, C), y (A, C). bf16 is widened to f32 a
 * few rows at a time and only the result is rounded, if at all. x is cut into chunks of rows by its
 * shape alone; each chunk gives partial sums in f32, and these are added in double, in their order.
 * Within a chunk,
 *     C = 1    a run of up to 4096 elements is summed in 64 lanes, see
 *              isa/vector/vector_reduce.c; short ones some at a time
 *     C > 1    rows are added to a row of sums; rows shorter than 256 elements are taken several at
 *              a time, as one long row, and folded at the end
 * so that a sum of f32 has at most some 128 roundings, then one per chunk in double.
 *
 * Everything else goes element by element: floats in double, integers in i64. f16 is converted to
 * f32 before it comes here.
 *
 * Reference: device/ops/reduce.c; tests/device/host/run/test_executor.c compares them.
 * Source: own; pairwise summation (Higham, "The Accuracy of Floating Point Summation", 1993) bounds
 *     the roundings.
 * Gain: bf16 read where it lies, bias gradients of mnist_cnn at 1024 on tpu: 10 bytes an element
 *     moved before, 4 after. Short runs together: isa/vector/vector_reduce.c.
 */
#include <math.h>
#include <string.h>

#include "../../integer_internal.h"
#include "../machine/bf16.h"
#include "kernels.h"
#include "../machine/vector.h"

enum {
    RUN = 4096,          /* elements of a chunk along one row        */
    LONG_ROW = 256,      /* shorter rows are taken together           */
    BLOCK_COLUMNS = 4096,/* longer rows are cut                       */
    CHUNK = 16384,       /* elements of a chunk of rows, at least     */
    LEAST_ROWS = 64,
    WIDE = 4096,         /* elements of bf16 widened at a time, at most: RUN, BLOCK_COLUMNS */
    WORK = 4096,         /* results of one piece of work, general case */
};

static bool is_reduced(const CornuOpCall *call, int axis)
{
    return call->attributes->reduce.axes >> axis & 1;
}

/* ---- Adjacent axes of f32 and bf16 ---- */

typedef struct {
    const CornuKernelCall *call;
    const CornuVectors    *vectors;
    const CornuBf16       *bf16;    /* NULL: f32 */
    bool                   max;
    int64_t                a, r, c;
    int64_t                columns, column_blocks;  /* of one block      */
    int64_t                rows, chunks;            /* of one chunk      */
    int64_t                grain; /* sums of runs in one piece of work */
    bool                   narrow;                  /* these are bf16 and the results */
    float                 *partial;                 /* (A, chunks, C)    */
    float                 *sums;                    /* LONG_ROW a thread */
    float                 *wide;                    /* of bf16: WIDE a thread */
} Reduce;

static bool as_matrix(const CornuOpCall *call, Reduce *reduce)
{
    CornuShape shape = call->in[0].shape;
    int        phase = 0;   /* before, in, after the reduced axes */
    reduce->a = reduce->r = reduce->c = 1;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.extent[i] == 1) continue;
        if (is_reduced(call, i)) {
            if (phase == 2) return false;
            phase = 1;
            reduce->r *= shape.extent[i];
        } else if (phase == 0) {
            reduce->a *= shape.extent[i];
        } else {
            phase = 2;
            reduce->c *= shape.extent[i];
        }
    }
    return true;
}

static void cut(Reduce *reduce)
{
    reduce->columns = smaller(reduce->c, BLOCK_COLUMNS);
    reduce->column_blocks = ceil_divide(reduce->c, reduce->columns);
    reduce->rows =
        CHUNK / reduce->columns < LEAST_ROWS ? LEAST_ROWS : CHUNK / reduce->columns;
    if (reduce->c == 1) reduce->rows = RUN;
    reduce->chunks = ceil_divide(reduce->r, reduce->rows);
    reduce->grain = reduce->c > 1        ? 1
                    : reduce->chunks > 1 ? 4
                                         : ceil_divide(CHUNK, reduce->r);
}

static bool is_fast(const CornuOpCall *call)
{
    const CornuDtype dtype = call->in[0].dtype;
    return (dtype == CORNU_F32 || dtype == CORNU_BF16) && cornu_type_count(call->in[0]) > 0;
}

/* Whether a run is a result of this dtype, rounded. */
static bool is_narrow(const Reduce *reduce, CornuDtype dtype)
{
    return reduce->c == 1 && reduce->chunks == 1 && dtype == CORNU_BF16;
}

/* Whether results go through `partial`. */
static bool is_partial(const Reduce *reduce, CornuDtype dtype)
{
    return (reduce->chunks > 1 || dtype != CORNU_F32) && !is_narrow(reduce, dtype);
}

/* `count` elements of x from `first` on, as floats; up to WIDE of bf16. */
static const float *elements(const Reduce *reduce, int64_t first, int64_t count, int thread)
{
    const void *x = reduce->call->in[0];
    if (!reduce->bf16) return (const float *)x + first;
    float *wide = reduce->wide + thread * WIDE;
    reduce->bf16->widen((const uint16_t *)x + first, count, wide);
    return wide;
}

/* One chunk of rows, one block of columns: y = the row of sums. */
static void reduce_rows(const Reduce *reduce, int64_t block, int thread)
{
    int64_t column_block = block % reduce->column_blocks,
            rest = block / reduce->column_blocks;
    int64_t chunk = rest % reduce->chunks, a = rest / reduce->chunks;
    int64_t first = chunk * reduce->rows, rows = smaller(reduce->rows, reduce->r - first);
    int64_t column = column_block * reduce->columns;
    int64_t columns = smaller(reduce->columns, reduce->c - column), stride = reduce->c;
    int64_t x = (a * reduce->r + first) * stride + column;
    float  *y = reduce->partial + (a * reduce->chunks + chunk) * stride + column;
    void (*combine)(float *, const float *, int64_t) =
        reduce->max ? reduce->vectors->max_row : reduce->vectors->add_row;

    int64_t together = stride < LONG_ROW ? LONG_ROW / stride : 1;
    int64_t row = 0;
    if (together > 1 && rows >= 2 * together) {
        float *sums = reduce->sums + thread * LONG_ROW;
        const int64_t count = together * columns;
        memcpy(sums, elements(reduce, x, count, thread), (size_t)count * sizeof *sums);
        for (row = together; row + together <= rows; row += together)
            combine(sums, elements(reduce, x + row * stride, count, thread), count);
        memcpy(y, sums, (size_t)columns * sizeof *y);
        for (int64_t i = 1; i < together; i++) combine(y, sums + i * columns, columns);
    } else {
        memcpy(y, elements(reduce, x, columns, thread), (size_t)columns * sizeof *y);
        row = 1;
    }
    for (; row < rows; row++)
        combine(y, elements(reduce, x + row * stride, columns, thread), columns);
}

/* Runs of contiguous elements, those of a chunk each, or some of all of R. */
static void reduce_runs(const Reduce *reduce, int64_t block, int thread)
{
    const int64_t runs = reduce->a * reduce->chunks;
    const int64_t end = smaller((block + 1) * reduce->grain, runs);
    const int64_t most = reduce->chunks > 1 ? 1 : smaller(LONG_ROW, WIDE / reduce->r);
    float        *sums = reduce->sums + thread * LONG_ROW;
    void (*total)(const float *, int64_t, int64_t, float *) =
        reduce->max ? reduce->vectors->max_runs : reduce->vectors->sum_runs;
    for (int64_t run = block * reduce->grain, some; run < end; run += some) {
        const int64_t a = run / reduce->chunks, first = run % reduce->chunks * reduce->rows;
        const int64_t count = smaller(reduce->rows, reduce->r - first);
        some = smaller(most, end - run);
        total(elements(reduce, a * reduce->r + first, some * count, thread), some, count,
              reduce->narrow ? sums : reduce->partial + run);
        if (reduce->narrow)
            cornu__bf16()->narrow(sums, some, (uint16_t *)reduce->call->out[0] + run);
    }
}

static void reduce_block(void *context, int64_t block, int thread)
{
    const Reduce *reduce = context;
    if (reduce->c == 1) reduce_runs(reduce, block, thread);
    else reduce_rows(reduce, block, thread);
}

static void combine_chunks(const Reduce *reduce, CornuArray y)
{
    for (int64_t a = 0; a < reduce->a; a++)
        for (int64_t c = 0; c < reduce->c; c++) {
            const float *x = reduce->partial + a * reduce->chunks * reduce->c + c;
            double       sum = x[0];
            for (int64_t i = 1; i < reduce->chunks; i++) {
                double term = x[i * reduce->c];
                sum = !reduce->max ? sum + term : term > sum || isnan(term) ? term : sum;
            }
            cornu_array_set(y, a * reduce->c + c, sum);
        }
}

/* The parts of the scratch memory. */
static void lay_out(Reduce *reduce, bool partial, bool wide, int threads, CornuScratch *scratch)
{
    reduce->sums = cornu__take_floats(scratch, threads * LONG_ROW);
    reduce->wide = cornu__take_floats(scratch, wide ? threads * WIDE : 0);
    if (partial)
        reduce->partial = cornu__take_floats(scratch, reduce->a * reduce->chunks * reduce->c);
}

static void reduce_matrix(Reduce *reduce)
{
    const CornuKernelCall *call = reduce->call;
    const int              threads = cornu__threads_count(call->threads);
    const bool             partial = is_partial(reduce, call->out_type->dtype);
    reduce->bf16 = call->op.in[0].dtype == CORNU_BF16 ? cornu__bf16() : NULL;
    reduce->narrow = is_narrow(reduce, call->out_type->dtype);
    reduce->partial = call->out[0];
    lay_out(reduce, partial, reduce->bf16, threads, &(CornuScratch){ .memory = call->scratch });
    int64_t blocks = reduce->c == 1
                         ? ceil_divide(reduce->a * reduce->chunks, reduce->grain)
                         : reduce->a * reduce->chunks * reduce->column_blocks;
    cornu__threads_run(call->threads, blocks, reduce_block, reduce);
    if (partial) combine_chunks(reduce, (CornuArray){ call->out_type[0], call->out[0] });
}

static size_t reduce_scratch(const CornuQuery *q)
{
    Reduce       reduce;
    CornuScratch scratch = { 0 };
    if (!is_fast(q->op) || !as_matrix(q->op, &reduce)) return 0;
    cut(&reduce);
    lay_out(&reduce, is_partial(&reduce, q->out_type->dtype), q->op->in[0].dtype == CORNU_BF16,
            q->machine.threads, &scratch);
    return scratch.bytes;
}

/* ---- Any axes, any dtype ---- */

typedef struct {
    const CornuKernelCall *call;
    bool                   max;
    int kept, reduced; /* axes of either kind, with extents and strides */
    int64_t                kept_extent[CORNU_MAX_RANK], kept_stride[CORNU_MAX_RANK];
    int64_t                extent[CORNU_MAX_RANK], stride[CORNU_MAX_RANK];
    int64_t                terms, results;
} General;

static int64_t integer_at(CornuArray x, int64_t i)
{
    return x.type.dtype == CORNU_I64
               ? ((const int64_t *)x.data)[i]
               : (int64_t)cornu_array_get(x, i); /* 32 bits at most */
}

/* Offset of index i over the given axes. */
static int64_t offset_of(int64_t i, int rank, const int64_t *extent, const int64_t *stride)
{
    int64_t offset = 0;
    for (int k = rank - 1; k >= 0; k--) {
        offset += i % extent[k] * stride[k];
        i /= extent[k];
    }
    return offset;
}

static void reduce_one(const General *g, CornuArray x, CornuArray y, int64_t result)
{
    int64_t start = offset_of(result, g->kept, g->kept_extent, g->kept_stride);
    double  real = g->max ? -INFINITY : 0.0;
    int64_t integer = g->max ? INT64_MIN : 0;
    bool    is_float = cornu_dtype_is_float(x.type.dtype);
    for (int64_t i = 0; i < g->terms; i++) {
        int64_t at = start + offset_of(i, g->reduced, g->extent, g->stride);
        if (is_float) {
            double term = cornu_array_get(x, at);
            real = !g->max ? real + term : term > real || isnan(term) ? term : real;
        } else {
            int64_t term = integer_at(x, at);
            integer = !g->max ? (int64_t)((uint64_t)integer + (uint64_t)term)
                              : term > integer ? term : integer;
        }
    }
    if (is_float) cornu_array_set(y, result, real);
    else if (y.type.dtype == CORNU_I64) ((int64_t *)y.data)[result] = integer;
    else cornu_array_set(y, result, (double)integer);
}

static void general_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const General *g = context;
    int64_t        grain = ceil_divide(WORK, g->terms + 1);
    int64_t        end = smaller((block + 1) * grain, g->results);
    /* The operand is only read: CornuArray has no const twin. */
    CornuArray x = { g->call->op.in[0], (void *)(uintptr_t)g->call->in[0] };
    CornuArray y = { g->call->out_type[0], g->call->out[0] };
    for (int64_t i = block * grain; i < end; i++) reduce_one(g, x, y, i);
}

static void reduce_general(const CornuKernelCall *call, bool max)
{
    General    g = { .call = call, .max = max, .terms = 1, .results = 1 };
    CornuShape shape = call->op.in[0].shape;
    int64_t    stride = cornu_shape_count(shape);
    for (int i = 0; i < shape.rank; i++) {
        if (shape.extent[i]) stride /= shape.extent[i];
        bool     reduced = is_reduced(&call->op, i);
        int64_t *extent = reduced ? &g.extent[g.reduced] : &g.kept_extent[g.kept];
        int64_t *step = reduced ? &g.stride[g.reduced++] : &g.kept_stride[g.kept++];
        *extent = shape.extent[i];
        *step = stride;
        *(reduced ? &g.terms : &g.results) *= shape.extent[i];
    }
    int64_t blocks = ceil_divide(g.results, ceil_divide(WORK, g.terms + 1));
    cornu__threads_run(call->threads, blocks, general_block, &g);
}

static CornuStatus reduce(const CornuKernelCall *call, bool max)
{
    Reduce matrix = { .call = call, .vectors = cornu__vectors(), .max = max };
    if (is_fast(&call->op) && as_matrix(&call->op, &matrix)) {
        cut(&matrix);
        reduce_matrix(&matrix);
    } else {
        reduce_general(call, max);
    }
    return CORNU_OK;
}

static CornuStatus reduce_sum(const CornuKernelCall *call) { return reduce(call, false); }
static CornuStatus reduce_max(const CornuKernelCall *call) { return reduce(call, true); }

/* f16 becomes f32 first: an element at a time would be far slower. */
static CornuDecline reduce_declines(const CornuQuery *q)
{
    return cornu__needs(q->op->in[0].dtype != CORNU_F16, "an operand other than f16");
}

const CornuKernel cornu__host_reduce_sum = {
    .name = "reduce", .declines = reduce_declines, .scratch = reduce_scratch, .run = reduce_sum,
};
const CornuKernel cornu__host_reduce_max = {
    .name = "reduce", .declines = reduce_declines, .scratch = reduce_scratch, .run = reduce_max,
};
