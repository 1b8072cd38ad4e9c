/* Recording a layer in all worlds, and writing the program. */
#include "recorded_internal.h"

#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../../device/ops/rewrite.h"
#include "../../../tensor/function_internal.h"
#include "../../../tensor/graph_internal.h"
#include "../../layers/layer_internal.h"

/* A layer, recorded: its inputs and weights are inputs of the program, its results and their masks
 * the first outputs. */
typedef struct {
    CornuGraph  *graph;
    CornuProgram *program;                 /* of the graph, of ops that files may have */
    CornuLayer  *layer;
    CornuTensor *in[CORNU_MAX_LAYER_TENSORS], *masks[CORNU_MAX_LAYER_TENSORS];
    CornuTensor **weights;                 /* of the layer; NULL where it reads none */
    CornuTensor *out[CORNU_MAX_LAYER_TENSORS], *out_masks[CORNU_MAX_LAYER_TENSORS];
    CornuTensor **fetched;
    int          fetched_count, fetched_space;
    CornuArray  *arrays;                   /* constants, copied */
    CornuTensor **constants;
    int          array_count, array_space, constant_space;
} Record;

/* The weight as an input of the graph, for CornuDescription. */
static CornuTensor *weight_of(void *context, const CornuWeight *weight)
{
    Record *record = context;
    int     i = 0;
    while (record->layer->weights[i] != weight) i++;
    if (!record->weights[i])
        record->weights[i] = cornu__graph_parameter(record->graph, weight->type);
    return record->weights[i];
}

/* An array as an input of the graph, for CornuDescription; as it will be written: all integers in
 * 64 bits, all floats in 32. */
static CornuTensor *array_of(void *context, CornuArray array)
{
    Record   *record = context;
    CornuType type = array.type;
    if (type.dtype != CORNU_BOOL)
        type.dtype = cornu_dtype_is_float(type.dtype) ? CORNU_F32 : CORNU_I64;
    if (cornu__reserve(&record->arrays, &record->array_space, record->array_count, 1,
                       sizeof *record->arrays) ||
        cornu__reserve(&record->constants, &record->constant_space, record->array_count, 1,
                       sizeof *record->constants))
        return cornu__null();
    CornuArray copy = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    if (!copy.data) return cornu__null();
    for (int64_t i = 0; i < cornu_type_count(type); i++)
        cornu_array_set(copy, i, cornu_array_get(array, i));
    CornuTensor *input = cornu__graph_parameter(record->graph, array.type);
    record->constants[record->array_count] = input;
    record->arrays[record->array_count++] = copy;
    return input;
}

/* Of its own dtype for layers that do not convert it, else f32. The batch may be another axis than
 * the first. */
static CornuTensor *input_of(Record *record, const CornuOnnxCall *call, int i, int world)
{
    const CornuLayer *layer = record->layer;
    const bool        keeps = layer && (layer->takes_integers || layer->kind->keeps_dtypes);
    CornuType         type = { keeps ? call->dtypes[i] : CORNU_F32, call->shapes[i] };
    if (layer && !layer->kind->types) type.shape.extent[0] = CORNU_NONE;
    for (int k = 0; k < type.shape.rank; k++)
        type.shape.extent[k] = cornu__onnx_extent_in(call->to, type.shape.extent[k], world);
    return cornu__graph_parameter(record->graph, type);
}

static CornuTensor *mask_of(Record *record, const CornuOnnxCall *call, int i, int world)
{
    if (!call->masks[i]) return NULL;
    return cornu__graph_parameter(record->graph,
                             cornu_type(CORNU_BOOL, cornu__onnx_batches[world],
                                        cornu__onnx_extent_in(call->to, call->shapes[i].extent[1],
                                                              world)));
}

/* What is fetched is not dropped: also the inputs, which so keep their order. */
static void fetch(Record *record, CornuTensor *tensor)
{
    if (tensor && !cornu__reserve(&record->fetched, &record->fetched_space, record->fetched_count,
                                  1, sizeof *record->fetched))
        record->fetched[record->fetched_count++] = tensor;
}

/* Attention has no nodes of its own, nor has an op with a body unless it is a function with an
 * operator. */
static CornuStatus record_op(CornuRewrite *rewrite, const CornuProgramOp *op, const void *to)
{
    const CornuOpCall call = cornu_program_call(rewrite->from, op, rewrite->in_type);
    if (op->id == CORNU_OP_ATTENTION ||
        (cornu__has_body(op) && !cornu__onnx_has_function(to, &call)))
        return cornu__rewrite_decompose(rewrite, op);
    return cornu__rewrite_keep(rewrite, op);
}

static int outputs_of(const CornuOnnxCall *call)
{
    return call->layer ? cornu_layer_outputs(call->layer) : 1;
}

static int weights_of(const CornuOnnxCall *call)
{
    return call->layer ? call->layer->weight_count : 0;
}

static CornuStatus record_layer(Record *record, const CornuOnnxCall *call, CornuDevice *device,
                                int world)
{
    const int64_t rows = cornu__onnx_batches[world];
    const int outputs = outputs_of(call), weights = weights_of(call);
    record->layer = (CornuLayer *)call->layer;
    record->weights = cornu__allocate((size_t)weights + 1, sizeof *record->weights);
    record->fetched_space = weights + 4 * CORNU_MAX_LAYER_TENSORS;
    record->fetched = cornu__allocate((size_t)record->fetched_space, sizeof *record->fetched);
    if (!record->weights || !record->fetched) return CORNU_ERR_MEMORY;
    if (!(record->graph = cornu_graph_create(device))) return cornu_error_take();
    cornu__graph_keep_functions(record->graph);
    CornuTensor *count = cornu_op_constant(record->graph, cornu_scalar(CORNU_I64), (double)rows);
    CornuTensor *zero = cornu_op_constant(record->graph, cornu_scalar(CORNU_I64), 0.0);
    for (int i = 0; i < call->in_count; i++) {
        record->in[i] = input_of(record, call, i, world);
        record->masks[i] = mask_of(record, call, i, world);
    }
    const CornuDescription description = { record, weight_of, array_of };
    const CornuCall traced = { .graph = record->graph, .count = count, .total = count,
                               .seed = zero, .iteration = zero, .position = zero,
                               .mask = record->masks[0], .masks = record->masks,
                               .shapes_only = true, .description = &description };
    if (!record->layer) record->out[0] = cornu_activation_apply(call->activation, record->in[0]);
    else cornu__layer_call_masked(record->layer, &traced, record->in, call->in_count,
                                  record->masks, record->out, record->out_masks);
    if (!record->out[0]) return cornu_error_take();
    for (int i = 0; i < outputs; i++) fetch(record, record->out[i]);
    for (int i = 0; i < outputs; i++) fetch(record, record->out_masks[i]);
    for (int i = 0; i < call->in_count; i++) fetch(record, record->in[i]);
    for (int i = 0; i < call->in_count; i++) fetch(record, record->masks[i]);
    for (int i = 0; i < weights; i++) fetch(record, record->weights[i]);
    const int without = record->fetched_count;
    for (int i = 0; i < record->array_count; i++) fetch(record, record->constants[i]);
    if (record->fetched_count < without + record->array_count) return CORNU_ERR_MEMORY;
    CornuProgram *recorded = cornu__graph_lowered(record->graph, record->fetched,
                                                  record->fetched_count);
    if (!recorded) return cornu_error_take();
    record->program = cornu__rewrite_rounds(recorded, record_op, call->to);
    cornu_program_free(recorded);
    return record->program ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void free_record(Record *record)
{
    cornu_program_free(record->program);
    cornu_graph_free(record->graph);
    for (int i = 0; i < record->array_count; i++) cornu__release(record->arrays[i].data);
    cornu__release(record->arrays);
    cornu__release(record->constants);
    cornu__release(record->weights);
    cornu__release(record->fetched);
}

/* ---- Writing ---- */

/* The value of a tensor, by its place among the fetched ones. */
static CornuValue fetched_value(const CornuProgram *program, int *next)
{
    return program->outputs[(*next)++].value;
}

/* Sets the values of the program's inputs, and writes it. */
static CornuStatus put_program(const CornuOnnxCall *call, const Record *record,
                               CornuOnnxProgram *program)
{
    CornuOnnx *to = call->to;
    const int  outputs = outputs_of(call);
    int        next = 0;
    CornuValue results[CORNU_MAX_LAYER_TENSORS], masks[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < outputs; i++) results[i] = fetched_value(program->program, &next);
    for (int i = 0; i < outputs; i++)
        masks[i] = record->out_masks[i] ? fetched_value(program->program, &next) : CORNU_NO_VALUE;
    for (int i = 0; i < call->in_count; i++) {
        const CornuValue value = fetched_value(program->program, &next);
        const CornuDtype dtype = program->program->values[value].type.dtype;
        const bool       same = dtype == CORNU_F32 && cornu_dtype_is_float(call->dtypes[i]);
        cornu__onnx_set(program, value,
                        same ? call->in[i] : cast(to, call->in[i], cornu__onnx_type(dtype)));
    }
    for (int i = 0; i < call->in_count; i++)
        if (record->masks[i])
            program->full[fetched_value(program->program, &next)] = call->masks[i];
    for (int i = 0; i < weights_of(call); i++)
        if (record->weights[i])
            program->full[fetched_value(program->program, &next)] =
                cornu__onnx_weight(to, call->layer, i);
    for (int i = 0; i < record->array_count; i++)
        program->full[fetched_value(program->program, &next)] =
            cornu__onnx_constant(to, record->arrays[i]);
    const CornuStatus status = cornu__onnx_ops(program);
    if (status) return call->layer ? cornu__fail_prefix(status, cornu_layer_name(call->layer))
                                   : status;
    for (int i = 0; i < outputs; i++) {
        const int y = cornu__onnx_full(program, results[i]);
        const CornuDtype dtype = program->program->values[results[i]].type.dtype;
        call->out[i] = cornu_dtype_is_float(dtype) ? y : cast(to, y, CORNU_ONNX_FLOAT);
        call->out_masks[i] = masks[i] == CORNU_NO_VALUE ? CORNU_ONNX_NONE
                                                        : cornu__onnx_full(program, masks[i]);
    }
    return CORNU_OK;
}

/* Whether the programs differ in extents alone. */
static bool alike(const CornuProgram *a, const CornuProgram *b)
{
    if (a->op_count != b->op_count || a->value_count != b->value_count) return false;
    for (int i = 0; i < a->op_count; i++)
        if (a->ops[i].id != b->ops[i].id || a->ops[i].out_first != b->ops[i].out_first)
            return false;
    return true;
}

static bool same_arrays(const Record *a, const Record *b)
{
    if (a->array_count != b->array_count) return false;
    for (int i = 0; i < a->array_count; i++)
        if (!cornu_type_equal(a->arrays[i].type, b->arrays[i].type) ||
            memcmp(a->arrays[i].data, b->arrays[i].data, cornu_type_bytes(a->arrays[i].type)))
            return false;
    return true;
}

static CornuStatus put_records(const CornuOnnxCall *call, const Record *worlds)
{
    CornuOnnxProgram program = { .to = call->to, .program = worlds[0].program };
    for (int w = 0; w < CORNU_ONNX_WORLDS; w++) {
        program.worlds[w] = worlds[w].program;
        if (alike(program.program, program.worlds[w]) && same_arrays(worlds, &worlds[w])) continue;
        return cornu__onnx_refuse(call->layer, "this layer", "what it computes depends on the size "
                                  "of the batch, or on other unknown extents");
    }
    if (call->layer) cornu__onnx_batch_of(call->to, call->in[0]);   /* not in bodies of loops */
    const size_t count = (size_t)program.program->value_count;
    program.full = cornu__allocate(2 * count, sizeof *program.full);
    CornuStatus status = program.full ? CORNU_OK : CORNU_ERR_MEMORY;
    program.extents = cornu__allocate(count, sizeof *program.extents);
    program.first = cornu__allocate(count, sizeof *program.first);
    if (!program.extents || !program.first) status = CORNU_ERR_MEMORY;
    if (!status) {
        for (size_t i = 0; i < count; i++) program.first[i] = (CornuValue)i;
        program.small = program.full + count;
        status = cornu__onnx_find_known(&program, cornu__onnx_has_writer);
    }
    if (!status) {
        status = put_program(call, worlds, &program);
    }
    cornu__onnx_free_known(&program);
    cornu__release(program.full);
    cornu__release(program.extents);
    cornu__release(program.first);
    return status;
}

CornuStatus cornu__onnx_recorded(const CornuOnnxCall *call)
{
    Record       worlds[CORNU_ONNX_WORLDS] = { { .graph = NULL } };
    CornuDevice *device = cornu_device_open("reference");
    CornuStatus  status = device ? CORNU_OK : cornu_error_take();
    for (int w = 0; w < CORNU_ONNX_WORLDS && !status; w++)
        status = record_layer(&worlds[w], call, device, w);
    if (!status) status = put_records(call, worlds);
    for (int w = 0; w < CORNU_ONNX_WORLDS; w++) free_record(&worlds[w]);
    cornu_device_close(device);
    return status;
}

/* ---- Activations ---- */

int cornu__onnx_activate(CornuOnnx *to, CornuActivation activation, int x, CornuShape shape)
{
    static const CornuDtype dtype = CORNU_F32;
    int               y = x, mask = CORNU_ONNX_NONE, out_mask;
    const CornuStatus status = cornu__onnx_recorded(&(CornuOnnxCall){
        .to = to, .activation = activation, .in = &x, .masks = &mask, .shapes = &shape,
        .dtypes = &dtype, .in_count = 1, .results = &shape, .out = &y, .out_masks = &out_mask });
    if (status && !to->status) to->status = status;
    return y;
}

int cornu__onnx_activated(const CornuOnnxCall *call, int x, CornuShape shape)
{
    static const CornuDtype dtype = CORNU_F32;
    const CornuActivation   activation = activation_of(call->layer, "activation");
    const CornuLayer       *own = call->layer->activation;
    const CornuLayer       *layer = own ? own : cornu__activation_layer(activation);
    int                     y = x, mask = CORNU_ONNX_NONE, out_mask;
    if (!layer) return cornu__onnx_activate(call->to, activation, x, shape);
    const CornuStatus status = call->to->layer(&(CornuOnnxCall){
        .to = call->to, .layer = layer, .in = &x, .masks = &mask, .shapes = &shape,
        .dtypes = &dtype, .in_count = 1, .results = &shape, .out = &y, .out_masks = &out_mask });
    if (status && !call->to->status) call->to->status = status;
    return y;
}
