/* Recording a layer, and writing its program: recorded_internal.h. */
#include "recorded_internal.h"

#include "../../../device/memory_internal.h"
#include "../../saving/onnx/recorded_layer.h"

typedef CornuRecordedLayer Record;

/* ---- Recording ---- */

/* The type of a tensor; of rank 0 for none. */
static CornuType type_of(const CornuLite *to, int tensor, int world)
{
    if (tensor < 0) return cornu_scalar(CORNU_BOOL);
    const CornuLiteDtype dtype = to->graph->tensors[tensor].dtype;
    return cornu_type_from(dtype == CORNU_LITE_I32    ? CORNU_I32
                           : dtype == CORNU_LITE_BOOL ? CORNU_BOOL : CORNU_F32,
                           cornu__lite_noted(to, tensor, world));
}

static bool has_operators(const CornuOpCall *call, const void *unused)
{
    (void)unused;
    return call->id == CORNU_OP_CUSTOM ? cornu__lite_has_function(call)
                                       : cornu__lite_has_writer(call->id);
}

static CornuStatus record_in(Record *record, const CornuLiteCall *call, CornuDevice *device,
                             int world)
{
    CornuType in[CORNU_MAX_LAYER_TENSORS], masks[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < call->in_count; i++) {
        in[i] = type_of(call->to, call->in[i], world);
        masks[i] = type_of(call->to, call->masks ? call->masks[i] : CORNU_LITE_NONE, world);
    }
    return cornu__record_layer(record, device, &(CornuRecording){
        .layer = (CornuLayer *)call->layer, .activation = call->activation,
        .in_count = call->in_count, .in = in, .masks = masks, .rows = cornu__lite_batches[world],
        .has = has_operators });
}

/* ---- Writing ---- */

/* A constant in f32, i32 or bool. */
static int constant(CornuLite *to, CornuArray array)
{
    const CornuLiteDtype kept = cornu__lite_kept(array.type.dtype);
    const int made = cornu__lite_add_constant(to->graph, "constant", kept, array.type.shape, NULL);
    if (made < 0) return made;
    for (int64_t i = 0; i < cornu_type_count(array.type); i++)
        cornu__lite_set(to->graph->tensors[made].data, kept, i, cornu_array_get(array, i));
    return made;
}

/* Output i of the program in full. */
static CornuStatus take(CornuLiteProgram *program, int i, int *tensor)
{
    const CornuProgramOp result = { .in_count = 1 };
    const CornuLiteOp    op = { .program = program, .to = program->to, .op = &result,
                                .in = &program->program->outputs[i].value };
    CORNU__TRY(cornu__lite_full(&op, 0, tensor));
    cornu__lite_note(program->to, *tensor, program->worlds[0]->values[*op.in].type.shape,
                     program->worlds[1]->values[*op.in].type.shape);
    return CORNU_OK;
}

/* The layer's result is f32 or, as the next layer's trace has it, of its own dtype. */
static CornuStatus put_program(const CornuLiteCall *call, const Record *record,
                               CornuLiteProgram *program)
{
    const int           outputs = record->outputs;
    const CornuProgram *from = program->program;
    int                 next = outputs, mask = outputs;
    for (int i = 0; i < outputs; i++) next += record->out_masks[i] != NULL;
    for (int i = 0; i < call->in_count; i++)
        program->tensors[from->outputs[next++].value] = call->in[i];
    for (int i = 0; i < call->in_count; i++)
        if (record->masks[i]) program->tensors[from->outputs[next++].value] = call->masks[i];
    for (int i = 0; i < record->weight_count; i++)
        if (record->weights[i])
            program->tensors[from->outputs[next++].value] =
                cornu__lite_weight(call->to, call->layer, i);
    for (int i = 0; i < record->array_count; i++)
        program->tensors[from->outputs[next++].value] = constant(call->to, record->arrays[i]);
    CORNU__TRY(cornu__lite_ops(program));
    for (int i = 0; i < outputs; i++) CORNU__TRY(take(program, i, &call->out[i]));
    for (int i = 0; i < outputs && call->out_masks; i++) {
        call->out_masks[i] = CORNU_LITE_NONE;
        if (record->out_masks[i]) CORNU__TRY(take(program, mask++, &call->out_masks[i]));
    }
    return CORNU_OK;
}

static CornuStatus put_records(const CornuLiteCall *call, const Record *worlds)
{
    CornuLiteProgram program = { .to = call->to, .program = worlds[0].program };
    if (!cornu__recorded_alike(&worlds[0], &worlds[1]))
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
        status = record_in(&worlds[w], call, device, w);
    if (!status) status = put_records(call, worlds);
    for (int w = 0; w < CORNU_LITE_WORLDS; w++) cornu__recorded_layer_free(&worlds[w]);
    cornu_device_close(device);
    return status;
}

CornuStatus cornu__lite_activate(CornuLite *to, CornuActivation activation, int x, int *y)
{
    return cornu__lite_recorded(&(CornuLiteCall){
        .to = to, .activation = activation, .in = &x, .in_count = 1, .out = y });
}
