/*
 * What axis 0 of the inputs is, and sizes of the open extents with which the graph can be traced.
 *
 * A graph is a model of batches if axis 0 of all inputs is the batch and that of all outputs, too.
 * Any other is a function. Whether the rows of a batch depend on each other is found out from the
 * ops, when it is first used (model/find_rows.c); if they do, and the names of open extents do not
 * say that there is one batch, it is a function, too.
 *
 * Open extents are traced with two sizes each. Where the usual ones do not fit, others are tried;
 * an extent with which only one size fits has that size.
 */
#include "load_internal.h"

#include <stdio.h>
#include <string.h>

/* ---- Open extents ---- */

static const CornuReadInfo *input_of(const CornuReadLoad *load, int i)
{
    return &load->model.graph.inputs[i];
}

/* Whether axis 0 of an input has this name. */
static bool names_rows(const CornuReadLoad *load, const char *symbol)
{
    for (int i = 0; i < load->model.graph.input_count && *symbol; i++) {
        const CornuReadInfo *info = input_of(load, i);
        if (info->type.shape.rank > 0 && info->type.shape.extent[0] == CORNU_NONE &&
            !strcmp(info->symbols[0], symbol)) return true;
    }
    return false;
}

static int extent_of(CornuReadLoad *load, const char *symbol, bool rows)
{
    const bool batch = rows && !load->function;
    for (int i = 0; i < load->extent_count; i++) {
        const CornuReadExtent *extent = &load->extents[i];
        if (batch ? extent->rows : *symbol && !strcmp(extent->symbol, symbol)) return i;
    }
    load->extents[load->extent_count] = (CornuReadExtent){ .symbol = symbol, .rows = rows };
    return load->extent_count++;
}

/* Axes of one name have one size; so has axis 0 of all inputs of a model of batches. */
static CornuStatus number_extents(CornuReadLoad *load)
{
    const int    inputs = load->model.graph.input_count;
    const size_t most = (size_t)inputs * CORNU_MAX_RANK;
    if (!load->extents)
        load->extents = cornu__arena_take(&load->arena, most, sizeof *load->extents);
    if (!load->extents) return CORNU_ERR_MEMORY;
    load->extent_count = 0;
    for (int i = 0; i < inputs; i++) {
        const CornuReadInfo *info = input_of(load, i);
        for (int k = 0; k < info->type.shape.rank; k++) {
            const char *symbol = info->symbols[k] ? info->symbols[k] : "";
            load->extent_at[i][k] = -1;
            if (info->type.shape.extent[k] == CORNU_NONE)
                load->extent_at[i][k] = extent_of(load, symbol, k == 0 || names_rows(load, symbol));
        }
    }
    return CORNU_OK;
}

/* ---- What axis 0 is ---- */

static CornuStatus check_inputs(const CornuReadLoad *load)
{
    const CornuReadGraph *graph = &load->model.graph;
    if (graph->input_count < 1 || graph->input_count > CORNU_MAX_MODEL_TENSORS ||
        graph->output_count < 1 || graph->output_count > CORNU_MAX_MODEL_TENSORS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "it has %d inputs and %d outputs, expected 1 to "
                           "%d", graph->input_count, graph->output_count, CORNU_MAX_MODEL_TENSORS);
    for (int i = 0; i < graph->input_count; i++) {
        const CornuReadInfo *info = &graph->inputs[i];
        if (!info->onnx_type || info->type.shape.rank < 0)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "the input %.100s has no known shape; "
                               "expected a tensor of a known rank", info->name);
        for (int k = 0; k < info->type.shape.rank; k++)
            if (info->type.shape.extent[k] == 0)
                return cornu__fail(CORNU_ERR_UNSUPPORTED, "axis %d of the input %.100s has the "
                                   "extent 0", k, info->name);
    }
    return CORNU_OK;
}

/* Sets the extents of all axes of this name; what is not named is that axis alone. */
static void fix(CornuReadLoad *load, int input, int axis, int64_t size)
{
    const char *symbol = input_of(load, input)->symbols[axis];
    for (int i = 0; i < load->model.graph.input_count; i++) {
        CornuReadInfo *info = &load->model.graph.inputs[i];
        for (int k = 0; k < info->type.shape.rank; k++)
            if (info->type.shape.extent[k] == CORNU_NONE &&
                ((i == input && k == axis) ||
                 (symbol && *symbol && info->symbols[k] && !strcmp(info->symbols[k], symbol))))
                info->type.shape.extent[k] = size;
    }
}

/* The extents that the caller gives. */
static CornuStatus take_shapes(CornuReadLoad *load)
{
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS && load->shapes; i++) {
        const int64_t *shape = load->shapes[i];
        CornuText      a, b;
        int            rank = 0;
        bool           fits = true;
        while (rank < CORNU_MAX_RANK && shape[rank]) rank++;
        if (rank == 0) continue;
        if (i >= load->model.graph.input_count)
            return cornu__fail(CORNU_ERR_ARGUMENT, ".input_shapes[%d] is given, the file has %d "
                               "inputs", i, load->model.graph.input_count);
        const CornuReadInfo *info = input_of(load, i);
        const CornuShape     own = info->type.shape;
        for (int k = 0; k < rank && k < own.rank; k++)
            fits &= own.extent[k] == CORNU_NONE || shape[k] == CORNU_NONE ||
                    shape[k] == own.extent[k];
        for (int k = 0; k < rank; k++)
            fits &= shape[k] == CORNU_NONE || (shape[k] > 0 && shape[k] <= INT32_MAX);
        if (!fits || rank != own.rank)
            return cornu__fail(CORNU_ERR_SHAPE, ".input_shapes[%d] is %s, the input %.100s of the "
                               "file is %s", i,
                               cornu_shape_print(&a, cornu_shape_from(rank, shape)), info->name,
                               cornu_shape_print(&b, own));
        for (int k = 0; k < rank; k++)
            if (shape[k] != CORNU_NONE) fix(load, i, k, shape[k]);
    }
    return CORNU_OK;
}

/* Axis 0 of all inputs is open, or of the same size. */
static bool may_be_batch(CornuReadLoad *load)
{
    load->batch = 0;
    for (int i = 0; i < load->model.graph.input_count; i++) {
        const CornuShape shape = input_of(load, i)->type.shape;
        if (shape.rank < 1) return false;
        const int64_t rows = shape.extent[0] == CORNU_NONE ? 0 : shape.extent[0];
        if (i > 0 && rows != load->batch) return false;
        load->batch = rows;
    }
    return true;
}

/* So has that of all outputs. */
static bool gives_batch(CornuReadLoad *load)
{
    const CornuReadGraph *graph = &load->model.graph;
    const int             rows = load->extent_at[0][0];
    for (int i = 0; i < graph->output_count; i++) {
        const CornuReadValue *value = cornu__read_value(load, graph->outputs[i].name);
        for (int r = 0; r < CORNU_READ_RUNS && value && !value->known; r++) {
            const CornuShape shape = value->shapes[r];
            const int64_t    want = rows < 0 ? load->batch : load->extents[rows].size[r];
            if (shape.rank < 1 || shape.extent[0] != want) return false;
        }
    }
    return true;
}

bool cornu__read_names_batch(const CornuReadLoad *load)
{
    for (int i = 1; i < load->model.graph.input_count; i++) {
        const char *first = input_of(load, 0)->symbols[0], *own = input_of(load, i)->symbols[0];
        if (load->extent_at[i][0] >= 0 && !(first && own && *own && !strcmp(first, own)))
            return false;
    }
    return true;
}

/* ---- Sizes ---- */

/* The i-th size to try for an extent, 0 after the last: those of most windows of sound and sides of
 * images first, so that a large graph, of which few can be tried, is traced with them. */
static int64_t candidate(int i)
{
    static const int64_t first[] = { 512, 256, 128, 1024, 32, 224, 48, 160, 320 };
    const int            firsts = (int)(sizeof first / sizeof *first);
    if (i < firsts) return first[i];
    i -= firsts;
    static const int64_t large[] = { 1280, 1536, 2048, 3072, 4096, 8000, 8192, 16000, 16384 };
    const int            count = (int)(sizeof large / sizeof *large);
    if (i < 128) return i + 1;
    if (i < 152) return 128 + 16 * (i - 127);
    if (i < 168) return 512 + 32 * (i - 151);
    return i - 168 < count ? large[i - 168] : 0;
}

/* Each part of a search ends after so many nodes were traced, a KiB of what they compute counting
 * as one. */
enum { MOST_TRACED = 100000 };

/* Traces the graph with the first sizes alone; how far it came is load->reached. */
static CornuStatus try_sizes(CornuReadLoad *load, CornuDevice *device)
{
    CornuReadLoad trial = *load;
    trial.arena = (CornuArena){ .limit = load->arena.limit };
    const CornuStatus status = cornu__read_run(&trial, device, true);
    load->reached = trial.reached;
    load->searched += trial.reached + 1 + (int64_t)(cornu__arena_size(&trial.arena) >> 10);
    cornu__arena_free(&trial.arena);
    return status;
}

/* Whether a failure depends on an extent: not if it is told in the same words of other sizes. */
static bool matters(CornuReadLoad *load, CornuDevice *device, int i)
{
    static const int64_t others[] = { 1, 100, 1000 };
    int64_t *size = &load->extents[i].size[0];
    const int64_t was = *size;
    char     told[512];
    bool     same = try_sizes(load, device) != CORNU_OK;
    snprintf(told, sizeof told, "%s", cornu_error_message());
    for (size_t c = 0; c < sizeof others / sizeof *others && same; c++) {
        if (load->searched >= MOST_TRACED) break;
        *size = others[c];
        same = try_sizes(load, device) && !strncmp(told, cornu_error_message(), sizeof told - 1);
    }
    *size = was;
    return !same;
}

/* Sets sizes with which the whole graph can be traced: of one extent after the other that with
 * which it is traced farthest, from the usual ones on, or from 1. */
static bool find_sizes(CornuReadLoad *load, CornuDevice *device, bool usual)
{
    bool moved = true;
    load->searched = 0;
    for (int i = 0; i < load->extent_count; i++)
        load->extents[i].size[0] = usual ? load->extents[i].usual : 1;
    if (!try_sizes(load, device)) return true;
    int reached = load->reached;
    while (moved) {
        moved = false;
        for (int i = 0; i < load->extent_count; i++) {
            int64_t *size = &load->extents[i].size[0], best = *size;
            if (load->searched >= MOST_TRACED || !matters(load, device, i)) continue;
            for (int c = 0; candidate(c) && load->searched < MOST_TRACED; c++) {
                *size = candidate(c);
                if (!try_sizes(load, device)) return true;
                if (load->reached <= reached) continue;
                reached = load->reached;
                best = *size;
                moved = true;
            }
            *size = best;
        }
    }
    return false;
}

/* Another size that fits an extent: far from the first, or any. */
static void vary(CornuReadLoad *load, CornuDevice *device, int i, bool far)
{
    CornuReadExtent *extent = &load->extents[i];
    const int64_t    was = extent->size[0];
    const int64_t    sizes[] = { 2 * was, 4 * was, 3 * was, was / 2, was / 4 };
    const int        count = (int)(sizeof sizes / sizeof *sizes);
    for (int c = 0; load->searched < MOST_TRACED && (far ? c < count : candidate(c) > 0); c++) {
        const int64_t size = far ? sizes[c] : candidate(c);
        if (size < 1 || size > INT32_MAX || size == was) continue;
        extent->size[0] = size;
        if (!try_sizes(load, device)) return;
    }
    extent->size[0] = was;
}

static bool varies(const CornuReadExtent *extent) { return extent->size[0] != extent->size[1]; }

/* One that grows as another shrinks, shrinks as it grows, or grows with it, as where the batch of
 * the data and that of a state have no name. */
static void vary_two(CornuReadLoad *load, CornuDevice *device, int i, int k)
{
    CornuReadExtent *a = &load->extents[i], *b = &load->extents[k];
    const int64_t    was_a = a->size[0], was_b = b->size[0];
    for (int64_t factor = 2; factor <= 4 && load->searched < MOST_TRACED; factor *= 2)
        for (int turn = 0; turn < 3; turn++) {
            a->size[0] = turn ? was_a * factor : was_a / factor;
            b->size[0] = turn == 1 ? was_b / factor : was_b * factor;
            if (a->size[0] > 0 && b->size[0] > 0 && varies(a) && varies(b) &&
                !try_sizes(load, device)) return;
        }
    a->size[0] = was_a;
    b->size[0] = was_b;
}

/* The first sizes become others, the second ones those that they were; those of extents that cannot
 * vary are the same. */
static void find_others(CornuReadLoad *load, CornuDevice *device)
{
    load->searched = 0;
    for (int i = 0; i < load->extent_count; i++)
        load->extents[i].size[1] = load->extents[i].size[0];
    for (int i = 0; i < load->extent_count; i++) vary(load, device, i, true);
    for (int i = 0; i < load->extent_count; i++)
        for (int k = 0; k < load->extent_count && !varies(&load->extents[i]); k++)
            if (k != i) vary_two(load, device, i, k);
    for (int i = 0; i < load->extent_count; i++)
        if (!varies(&load->extents[i])) vary(load, device, i, false);
}

/* Extents of one size are known. */
static void fix_known(CornuReadLoad *load)
{
    for (int i = 0; i < load->model.graph.input_count; i++)
        for (int k = 0; k < input_of(load, i)->type.shape.rank; k++) {
            const int at = load->extent_at[i][k];
            if (at < 0 || load->extents[at].size[0] != load->extents[at].size[1]) continue;
            load->model.graph.inputs[i].type.shape.extent[k] = load->extents[at].size[0];
            if (!load->function && k == 0) load->batch = load->extents[at].size[0];
        }
}

/* Those that fit nearly all graphs. `factor`: from the first to the second. `apart`: axes 0 of
 * different names differ. */
static void set_usual(CornuReadLoad *load, int64_t size, int64_t factor, bool apart)
{
    static const int64_t primes[] = { 2, 5, 11, 17, 29, 41 };
    int                  rows = 0;
    for (int i = 0; i < load->extent_count; i++) {
        CornuReadExtent *extent = &load->extents[i];
        const int64_t    first = apart ? primes[rows % 6] : 2;
        rows += extent->rows;
        extent->usual = extent->rows ? first : size;
        for (int r = 0; r < CORNU_READ_RUNS; r++)
            extent->size[r] = extent->rows ? first + r : r > 0 ? size * factor : size;
    }
}

static CornuStatus search(CornuReadLoad *load, CornuDevice *device)
{
    set_usual(load, 64, 2, false);
    if (!find_sizes(load, device, true) && !find_sizes(load, device, false)) return CORNU_ERR_SHAPE;
    find_others(load, device);
    fix_known(load);
    return cornu__read_run(load, device, false);
}

/* Whether inputs are sequences, with one open extent besides the batch, if any. */
static bool has_sequences(const CornuReadLoad *load)
{
    for (int i = 0; i < load->model.graph.input_count; i++) {
        int open = 0;
        for (int k = 0; k < input_of(load, i)->type.shape.rank; k++)
            open += load->extent_at[i][k] >= 0 && !load->extents[load->extent_at[i][k]].rows;
        if (open > 1) return false;
    }
    return true;
}

/* Traces the graph with sizes of its open extents; as for layers, some graphs refuse long
 * sequences, others small images. What is computed of windows of sound is the same for sequences of
 * similar lengths. */
static CornuStatus trace(CornuReadLoad *load, CornuDevice *device)
{
    static const struct { int64_t size, factor; bool apart; } usual[] = {
        { 64, 16, true }, { 64, 2, true }, { 64, 16, false }, { 64, 2, false }, { 512, 16, false },
        { 512, 2, false }, { 8, 2, false } };
    CornuFailure first = { .status = CORNU_OK };
    CornuStatus  status;
    CORNU__TRY(number_extents(load));
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        if (usual[i].apart && !load->function) continue;
        if (usual[i].factor > 2 && !has_sequences(load)) continue;
        set_usual(load, usual[i].size, usual[i].factor, usual[i].apart);
        status = cornu__read_run(load, device, false);
        if (!status || load->extent_count == 0 || status == CORNU_ERR_MEMORY) return status;
        if (!first.status) cornu__failure_keep(&first, status);
    }
    if (first.status == CORNU_ERR_SHAPE && search(load, device) == CORNU_OK) return CORNU_OK;
    cornu__failure_tell(&first);
    bool open = false;
    for (int i = 0; i < load->extent_count; i++) open |= !load->extents[i].rows;
    if (!open) return first.status;
    return cornu__fail(first.status, "%s. It has open extents, with sizes of which this fails; "
                       ".input_shapes of cornu_model_load gives others", cornu_error_message());
}

static CornuStatus trace_kinds(CornuReadLoad *load, CornuDevice *device)
{
    CornuFailure failure = { .status = CORNU_OK };
    if (!load->function && may_be_batch(load)) {
        const CornuStatus status = trace(load, device);
        if (!status && gives_batch(load)) return CORNU_OK;
        if (status == CORNU_ERR_MEMORY) return status;
        if (status) cornu__failure_keep(&failure, status);
        if (status && cornu__read_names_batch(load)) return cornu__failure_tell(&failure);
    }
    load->function = true;
    load->batch = 0;
    const CornuStatus status = trace(load, device);
    return status && failure.status ? cornu__failure_tell(&failure) : status;
}

CornuStatus cornu__read_trace(CornuReadLoad *load)
{
    CORNU__TRY(check_inputs(load));
    CORNU__TRY(take_shapes(load));
    CornuDevice *device = cornu_device_open("reference");
    bool         again = false;
    CornuStatus  status = device ? trace_kinds(load, device) : cornu_error_take();
    if (!status) status = cornu__read_record_outputs(load, &again);
    if (!status && again) status = trace_kinds(load, device);
    cornu_device_close(device);
    return status;
}

void cornu__read_first_types(const CornuReadLoad *load, CornuType *types)
{
    for (int i = 0; i < load->model.graph.input_count; i++) {
        types[i] = input_of(load, i)->type;
        for (int k = 0; k < types[i].shape.rank; k++)
            if (types[i].shape.extent[k] == CORNU_NONE)
                types[i].shape.extent[k] = load->extents[load->extent_at[i][k]].size[0];
    }
}
