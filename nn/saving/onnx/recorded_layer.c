#include "recorded_layer.h"

#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../../device/ops/rules.h"
#include "../../../tensor/function_internal.h"
#include "../../../tensor/graph_internal.h"

typedef CornuRecordedLayer Record;

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

/* An array as an input of the graph, for CornuDescription. */
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

static bool call_layer(Record *record, const CornuRecording *recording)
{
    CornuTensor *rows = cornu_op_constant(record->graph, cornu_scalar(CORNU_I64),
                                          (double)recording->rows);
    CornuTensor *zero = cornu_op_constant(record->graph, cornu_scalar(CORNU_I64), 0.0);
    for (int i = 0; i < recording->in_count; i++) {
        record->in[i] = cornu__graph_parameter(record->graph, recording->in[i]);
        if (recording->masks && recording->masks[i].shape.rank)
            record->masks[i] = cornu__graph_parameter(record->graph, recording->masks[i]);
    }
    const CornuDescription description = { record, weight_of, array_of };
    const CornuCall call = { .graph = record->graph, .count = rows, .total = rows, .seed = zero,
                             .iteration = zero, .position = zero, .mask = record->masks[0],
                             .masks = record->masks, .inherited = !recording->masks_given,
                             .shapes_only = true, .description = &description };
    if (!record->layer)
        record->out[0] = cornu_activation_apply(recording->activation, record->in[0]);
    else
        cornu__layer_call_masked(record->layer, &call, record->in, recording->in_count,
                                 record->masks, record->out, record->out_masks);
    return record->out[0] != NULL;
}

/* The value that the op, a flip of a flip, restores; else none. */
static CornuValue flipped_back(const CornuProgram *program, const CornuProgramOp *op)
{
    const int at = program->values[cornu_program_operands(program, op)[0]].op;
    return op->id == CORNU_OP_FLIP && at >= 0 && program->ops[at].id == CORNU_OP_FLIP &&
                   program->ops[at].attributes.axis.axis == op->attributes.axis.axis
               ? cornu_program_operands(program, &program->ops[at])[0] : CORNU_NO_VALUE;
}

static CornuStatus rewrite_op(CornuRewrite *rewrite, const CornuProgramOp *op, const void *context);

/* With the same in its body. */
static CornuStatus rewrite_scan(CornuRewrite *rewrite, const CornuProgramOp *op,
                                const void *context)
{
    CornuAttributes attributes = op->attributes;
    CornuProgram   *body = cornu__rewrite_rounds(attributes.scan.body, rewrite_op, context);
    if (!body) return CORNU_ERR_MEMORY;
    attributes.scan.body = body;
    const CornuStatus status = cornu_program_record(
        rewrite->to, op->id, &attributes, cornu__rewrite_operands(rewrite, op), op->in_count,
        &rewrite->map[op->out_first]);
    cornu_program_free(body);
    return status;
}

static CornuStatus rewrite_op(CornuRewrite *rewrite, const CornuProgramOp *op, const void *context)
{
    const CornuRecording *recording = context;
    const CornuOpCall     call = cornu_program_call(rewrite->from, op, rewrite->in_type);
    const CornuValue      same = op->in_count == 1 ? flipped_back(rewrite->from, op)
                                                   : CORNU_NO_VALUE;
    if (same != CORNU_NO_VALUE) {
        rewrite->map[op->out_first] = rewrite->map[same];
        return CORNU_OK;
    }
    if (!recording->has(&call, recording->format) && !cornu__is_primitive(op->id, &op->attributes))
        return cornu__rewrite_decompose(rewrite, op);
    return op->id == CORNU_OP_SCAN ? rewrite_scan(rewrite, op, context)
                                   : cornu__rewrite_keep(rewrite, op);
}

/* Keeps an op of which something reads a result. */
static CornuStatus rewrite_read(CornuRewrite *rewrite, const CornuProgramOp *op, const void *reads)
{
    bool read = false;
    for (int i = 0; i < op->out_count; i++) read |= ((const bool *)reads)[op->out_first + i];
    return read ? cornu__rewrite_keep(rewrite, op) : CORNU_OK;
}

static CornuProgram *without_unread(const CornuProgram *program)
{
    bool         *reads = cornu__allocate((size_t)program->value_count, sizeof *reads);
    CornuProgram *made = NULL;
    for (int i = 0; i < program->output_count && reads; i++)
        reads[program->outputs[i].value] = true;
    for (int i = program->op_count - 1; i >= 0 && reads; i--) {
        const CornuProgramOp *op = &program->ops[i];
        bool                  read = false;
        for (int k = 0; k < op->out_count; k++) read |= reads[op->out_first + k];
        for (int k = 0; k < op->in_count && read; k++)
            reads[cornu_program_operands(program, op)[k]] = true;
    }
    if (reads) made = cornu__rewrite_rounds(program, rewrite_read, reads);
    cornu__release(reads);
    return made;
}

/* What is fetched is not dropped: also the inputs, which so keep their order. */
static void fetch(Record *record, CornuTensor *const *tensors, int count)
{
    for (int i = 0; i < count; i++)
        if (tensors[i]) record->fetched[record->fetched_count++] = tensors[i];
}

CornuStatus cornu__record_layer(CornuRecordedLayer *record, CornuDevice *device,
                                const CornuRecording *recording)
{
    record->layer = recording->layer;
    record->outputs = record->layer ? cornu_layer_outputs(record->layer) : 1;
    record->weight_count = record->layer ? record->layer->weight_count : 0;
    record->weights = cornu__allocate((size_t)record->weight_count + 1, sizeof *record->weights);
    if (!record->weights) return CORNU_ERR_MEMORY;
    if (!(record->graph = cornu_graph_create(device))) return cornu_error_take();
    cornu__graph_keep_functions(record->graph);
    if (!call_layer(record, recording)) return cornu_error_take();
    CORNU__TRY(cornu__reserve(&record->fetched, &record->fetched_space, 0,
                              record->weight_count + record->array_count +
                                  4 * CORNU_MAX_LAYER_TENSORS, sizeof *record->fetched));
    fetch(record, record->out, record->outputs);
    fetch(record, record->out_masks, record->outputs);
    fetch(record, record->in, recording->in_count);
    fetch(record, record->masks, recording->in_count);
    fetch(record, record->weights, record->weight_count);
    fetch(record, record->constants, record->array_count);
    CornuProgram *recorded = cornu__graph_lowered(record->graph, record->fetched,
                                                  record->fetched_count);
    if (!recorded) return cornu_error_take();
    CornuProgram *written = cornu__rewrite_rounds(recorded, rewrite_op, recording);
    cornu_program_free(recorded);
    record->program = written ? without_unread(written) : NULL;
    cornu_program_free(written);
    return record->program ? CORNU_OK : CORNU_ERR_MEMORY;
}

void cornu__recorded_layer_free(CornuRecordedLayer *record)
{
    cornu_program_free(record->program);
    cornu_graph_free(record->graph);
    for (int i = 0; i < record->array_count; i++) cornu__release(record->arrays[i].data);
    cornu__release(record->arrays);
    cornu__release(record->constants);
    cornu__release(record->weights);
    cornu__release(record->fetched);
}

bool cornu__programs_alike(const CornuProgram *p, const CornuProgram *q)
{
    if (p->op_count != q->op_count || p->value_count != q->value_count) return false;
    for (int i = 0; i < p->op_count; i++)
        if (p->ops[i].id != q->ops[i].id || p->ops[i].out_first != q->ops[i].out_first)
            return false;
    return true;
}

bool cornu__recorded_alike(const CornuRecordedLayer *a, const CornuRecordedLayer *b)
{
    if (!cornu__programs_alike(a->program, b->program) || a->array_count != b->array_count)
        return false;
    for (int i = 0; i < a->array_count; i++)
        if (!cornu_type_equal(a->arrays[i].type, b->arrays[i].type) ||
            memcmp(a->arrays[i].data, b->arrays[i].data, cornu_type_bytes(a->arrays[i].type)))
            return false;
    return true;
}

bool cornu__reduces_some(const CornuOpCall *call)
{
    const int64_t all = (INT64_C(1) << call->in[0].shape.rank) - 1;
    return ((int64_t)call->attributes->custom.numbers[0] & all) != 0;
}

bool cornu__resizes_plainly(const CornuOpCall *call)
{
    const double *numbers = call->attributes->custom.numbers;
    return numbers[0] == CORNU_NEAREST || (numbers[0] == CORNU_BILINEAR && numbers[1] == 0.0);
}
