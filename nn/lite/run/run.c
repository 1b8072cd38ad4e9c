#include "run.h"

#include <string.h>

#include "../../../device/host/machine/cpu.h"
#include "../../../device/host/machine/threads.h"
#include "../../../device/memory_internal.h"
#include "steps.h"

/* Where the tensors of a block are; slots are used again once no later operator reads them. */
typedef struct {
    size_t *offsets;     /* of each tensor in a thread's memory */
    size_t  bytes;       /* of a thread's memory, scratch after the slots */
    size_t  scratch;
} Layout;

struct CornuLiteRun {
    const CornuLiteGraph *graph;
    CornuLiteStep        *steps;
    int                   step_count;
    int64_t               block_rows;     /* at most; 1 unless the batch is unknown */
    Layout                layout;
    CornuThreads         *threads;
    unsigned char        *memory;         /* of all threads */
    void                **tensors;        /* pointers of all threads */
};

static size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

static size_t tensor_bytes(const CornuLiteTensor *tensor, int64_t batch)
{
    return (size_t)cornu__lite_count(tensor->shape, batch) *
           cornu__lite_dtype_size(tensor->dtype);
}

/* ---- Checks that hold for all operators ---- */

/* That extents are positive, unknown ones only first, and constants whole. */
static CornuStatus check_tensor(const CornuLiteTensor *tensor)
{
    CornuText     shape;
    const int64_t most = INT64_C(1) << 40;
    int64_t       count = (int64_t)cornu__lite_dtype_size(tensor->dtype) *
                          CORNU_LITE_BLOCK_ROWS;
    for (int d = 0; d < tensor->shape.rank; d++) {
        const int64_t extent = tensor->shape.extent[d];
        if (extent == CORNU_NONE && d == 0 && !tensor->data) continue;
        if (extent < 1 || extent > most / (count > 0 ? count : 1))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "tensor %s of shape %s: extents of at least "
                               "1 are expected, the first alone may be unknown", tensor->name,
                               cornu_shape_print(&shape, tensor->shape));
        count *= extent;
    }
    if (tensor->data && tensor->bytes != tensor_bytes(tensor, 1))
        return cornu__fail(CORNU_ERR_FORMAT, "tensor %s of shape %s has %zu bytes", tensor->name,
                           cornu_shape_print(&shape, tensor->shape), tensor->bytes);
    return CORNU_OK;
}

static bool is_tensor(const CornuLiteGraph *graph, int number)
{
    return number >= 0 && number < graph->tensor_count;
}

/* That every operand is there before it is read, and written once. */
static CornuStatus check_order(const CornuLiteGraph *graph, bool *ready)
{
    for (int t = 0; t < graph->tensor_count; t++) ready[t] = graph->tensors[t].data != NULL;
    for (int i = 0; i < graph->input_count; i++) {
        const int t = graph->inputs[i].tensor;
        if (!is_tensor(graph, t) || ready[t])
            return cornu__fail(CORNU_ERR_FORMAT, "input %s is not a tensor to feed",
                               graph->inputs[i].name);
        ready[t] = true;
    }
    for (int o = 0; o < graph->operator_count; o++) {
        const CornuLiteOperator *op = &graph->operators[o];
        for (int i = 0; i < op->in_count; i++)
            if (op->in[i] != CORNU_LITE_NONE && (!is_tensor(graph, op->in[i]) || !ready[op->in[i]]))
                return cornu__fail(CORNU_ERR_FORMAT, "operator %d reads tensor %d, which nothing "
                                   "before it makes", o, op->in[i]);
        for (int i = 0; i < op->out_count; i++) {
            if (!is_tensor(graph, op->out[i]) || ready[op->out[i]])
                return cornu__fail(CORNU_ERR_FORMAT, "operator %d writes tensor %d, which is made "
                                   "before it", o, op->out[i]);
            ready[op->out[i]] = true;
        }
    }
    for (int i = 0; i < graph->output_count; i++)
        if (!is_tensor(graph, graph->outputs[i].tensor) || !ready[graph->outputs[i].tensor] ||
            graph->tensors[graph->outputs[i].tensor].data)
            return cornu__fail(CORNU_ERR_FORMAT, "output %s is not made", graph->outputs[i].name);
    return CORNU_OK;
}

static CornuStatus check_graph(const CornuLiteGraph *graph)
{
    if (graph->status) return cornu__fail(graph->status, "the graph is not complete");
    if (graph->variable_count)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the variable %s: states have no kernel of 8 "
                           "bits", graph->variables[0].name);
    for (int t = 0; t < graph->tensor_count; t++) CORNU__TRY(check_tensor(&graph->tensors[t]));
    bool *ready = cornu__allocate((size_t)graph->tensor_count + 1, sizeof *ready);
    if (!ready) return CORNU_ERR_MEMORY;
    const CornuStatus status = check_order(graph, ready);
    cornu__release(ready);
    return status;
}

CornuStatus cornu__lite_run_check(const CornuLiteGraph *graph)
{
    for (int o = 0, kernel; o < graph->operator_count; o++)
        CORNU__TRY(cornu__step_find(graph, o, &kernel));
    return CORNU_OK;
}

/* ---- Memory ---- */

/* Memory that holds one tensor after another. */
typedef struct {
    size_t bytes, place;
    int    free_after;   /* the last operator that reads what it holds; -1: free */
} Slot;

/* What place() works on: the slots, each tensor's slot, and the last operator that reads it. */
typedef struct {
    Slot *slots;
    int   count;
    int  *slot_of, *last;
} Slots;

/* Puts a tensor into a slot that is free before operator `op`: the smallest that fits, or else the
 * largest, grown. */
static void take_slot(Slots *of, int tensor, size_t bytes, int op)
{
    Slot *const slots = of->slots;
    int         best = -1;
    for (int s = 0; s < of->count; s++) {
        if (slots[s].free_after >= op) continue;
        const bool fits = slots[s].bytes >= bytes;
        if (best < 0 || (fits ? slots[best].bytes < bytes || slots[s].bytes < slots[best].bytes
                              : slots[best].bytes < bytes && slots[s].bytes > slots[best].bytes))
            best = s;
    }
    if (best < 0) best = of->count++;
    if (slots[best].bytes < bytes) slots[best].bytes = bytes;
    slots[best].free_after = of->last[tensor];
    of->slot_of[tensor] = best;
}

static void fill_slots(const CornuLiteRun *run, Slots *of)
{
    const CornuLiteGraph *graph = run->graph;
    for (int o = 0; o < graph->operator_count; o++) {
        const CornuLiteOperator *op = &graph->operators[o];
        for (int i = 0; i < op->in_count; i++)
            if (op->in[i] >= 0) of->last[op->in[i]] = o;
        if (run->steps[o].to >= 0 && of->last[run->steps[o].to] < o)
            of->last[run->steps[o].to] = o;
    }
    for (int i = 0; i < graph->output_count; i++)
        of->last[graph->outputs[i].tensor] = graph->operator_count;
    for (int i = 0; i < graph->input_count; i++) {
        const int t = graph->inputs[i].tensor;
        take_slot(of, t, tensor_bytes(&graph->tensors[t], run->block_rows), 0);
    }
    for (int o = 0; o < graph->operator_count; o++) {
        const int t = run->steps[o].to;
        if (t >= 0) take_slot(of, t, tensor_bytes(&graph->tensors[t], run->block_rows), o);
    }
}

/* The bytes of all slots for blocks of `rows`; puts the tensors into them. */
static size_t place_rows(CornuLiteRun *run, Slots *of, int64_t rows)
{
    const CornuLiteGraph *graph = run->graph;
    size_t                bytes = 0;
    of->count = 0;
    run->block_rows = rows;
    fill_slots(run, of);
    for (int s = 0; s < of->count; s++) {
        of->slots[s].place = bytes;
        bytes += padded(of->slots[s].bytes);
        of->slots[s].bytes = 0;
    }
    for (int t = 0; t < graph->tensor_count; t++)
        if (!graph->tensors[t].data) run->layout.offsets[t] = of->slots[of->slot_of[t]].place;
    return bytes;
}

/* Values between operators should stay in the second-level cache; but weights, which are read for
 * each block, are not to be the larger part of what moves. A few rows if one alone does not fit. */
static int64_t rows_of_block(const CornuLiteGraph *graph, size_t row_bytes)
{
    enum { CACHED = 512 * 1024, LEAST = 4, PART = 8 };
    int64_t weights = 0;
    for (int t = 0; t < graph->tensor_count; t++) weights += (int64_t)graph->tensors[t].bytes;
    const int64_t bytes = weights / PART > CACHED ? weights / PART : CACHED;
    const int64_t rows = bytes / (int64_t)(row_bytes + 1);
    return rows < LEAST ? LEAST : rows > CORNU_LITE_BLOCK_ROWS ? CORNU_LITE_BLOCK_ROWS : rows;
}

static CornuStatus place(CornuLiteRun *run)
{
    const CornuLiteGraph *graph = run->graph;
    const size_t          count = (size_t)graph->tensor_count + 1;
    size_t                scratch = 0;
    Slots                 of = { .slots = cornu__allocate(count, sizeof *of.slots),
                                 .slot_of = cornu__allocate(count, sizeof *of.slot_of),
                                 .last = cornu__allocate(count, sizeof *of.last) };
    run->layout.offsets = cornu__allocate(count, sizeof *run->layout.offsets);
    const bool room = of.slots && of.slot_of && of.last && run->layout.offsets;
    if (room) {
        const bool   unknown = run->block_rows != 1;
        const size_t row = place_rows(run, &of, 1);
        run->layout.scratch = unknown ? place_rows(run, &of, rows_of_block(graph, row)) : row;
    }
    for (int o = 0; o < run->step_count; o++)
        if (run->steps[o].scratch > scratch) scratch = run->steps[o].scratch;
    run->layout.bytes = run->layout.scratch + padded(scratch);
    cornu__release(of.slots);
    cornu__release(of.slot_of);
    cornu__release(of.last);
    return room ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* Memory of each thread, and where each tensor is in it. */
static CornuStatus bind(CornuLiteRun *run)
{
    const CornuLiteGraph *graph = run->graph;
    const int             threads = cornu__threads_count(run->threads);
    run->memory = cornu__allocate_aligned((size_t)threads * run->layout.bytes + 64);
    run->tensors = cornu__allocate((size_t)threads * (size_t)graph->tensor_count + 1,
                                   sizeof *run->tensors);
    if (!run->memory || !run->tensors) return CORNU_ERR_MEMORY;
    for (int i = 0; i < threads; i++)
        for (int t = 0; t < graph->tensor_count; t++)
            run->tensors[i * graph->tensor_count + t] =
                graph->tensors[t].data ? graph->tensors[t].data
                : run->memory + (size_t)i * run->layout.bytes + run->layout.offsets[t];
    return CORNU_OK;
}

static CornuStatus set_up(CornuLiteRun *run, int threads)
{
    const CornuLiteGraph *graph = run->graph;
    run->block_rows = 1;
    if (graph->input_count > 0) {
        const CornuShape x = graph->tensors[graph->inputs[0].tensor].shape;
        if (x.rank > 0 && x.extent[0] == CORNU_NONE) run->block_rows = CORNU_LITE_BLOCK_ROWS;
    }
    run->steps = cornu__allocate((size_t)graph->operator_count + 1, sizeof *run->steps);
    if (!run->steps) return CORNU_ERR_MEMORY;
    while (run->step_count < graph->operator_count) {
        const int o = run->step_count++;
        CORNU__TRY(cornu__step_prepare(graph, o, &run->steps[o]));
    }
    CORNU__TRY(cornu__steps_fuse(graph, run->steps));
    run->threads = cornu__threads_create(threads > 0 ? threads : cornu__cpu_threads());
    if (!run->threads) return CORNU_ERR_MEMORY;
    CORNU__TRY(place(run));
    return bind(run);
}

CornuLiteRun *cornu__lite_run_create(const CornuLiteGraph *graph, int threads)
{
    CornuIsa isa;
    if (cornu__refused()) return NULL;
    if (cornu__cpu_isa(&isa) || check_graph(graph)) return cornu__null();
    CornuLiteRun *run = cornu__allocate(1, sizeof *run);
    if (!run) return cornu__null();
    run->graph = graph;
    if (set_up(run, threads) == CORNU_OK) return run;
    cornu__lite_run_free(run);
    return cornu__null();
}

void cornu__lite_run_free(CornuLiteRun *run)
{
    if (!run) return;
    for (int o = 0; o < run->step_count; o++) cornu__lite_step_free(&run->steps[o]);
    if (run->threads) cornu__threads_free(run->threads);
    cornu__release(run->steps);
    cornu__release(run->layout.offsets);
    cornu__release(run->memory);
    cornu__release(run->tensors);
    cornu__release(run);
}

/* ---- Running ---- */

typedef struct {
    const CornuLiteRun *run;
    int64_t             rows, block_rows;
    const void *const  *in;
    void *const        *out;
} Call;

/* For the threads that share a step. */
typedef struct {
    const CornuLiteRun  *run;
    const CornuLiteStep *step;
    const CornuLiteBound *bound;
} SharedStep;

static void *scratch_of(const CornuLiteRun *run, int thread)
{
    return run->memory + (size_t)thread * run->layout.bytes + run->layout.scratch;
}

static void run_part(void *context, int64_t part, int thread)
{
    const SharedStep *shared = context;
    CornuLiteBound    bound = *shared->bound;
    bound.scratch = scratch_of(shared->run, thread);
    bound.part.index = part;
    cornu__lite_step_run(shared->step, &bound);
}

/* That is worth waking another thread for: about a microsecond of one. */
enum { SHARED_WORK = 1 << 17 };

/* A step by one thread, or if it is large and the block is the only one by all. */
static void run_step(const CornuLiteRun *run, const CornuLiteStep *step, CornuLiteBound *bound)
{
    const int threads = cornu__threads_count(run->threads);
    if (bound->part.count == 1 || step->work * bound->batch < SHARED_WORK) {
        const CornuInt8Part part = bound->part;
        bound->part = (CornuInt8Part){ 0, 1 };
        cornu__lite_step_run(step, bound);
        bound->part = part;
        return;
    }
    cornu__threads_run(run->threads, threads, run_part, &(SharedStep){ run, step, bound });
}

static void run_block(void *context, int64_t block, int thread)
{
    const Call           *call = context;
    const CornuLiteRun   *run = call->run;
    const CornuLiteGraph *graph = run->graph;
    const int64_t  first = block * call->block_rows, left = call->rows - first;
    CornuLiteBound bound = {
        .batch = left < call->block_rows ? left : call->block_rows,
        .tensors = run->tensors + thread * graph->tensor_count,
        .scratch = scratch_of(run, thread),
        .part = { 0, call->block_rows >= call->rows ? cornu__threads_count(run->threads) : 1 }
    };
    for (int i = 0; i < graph->input_count; i++) {
        const int    t = graph->inputs[i].tensor;
        const size_t row = tensor_bytes(&graph->tensors[t], 1);
        memcpy(bound.tensors[t], (const char *)call->in[i] + (size_t)first * row,
               (size_t)bound.batch * row);
    }
    for (int o = 0; o < run->step_count; o++) run_step(run, &run->steps[o], &bound);
    for (int i = 0; i < graph->output_count; i++) {
        const int    t = graph->outputs[i].tensor;
        const size_t row = tensor_bytes(&graph->tensors[t], 1);
        memcpy((char *)call->out[i] + (size_t)first * row, bound.tensors[t],
               (size_t)bound.batch * row);
    }
}

CornuStatus cornu__lite_run(CornuLiteRun *run, int64_t rows, const void *const *in,
                            void *const *out)
{
    if (rows < 0) return cornu__fail(CORNU_ERR_ARGUMENT, "%lld rows", (long long)rows);
    if (rows == 0) return CORNU_OK;
    /* Blocks of about the same size, as many for each thread; fewer rows than threads are one block
     * whose steps the threads share. */
    const int64_t threads = rows < cornu__threads_count(run->threads)
                                ? 1 : cornu__threads_count(run->threads);
    const int64_t most = threads * run->block_rows, rounds = (rows + most - 1) / most;
    const int64_t each = (rows + rounds * threads - 1) / (rounds * threads);
    const int64_t blocks = (rows + each - 1) / each;
    Call          call = { run, rows, each, in, out };
    if (blocks == 1) run_block(&call, 0, 0);   /* whose steps may use the threads */
    else             cornu__threads_run(run->threads, blocks, run_block, &call);
    return CORNU_OK;
}
