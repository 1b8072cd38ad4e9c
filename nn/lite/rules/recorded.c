/* Recording a layer, and writing its program: recorded_internal.h. */
#include "recorded_internal.h"

#include "../../../device/memory_internal.h"
#include "../../../device/ops/rewrite.h"
#include "../../../tensor/function_internal.h"
#include "../../../tensor/graph_internal.h"
#include "../../layers/layer_internal.h"

#include <string.h>

typedef struct {
    CornuGraph   *graph;
    CornuProgram *program;
    CornuLayer   *layer;
    CornuTensor  *in[CORNU_MAX_LAYER_TENSORS], *out[CORNU_MAX_LAYER_TENSORS];
    CornuTensor **weights;                 /* of the layer; NULL where it reads none */
    CornuTensor **constants;               /* with their arrays, copied */
    CornuArray   *arrays;
    int           array_count, array_space, constant_space;
    CornuTensor **fetched;
    int           fetched_count, fetched_space;
} Record;

/* ---- Recording ---- */

static CornuTensor *weight_of(void *context, const CornuWeight *weight)
{
    Record *record = context;
    int     i = 0;
    while (record->layer->weights[i] != weight) i++;
    if (!record->weights[i])
        record->weights[i] = cornu__graph_parameter(record->graph, weight->type);
    return record->weights[i];
}

static CornuTensor *array_of(void *context, CornuArray array)
{
    Record *record = context;
    if (cornu__reserve(&record->arrays, &record->array_space, record->array_count, 1,
                       sizeof *record->arrays) ||
        cornu__reserve(&record->constants, &record->constant_space, record->array_count, 1,
                       sizeof *record->constants))
        return cornu__null();
    CornuArray copy = cornu_array_from(cornu__allocate(cornu_type_bytes(array.type), 1),
                                       array.type);
    if (!copy.data) return cornu__null();
    memcpy(copy.data, array.data, cornu_type_bytes(array.type));
    CornuTensor *input = cornu__graph_parameter(record->graph, array.type);
    record->constants[record->array_count] = input;
    record->arrays[record->array_count++] = copy;
    return input;
}

static CornuTensor *input_of(Record *record, const CornuLiteCall *call, int i, int world)
{
    const CornuLiteDtype dtype = call->to->graph->tensors[call->in[i]].dtype;
    const CornuType      type = { dtype == CORNU_LITE_I32    ? CORNU_I32
                                  : dtype == CORNU_LITE_BOOL ? CORNU_BOOL : CORNU_F32,
                                  cornu__lite_noted(call->to, call->in[i], world) };
    return cornu__graph_parameter(record->graph, type);
}

static void fetch(Record *record, CornuTensor *tensor)
{
    if (tensor && !cornu__reserve(&record->fetched, &record->fetched_space, record->fetched_count,
                                  1, sizeof *record->fetched))
        record->fetched[record->fetched_count++] = tensor;
}

static CornuStatus record_op(CornuRewrite *rewrite, const CornuProgramOp *op, const void *context)
{
    const CornuOpCall call = cornu_program_call(rewrite->from, op, rewrite->in_type);
    const bool composed = op->id == CORNU_OP_ATTENTION || op->id == CORNU_OP_LSTM ||
                          op->id == CORNU_OP_GRU ||
                          (cornu__has_body(op) && !cornu__lite_has_function(&call));
    (void)context;
    return composed ? cornu__rewrite_decompose(rewrite, op) : cornu__rewrite_keep(rewrite, op);
}

static int weights_of(const CornuLiteCall *call)
{
    return call->layer ? call->layer->weight_count : 0;
}

static int outputs_of(const CornuLiteCall *call)
{
    return call->layer ? cornu_layer_outputs(call->layer) : 1;
}

/* What is fetched is not dropped, in this order: results, inputs, weights, constants. */
static CornuStatus prepare(Record *record, const CornuLiteCall *call)
{
    const int weights = weights_of(call), outputs = outputs_of(call);
    int       wanted = outputs + call->in_count + record->array_count;
    for (int i = 0; i < outputs; i++) fetch(record, record->out[i]);
    for (int i = 0; i < call->in_count; i++) fetch(record, record->in[i]);
    for (int i = 0; i < weights; i++) fetch(record, record->weights[i]);
    for (int i = 0; i < weights; i++) wanted += record->weights[i] != NULL;
    for (int i = 0; i < record->array_count; i++) fetch(record, record->constants[i]);
    if (record->fetched_count < wanted) return CORNU_ERR_MEMORY;
    CornuProgram *recorded = cornu__graph_lowered(record->graph, record->fetched,
                                                  record->fetched_count);
    if (!recorded) return cornu_error_take();
    record->program = cornu__rewrite_rounds(recorded, record_op, NULL);
    cornu_program_free(recorded);
    return record->program ? CORNU_OK : CORNU_ERR_MEMORY;
}

static CornuStatus record_layer(Record *record, const CornuLiteCall *call, CornuDevice *device,
                                int world)
{
    record->layer = (CornuLayer *)call->layer;
    record->weights = cornu__allocate((size_t)weights_of(call) + 1, sizeof *record->weights);
    if (!record->weights) return CORNU_ERR_MEMORY;
    if (!(record->graph = cornu_graph_create(device))) return cornu_error_take();
    cornu__graph_keep_functions(record->graph);
    CornuTensor *count = cornu_op_constant(record->graph, cornu_scalar(CORNU_I64),
                                           (double)cornu__lite_batches[world]);
    CornuTensor *zero = cornu_op_constant(record->graph, cornu_scalar(CORNU_I64), 0.0);
    CornuTensor *masks[CORNU_MAX_LAYER_TENSORS] = { NULL };
    CornuTensor *out_masks[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < call->in_count; i++) record->in[i] = input_of(record, call, i, world);
    const CornuDescription description = { record, weight_of, array_of };
    const CornuCall traced = { .graph = record->graph, .count = count, .total = count,
                               .seed = zero, .iteration = zero, .position = zero, .masks = masks,
                               .shapes_only = true, .description = &description };
    if (!record->layer) record->out[0] = cornu_activation_apply(call->activation, record->in[0]);
    else cornu__layer_call_masked(record->layer, &traced, record->in, call->in_count, masks,
                                  record->out, out_masks);
    if (!record->out[0]) return cornu_error_take();
    return prepare(record, call);
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

/* A constant in f32, i32 or bool. */
static int constant(CornuLite *to, CornuArray array)
{
    const CornuLiteDtype kept = cornu__lite_kept(array.type.dtype);
    const int made = cornu__lite_add_constant(to->graph, "constant", kept, array.type.shape, NULL);
    if (made < 0) return made;
    void *data = to->graph->tensors[made].data;
    for (int64_t i = 0; i < cornu_type_count(array.type); i++) {
        const double value = cornu_array_get(array, i);
        if (kept == CORNU_LITE_F32)      ((float *)data)[i] = (float)value;
        else if (kept == CORNU_LITE_I32) ((int32_t *)data)[i] = (int32_t)value;
        else                             ((bool *)data)[i] = value != 0.0;
    }
    return made;
}

/* The layer's result is f32 or, as the next layer's trace has it, of its own dtype. */
static CornuStatus put_program(const CornuLiteCall *call, const Record *record,
                               CornuLiteProgram *program)
{
    const int    outputs = outputs_of(call);
    int          next = outputs;
    const CornuProgram *from = program->program;
    for (int i = 0; i < call->in_count; i++)
        program->tensors[from->outputs[next++].value] = call->in[i];
    for (int i = 0; i < weights_of(call); i++)
        if (record->weights[i])
            program->tensors[from->outputs[next++].value] =
                cornu__lite_weight(call->to, call->layer, i);
    for (int i = 0; i < record->array_count; i++)
        program->tensors[from->outputs[next++].value] = constant(call->to, record->arrays[i]);
    CORNU__TRY(cornu__lite_ops(program));
    for (int i = 0; i < outputs; i++) {
        const CornuProgramOp result = { .in_count = 1 };
        const CornuLiteOp    op = { .program = program, .to = call->to, .op = &result,
                                    .in = &from->outputs[i].value };
        CORNU__TRY(cornu__lite_full(&op, 0, &call->out[i]));
        cornu__lite_note(call->to, call->out[i],
                         program->worlds[0]->values[*op.in].type.shape,
                         program->worlds[1]->values[*op.in].type.shape);
    }
    return CORNU_OK;
}

/* Whether the programs differ in extents alone. */
static bool alike(const Record *a, const Record *b)
{
    if (a->program->op_count != b->program->op_count || a->array_count != b->array_count ||
        a->program->value_count != b->program->value_count)
        return false;
    for (int i = 0; i < a->program->op_count; i++)
        if (a->program->ops[i].id != b->program->ops[i].id ||
            a->program->ops[i].out_first != b->program->ops[i].out_first)
            return false;
    for (int i = 0; i < a->array_count; i++)
        if (!cornu_type_equal(a->arrays[i].type, b->arrays[i].type) ||
            memcmp(a->arrays[i].data, b->arrays[i].data, cornu_type_bytes(a->arrays[i].type)))
            return false;
    return true;
}

static CornuStatus put_records(const CornuLiteCall *call, const Record *worlds)
{
    CornuLiteProgram program = { .to = call->to, .program = worlds[0].program };
    if (!alike(&worlds[0], &worlds[1]))
        return cornu__lite_refuse(call->layer, "this node", "where what it computes depends on "
                                  "the size of the batch");
    for (int w = 0; w < CORNU_LITE_WORLDS; w++) program.worlds[w] = worlds[w].program;
    const size_t count = (size_t)program.program->value_count;
    program.tensors = cornu__allocate(count, sizeof *program.tensors);
    if (!program.tensors) return CORNU_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) program.tensors[i] = CORNU_LITE_NONE;
    const CornuStatus status = put_program(call, worlds, &program);
    cornu__release(program.tensors);
    return cornu__fail_prefix(status, call->to->name);
}

CornuStatus cornu__lite_recorded(const CornuLiteCall *call)
{
    Record       worlds[CORNU_LITE_WORLDS] = { { .graph = NULL } };
    CornuDevice *device = cornu_device_open("reference");
    CornuStatus  status = device ? CORNU_OK : cornu_error_take();
    for (int w = 0; w < CORNU_LITE_WORLDS && !status; w++)
        status = record_layer(&worlds[w], call, device, w);
    if (!status) status = put_records(call, worlds);
    for (int w = 0; w < CORNU_LITE_WORLDS; w++) free_record(&worlds[w]);
    cornu_device_close(device);
    return status;
}
