/* Writing models as ONNX files: the layers one by one, then the file that contains the graph. */
#include "../../model/host_stage_internal.h"
#include "extents_internal.h"
#include "recorded_internal.h"
#include "../../layers/quantized_internal.h"

#include "../../../device/memory_internal.h"
#include "../../../device/files/file_internal.h"
#include "../../../device/files/protobuf_internal.h"

#include <stdio.h>
#include <string.h>

enum { USUAL_OPSET = 18, FIRST_OPSET = 13, LAST_OPSET = 27 };

/* ---- Layers and models ---- */

static CornuStatus put_model(const CornuOnnxCall *call);

static CornuStatus put_layer(const CornuOnnxCall *call)
{
    const CornuLayerClass *kind = call->layer->kind;
    if (kind->call_masked) return put_model(call);
    if (cornu__quantization(call->layer) == CORNU_FLOAT8)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "float8, to which its product is rounded, is not "
                           "available in ONNX files, which are in f32");
    return strcmp(kind->class_name, "OnnxNode") ? cornu__onnx_recorded(call)
                                                : cornu__onnx_imported(call);
}

/* Symbols of inputs are floats even where layers get integers, as indices. */
static CornuDtype dtype_of(const CornuModel *model, const CornuSymbol *symbol)
{
    for (int i = 0; i < model->input_count; i++)
        if (model->inputs[i] == symbol && cornu__model_takes_integers(model, i) &&
            cornu_dtype_is_float(symbol->type.dtype))
            return CORNU_I32;
    return symbol->type.dtype;
}

/* What a model's graph has for each of its values. */
typedef struct { int value, mask; CornuShape shape; } Place;

static CornuStatus add_call(CornuOnnx *to, const CornuModel *model, const CornuModelCall *call,
                            Place *places)
{
    const CornuNode *node = call->node;
    CornuDtype       dtypes[CORNU_MAX_LAYER_TENSORS];
    int              in[CORNU_MAX_LAYER_TENSORS], in_masks[CORNU_MAX_LAYER_TENSORS];
    int              out[CORNU_MAX_LAYER_TENSORS], out_masks[CORNU_MAX_LAYER_TENSORS];
    CornuShape       shapes[CORNU_MAX_LAYER_TENSORS], results[CORNU_MAX_LAYER_TENSORS];
    CornuShape       mask_shapes[CORNU_MAX_LAYER_TENSORS] = { { .rank = 0 } };
    for (int i = 0; i < node->in_count; i++) {
        in[i] = places[call->in[i]].value;
        in_masks[i] = places[call->in[i]].mask;
        shapes[i] = places[call->in[i]].shape;
        dtypes[i] = dtype_of(model, node->in[i]);
    }
    for (int i = 0; i < node->mask_count; i++) {
        const Place *mask = &places[call->in[node->in_count + i]];
        in_masks[node->mask_of[i]] = cast(to, mask->value, CORNU_ONNX_BOOL);
        mask_shapes[node->mask_of[i]] = mask->shape;
    }
    for (int i = 0; i < node->out_count; i++) results[i] = node->out[i].type.shape;
    node->layer->reverse = node->reverse;
    for (int i = 0; i < node->in_count && i < 3 && node->layer->kind->consumes_masks; i++)
        places[call->in[i]].mask = CORNU_ONNX_NONE;
    CORNU__TRY(cornu__onnx_results(to, node->layer, shapes, dtypes, node->in_count, results));
    to->pending = false;
    CORNU__TRY(put_layer(&(CornuOnnxCall){
        .to = to, .layer = node->layer, .in = in, .masks = in_masks,
        .mask_shapes = node->mask_count ? mask_shapes : NULL, .shapes = shapes,
        .dtypes = dtypes, .in_count = node->in_count, .out = out, .out_masks = out_masks,
    }));
    if (to->pending)
        return cornu__onnx_refuse(node->layer, "an input of unknown extents",
                                  "what this layer makes of them has no nodes");
    for (int i = 0; i < node->out_count; i++) {
        places[call->first + i] = (Place){ out[i], out_masks[i], results[i] };
        for (int k = 1; k < results[i].rank; k++)
            cornu__onnx_axis_of(to, results[i].extent[k], out[i]);
    }
    return CORNU_OK;
}

static CornuStatus put_model(const CornuOnnxCall *call)
{
    const CornuModel *model = (const CornuModel *)call->layer;
    Place            *places = cornu__allocate((size_t)model->value_count, sizeof *places);
    if (!places) return CORNU_ERR_MEMORY;
    for (int i = 0; i < model->input_count; i++)
        places[cornu__model_value_index(model, model->inputs[i])] =
            (Place){ call->in[i], call->masks[i], call->shapes[i] };
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < model->call_count && status == CORNU_OK; i++)
        if (!cornu__node_is_input(model->calls[i].node))
            status = add_call(call->to, model, &model->calls[i], places);
    for (int i = 0; i < model->output_count; i++) {
        const Place *place = &places[cornu__model_value_index(model, model->outputs[i])];
        call->out[i] = place->value;
        call->out_masks[i] = place->mask;
    }
    cornu__release(places);
    return status;
}

static CornuShape open_batch(const CornuSymbol *symbol)
{
    CornuShape shape = symbol->type.shape;
    shape.extent[0] = CORNU_NONE;
    return shape;
}

static CornuStatus put_graph(CornuOnnx *to, CornuMessage *graph, const void *unused)
{
    const CornuModel *model = to->model;
    int               in[CORNU_MAX_MODEL_TENSORS], out[CORNU_MAX_MODEL_TENSORS];
    int               masks[CORNU_MAX_MODEL_TENSORS] = { 0 }, out_masks[CORNU_MAX_MODEL_TENSORS];
    char              name[200];
    CornuShape        shapes[CORNU_MAX_MODEL_TENSORS];
    (void)unused;
    cornu__onnx_batch_of(to, CORNU_ONNX_NONE);
    for (int i = 0; i < model->input_count; i++) {
        const char *given = cornu_layer_name(model->inputs[i]->node->layer);
        const bool  indices = cornu__model_takes_integers(model, i);
        const bool  whole = indices || !cornu_dtype_is_float(model->inputs[i]->type.dtype);
        in[i] = cornu__onnx_put_input(to, graph, given,
                                      whole ? CORNU_ONNX_INT32 : CORNU_ONNX_FLOAT,
                                      open_batch(model->inputs[i]));
        if (whole && !indices) in[i] = cast(to, in[i], CORNU_ONNX_FLOAT);
    }
    for (int i = 0; i < model->input_count; i++)
        shapes[i] = cornu__onnx_input_shape(to, model->inputs[i]->type.shape, in[i]);
    CORNU__TRY(put_model(&(CornuOnnxCall){
        .to = to, .layer = &model->base, .in = in, .masks = masks, .shapes = shapes, .out = out,
        .out_masks = out_masks,
    }));
    for (int i = 0; i < model->output_count; i++) {
        const CornuLayer *layer = model->outputs[i]->node->layer;
        int               same = 0;   /* of a layer with several outputs, or called again */
        for (int k = 0; k < i; k++) same += model->outputs[k]->node->layer == layer;
        snprintf(name, sizeof name, same ? "%.150s_out_%d" : "%.150s_out", cornu_layer_name(layer),
                 same);
        cornu__onnx_put_output(to, graph, name, CORNU_ONNX_FLOAT, open_batch(model->outputs[i]),
                               out[i]);
    }
    return CORNU_OK;
}

/* Of the attempts the first refusal is told. */
static CornuStatus export_model(const CornuModel *model, const CornuValues *values,
                                const CornuExportConfig *config)
{
    const int    opset = config->opset_version ? config->opset_version : USUAL_OPSET;
    const int    count = cornu__onnx_attempts(model);
    CornuFailure failure = { .status = CORNU_OK };
    CornuStatus  status = CORNU_ERR_SHAPE;
    CornuMessage file = { 0 };
    if (opset < FIRST_OPSET || opset > LAST_OPSET)
        return cornu__fail(CORNU_ERR_VALUE, "%s: the opset version is %d, expected %d to %d",
                           config->path, opset, FIRST_OPSET, LAST_OPSET);
    if (cornu__model_on_host(model))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: has a layer that runs on the host, before "
                           "the step, and has no nodes in .onnx files", cornu_model_name(model));
    for (int i = 0; i < count && status && status != CORNU_ERR_MEMORY; i++) {
        CornuOnnx to = { .model = model, .weights = values, .opset = opset, .attempt = i };
        file.size = 0;
        file.failed = false;
        status = cornu__onnx_put_file(&to, &file, cornu_model_name(model), put_graph, NULL);
        if (!i) cornu__failure_keep(&failure, status);
        cornu__onnx_free(&to);
    }
    status = status ? cornu__fail_prefix(cornu__failure_tell(&failure), config->path)
                    : cornu_file_write(config->path, file.bytes, file.size);
    cornu__release(file.bytes);
    return status;
}

static CornuStatus save(const CornuModel *model, const CornuValues *values, const char *path)
{
    return export_model(model, values, &(CornuExportConfig){ .path = path });
}

const CornuFormat cornu__onnx_format = {
    .suffix = ".onnx", .save = save, .export_model = export_model, .load = cornu__onnx_load,
    .load_shaped = cornu__onnx_load_shaped,
    .merges_lora = true, .known = cornu__onnx_register,
};
