/* Recording a layer in all worlds, and writing the program. */
#include "recorded_internal.h"

#include "recorded_layer.h"

typedef CornuRecordedLayer Record;

/* Of its own dtype for layers that do not convert it, else f32. The batch may be another axis than
 * the first. */
static CornuType input_of(const CornuOnnxCall *call, int i, int world)
{
    const CornuLayer *layer = call->layer;
    const bool        keeps = layer->takes_integers || layer->kind->keeps_dtypes;
    CornuType         type = { keeps ? call->dtypes[i] : CORNU_F32, call->shapes[i] };
    if (!layer->kind->types) type.shape.extent[0] = CORNU_NONE;
    for (int k = 0; k < type.shape.rank; k++)
        type.shape.extent[k] = cornu__onnx_extent_in(call->to, type.shape.extent[k], world);
    return type;
}

static CornuType mask_of(const CornuOnnxCall *call, int i, int world)
{
    CornuType type = cornu_scalar(CORNU_BOOL);
    if (!call->masks[i]) return type;
    if (call->mask_shapes) type.shape = call->mask_shapes[i];
    if (!type.shape.rank) type.shape = cornu_shape(CORNU_NONE, call->shapes[i].extent[1]);
    for (int k = 0; k < type.shape.rank; k++)
        type.shape.extent[k] = cornu__onnx_extent_in(call->to, type.shape.extent[k], world);
    return type;
}

static bool has_nodes(const CornuOpCall *call, const void *to)
{
    return call->id == CORNU_OP_CUSTOM ? cornu__onnx_has_function(to, call)
                                       : cornu__onnx_has_writer(call->id);
}

static CornuStatus record_in(Record *record, const CornuOnnxCall *call, CornuDevice *device,
                             int world)
{
    CornuType in[CORNU_MAX_LAYER_TENSORS], masks[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < call->in_count; i++) {
        in[i] = input_of(call, i, world);
        masks[i] = mask_of(call, i, world);
    }
    return cornu__record_layer(record, device, &(CornuRecording){
        .layer = (CornuLayer *)call->layer, .in_count = call->in_count, .in = in, .masks = masks,
        .masks_given = call->mask_shapes != NULL,
        .rows = cornu__onnx_batches[world], .has = has_nodes, .format = call->to });
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
    const int  outputs = record->outputs;
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
    for (int i = 0; i < record->weight_count; i++)
        if (record->weights[i])
            program->full[fetched_value(program->program, &next)] =
                cornu__onnx_weight(to, call->layer, i);
    for (int i = 0; i < record->array_count; i++)
        program->full[fetched_value(program->program, &next)] =
            cornu__onnx_constant(to, record->arrays[i]);
    const CornuStatus status = cornu__onnx_ops(program);
    if (status) return cornu__fail_prefix(status, cornu_layer_name(call->layer));
    for (int i = 0; i < outputs; i++) {
        const int y = cornu__onnx_full(program, results[i]);
        const CornuDtype dtype = program->program->values[results[i]].type.dtype;
        call->out[i] = cornu_dtype_is_float(dtype) ? y : cast(to, y, CORNU_ONNX_FLOAT);
        call->out_masks[i] = masks[i] == CORNU_NO_VALUE ? CORNU_ONNX_NONE
                                                        : cornu__onnx_full(program, masks[i]);
    }
    return CORNU_OK;
}

/* Besides the batch. */
static bool has_open_extents(const CornuOnnxCall *call)
{
    bool open = false;
    for (int i = 0; i < call->in_count; i++)
        for (int k = 1; k < call->shapes[i].rank; k++)
            open |= cornu__onnx_is_open(call->shapes[i].extent[k]);
    return open;
}

static CornuStatus put_records(const CornuOnnxCall *call, const Record *worlds)
{
    CornuOnnxProgram program = { .to = call->to, .program = worlds[0].program };
    for (int w = 0; w < CORNU_ONNX_WORLDS; w++) {
        program.worlds[w] = worlds[w].program;
        if (cornu__recorded_alike(worlds, &worlds[w])) continue;
        return has_open_extents(call)
            ? cornu__onnx_refuse(call->layer, "an input of unknown extents",
                                 "what this layer makes of them depends on their numbers")
            : cornu__onnx_refuse(call->layer, "this layer",
                                 "what it computes depends on the size of the batch, or on other "
                                 "unknown extents");
    }
    cornu__onnx_batch_of(call->to, call->in[0]);
    CornuStatus status = cornu__onnx_open_program(&program);
    if (!status) status = put_program(call, worlds, &program);
    cornu__onnx_close_program(&program);
    return status;
}

CornuStatus cornu__onnx_recorded(const CornuOnnxCall *call)
{
    Record       worlds[CORNU_ONNX_WORLDS] = { { .graph = NULL } };
    CornuDevice *device = cornu_device_open("reference");
    CornuStatus  status = device ? CORNU_OK : cornu_error_take();
    for (int w = 0; w < CORNU_ONNX_WORLDS && !status; w++)
        status = record_in(&worlds[w], call, device, w);
    if (!status) status = put_records(call, worlds);
    for (int w = 0; w < CORNU_ONNX_WORLDS; w++) cornu__recorded_layer_free(&worlds[w]);
    cornu_device_close(device);
    return status;
}
