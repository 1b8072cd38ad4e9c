/* Programs of layers that run on the host: see nn/layers/README.md. */
#include <string.h>

#include "host_program_internal.h"

/* ---- Arrays ---- */

static CornuStatus run_call(const CornuHostCall *call, const CornuArray *values, CornuArray *out)
{
    CornuArray in[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < call->in_count; i++) in[i] = values[call->in[i]];
    out->data = NULL;
    CORNU__TRY(cornu__fail_prefix(call->layer->kind->host_type(call->layer, in, call->in_count,
                                                               &out->type),
                                  cornu_layer_name(call->layer)));
    out->data = cornu__allocate(1, cornu_type_bytes(out->type));
    if (!out->data) return CORNU_ERR_MEMORY;
    return cornu__fail_prefix(call->layer->kind->host_call(call->layer, in, call->in_count, *out),
                              cornu_layer_name(call->layer));
}

static bool is_result(const CornuHostProgram *program, int value)
{
    bool any = false;
    for (int i = 0; i < program->result_count; i++) any |= program->results[i] == value;
    return any;
}

CornuStatus cornu__host_program_run(const CornuHostProgram *program, const CornuArray *given,
                            CornuArray *to)
{
    CornuStatus status = CORNU_OK;
    CornuArray *values = cornu__allocate((size_t)program->value_count, sizeof *values);
    if (!values) return CORNU_ERR_MEMORY;
    memcpy(values, given, (size_t)program->given * sizeof *values);
    for (int i = 0; i < program->call_count && !status; i++)
        status = run_call(&program->calls[i], values, &values[program->calls[i].out]);
    for (int i = program->given; i < program->value_count; i++) {
        if (!status && is_result(program, i)) continue;
        cornu__release(values[i].data);
        values[i].data = NULL;
    }
    for (int i = 0; i < program->result_count; i++)
        to[i] = status ? (CornuArray){ .data = NULL } : values[program->results[i]];
    cornu__release(values);
    return status;
}

void cornu__host_results_free(const CornuHostProgram *program, CornuArray *results)
{
    for (int i = 0; i < program->result_count; i++)
        if (program->results[i] >= program->given) cornu__release(results[i].data);
}

/* ---- Data sets ---- */

typedef struct {
    CornuHostProgram program;
    CornuType       *types;    /* of all values, of so many rows as a batch or element has */
} HostMap;

/* A type with its rows as axis 0: an element is a batch of one row. */
static CornuType of_rows(const CornuDataset *dataset, CornuType type, int64_t rows)
{
    if (!dataset->batch_size) {
        memmove(type.shape.extent + 1, type.shape.extent,
                sizeof *type.shape.extent * (CORNU_MAX_RANK - 1));
        type.shape.rank++;
    }
    type.shape.extent[0] = rows;
    return type;
}

static CornuType without_rows(const CornuDataset *dataset, CornuType type)
{
    if (dataset->batch_size) return type;
    type.shape.rank--;
    memmove(type.shape.extent, type.shape.extent + 1,
            sizeof *type.shape.extent * (CORNU_MAX_RANK - 1));
    return type;
}

static CornuArray result_of(const HostMap *map, const CornuHostCall *call, int64_t rows)
{
    CornuArray result = { .type = map->types[call->out] };
    result.type.shape.extent[0] = rows;
    result.data = cornu__allocate(1, cornu_type_bytes(result.type));
    return result;
}

static CornuStatus compute(const HostMap *map, CornuArray *values, int64_t rows)
{
    for (int i = 0; i < map->program.call_count; i++) {
        const CornuHostCall *call = &map->program.calls[i];
        CornuArray           in[CORNU_MAX_LAYER_TENSORS];
        for (int k = 0; k < call->in_count; k++) in[k] = values[call->in[k]];
        values[call->out] = result_of(map, call, rows);
        if (!values[call->out].data) return CORNU_ERR_MEMORY;
        CORNU__TRY(cornu__fail_prefix(call->layer->kind->host_call(call->layer, in, call->in_count,
                                                                   values[call->out]),
                                      cornu_layer_name(call->layer)));
    }
    return CORNU_OK;
}

/* Rows of padding stay zeros: an empty string may be an error. */
static CornuStatus fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const CornuDataset     *dataset = stage->dataset, *source = dataset->source;
    const HostMap          *map = dataset->own;
    const CornuHostProgram *program = &map->program;
    CORNU__TRY(cornu__stage_fetch(stage->source, at, stage->map.element, valid));
    const int64_t rows = source->batch_size ? *valid : 1;
    CornuArray   *values = cornu__allocate((size_t)program->value_count, sizeof *values);
    if (!values) return CORNU_ERR_MEMORY;
    for (int c = 0; c < program->given; c++)
        values[c] = cornu_array_from(stage->map.element[c],
                                     of_rows(source, source->type[c], rows));
    const CornuStatus status = *valid ? compute(map, values, rows) : CORNU_OK;
    for (int i = 0; i < program->result_count && !status; i++) {
        const int  value = program->results[i];
        const bool own = value >= program->given;
        if (own) memset(to[i], 0, dataset->bytes[i]);
        if (*valid) memcpy(to[i], values[value].data,
                           own ? cornu_type_bytes(values[value].type) : dataset->bytes[i]);
    }
    for (int i = program->given; i < program->value_count; i++) cornu__release(values[i].data);
    cornu__release(values);
    return status;
}

static CornuStatus open_stage(CornuStage *stage)
{
    stage->map.memory = cornu__element_allocate(stage->dataset->source, stage->map.element);
    return stage->map.memory ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void close_stage(CornuStage *stage) { cornu__release(stage->map.memory); }

static void free_map(CornuDataset *dataset)
{
    HostMap *map = dataset->own;
    if (map) {
        cornu__release(map->program.calls);
        cornu__release(map->types);
    }
    cornu__release(map);
}

static const CornuDatasetKind host_kind = { .name = "layers", .fetch = fetch, .open = open_stage,
                                            .close = close_stage, .free = free_map,
                                            .of_any_batch = true };

static CornuStatus infer_call(const CornuDataset *source, const HostMap *map,
                              const CornuHostCall *call)
{
    const bool          has_arrays = cornu__dataset_is_arrays(source);
    CornuArray          in[CORNU_MAX_LAYER_TENSORS];
    CornuType          *out = &map->types[call->out];
    CornuText           text;
    const int64_t       rows = source->batch_size ? source->batch_size : 1;
    for (int k = 0; k < call->in_count; k++) {
        in[k] = cornu_array_from(NULL, map->types[call->in[k]]);
        if (!has_arrays || call->in[k] >= map->program.given || source->count == 0) continue;
        in[k].type.shape.extent[0] = source->count;      /* all rows tell the longest length */
        in[k].data = source->arrays.data[call->in[k]];
    }
    for (int k = 1; k < call->in_count; k++)
        if (!in[k].data != !in[0].data) in[0].data = in[k].data = NULL;
    for (int k = 0; k < call->in_count; k++)
        if (!in[0].data) in[k] = cornu_array_from(NULL, map->types[call->in[k]]);
    CORNU__TRY(call->layer->kind->host_type(call->layer, in, call->in_count, out));
    out->shape.extent[0] = rows;
    for (int i = 1; i < out->shape.rank; i++)
        if (out->shape.extent[i] == CORNU_NONE)
            return cornu__fail(CORNU_ERR_SHAPE, "the result is %s, expected one length for a data "
                               "set: give .output_sequence_length",
                               cornu_shape_print(&text, out->shape));
    return CORNU_OK;
}

static CornuStatus infer(CornuDataset *dataset, HostMap *map)
{
    const CornuDataset     *source = dataset->source;
    const CornuHostProgram *program = &map->program;
    const int64_t           rows = source->batch_size ? source->batch_size : 1;
    CornuType               types[CORNU_MAX_COMPONENTS];
    map->types = cornu__allocate((size_t)program->value_count, sizeof *map->types);
    if (!map->types) return CORNU_ERR_MEMORY;
    for (int c = 0; c < program->given; c++) {
        if (source->type[c].shape.rank == CORNU_MAX_RANK)
            return cornu__fail(CORNU_ERR_SHAPE, "component %d has %d axes, expected fewer", c,
                               CORNU_MAX_RANK);
        map->types[c] = of_rows(source, source->type[c], rows);
    }
    for (int i = 0; i < program->call_count; i++)
        CORNU__TRY(cornu__fail_prefix(infer_call(source, map, &program->calls[i]),
                                      cornu_layer_name(program->calls[i].layer)));
    for (int i = 0; i < program->result_count; i++)
        types[i] = without_rows(source, map->types[program->results[i]]);
    dataset->components = program->result_count;
    for (int i = 0; i < program->result_count; i++) {
        dataset->type[i] = types[i];
        dataset->bytes[i] = cornu_type_bytes(types[i]);
    }
    return CORNU_OK;
}

CornuDataset *cornu__dataset_host(CornuDataset *source, CornuHostProgram program)
{
    CornuDataset *dataset = cornu__dataset_derive(source, &host_kind, "cornu_dataset_layer");
    HostMap      *map = dataset ? cornu__allocate(1, sizeof *map) : NULL;
    if (!map) {
        cornu__release(program.calls);
        cornu_dataset_free(dataset);
        return cornu__null();
    }
    map->program = program;
    dataset->own = map;
    if (!infer(dataset, map)) return dataset;
    cornu_dataset_free(dataset);
    return cornu__null();
}

CornuDataset *cornu_dataset_layer(CornuDataset *source, const CornuLayer *layer, int first,
                                  int count)
{
    const int        components = source ? source->components : 0;
    CornuHostProgram program = { .given = components, .value_count = components + 1,
                                 .call_count = 1 };
    CornuHostCall   *call = program.calls = source ? cornu__allocate(1, sizeof *call) : NULL;
    if (source && (!layer || !cornu__on_host(layer) || first < 0 || count < 1 ||
                   count > CORNU_MAX_LAYER_TENSORS || count > components - first))
        cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_dataset_layer: %s on %d components from %d on "
                         "of %d, expected a layer that runs on the host, and components",
                         layer ? cornu_layer_name(layer) : "NULL", count, first, components);
    if (!source || !call || cornu_error_pending()) {
        cornu__release(call);
        cornu_dataset_free(source);
        return cornu__null();
    }
    *call = (CornuHostCall){ .layer = layer, .in_count = count, .out = components };
    for (int i = 0; i < count; i++) call->in[i] = first + i;
    for (int c = 0; c < components; c++)
        if (c < first || c >= first + count) program.results[program.result_count++] = c;
        else if (c == first) program.results[program.result_count++] = components;
    return cornu__dataset_host(source, program);
}
