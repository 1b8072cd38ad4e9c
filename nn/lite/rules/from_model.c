/* The graph of a model: its layers one by one. */
#include "rules_internal.h"

#include "../../../device/memory_internal.h"
#include "../../layers/quantized_internal.h"
#include "../../model/host_stage_internal.h"
#include "../../model/model_internal.h"

#include <stdio.h>
#include <string.h>

/* Where a value of a model is in the graph. */
typedef struct { int tensor, mask; CornuShape shape; } Place;

static CornuStatus put_model(const CornuLiteCall *call);

static CornuStatus put_layer(const CornuLiteCall *call)
{
    const CornuLayer *layer = call->layer;
    if (layer->kind->call_masked) return put_model(call);
    if (cornu__quantization(layer))
        return cornu__lite_refuse(layer, "a layer with quantized weights",
                                  "quantize the model that has them in float");
    call->to->name = cornu_layer_name(layer);
    return cornu__lite_recorded(call);
}

/* All extents but the batch must be known. */
static CornuStatus check_known(const CornuLayer *layer, CornuShape shape)
{
    for (int i = 1; i < shape.rank; i++)
        if (shape.extent[i] == CORNU_NONE)
            return cornu__lite_refuse(layer, "an unknown extent besides the batch",
                                      "give the input's shape in full");
    return CORNU_OK;
}

/* A mask that is given to a call, as bool. */
static int as_mask(CornuLite *to, int tensor)
{
    const CornuLiteDtype dtype = to->graph->tensors[tensor].dtype;
    if (dtype == CORNU_LITE_BOOL) return tensor;
    return cornu__lite_node_of(to, CORNU_LITE_CAST, &tensor, 1, CORNU_LITE_BOOL,
                               shape_of(to, tensor),
                               &(CornuLiteOptions){ .in_dtype = dtype,
                                                    .out_dtype = CORNU_LITE_BOOL });
}

static CornuStatus add_call(CornuLite *to, const CornuModelCall *call, Place *places)
{
    const CornuNode *node = call->node;
    CornuLayer      *layer = node->layer;
    CornuType        types[CORNU_MAX_LAYER_TENSORS], made[CORNU_MAX_LAYER_TENSORS];
    CornuShape       shapes[CORNU_MAX_LAYER_TENSORS];
    int              in[CORNU_MAX_LAYER_TENSORS], out[CORNU_MAX_LAYER_TENSORS];
    int              masks[CORNU_MAX_LAYER_TENSORS], out_masks[CORNU_MAX_LAYER_TENSORS];
    const bool       imported = !strcmp(layer->kind->class_name, "OnnxNode");
    for (int i = 0; i < node->in_count; i++) {
        const Place     *place = &places[call->in[i]];
        const CornuLiteDtype of = to->graph->tensors[place->tensor].dtype;
        const CornuDtype     dtype = of == CORNU_LITE_I32    ? CORNU_I32
                                   : of == CORNU_LITE_BOOL   ? CORNU_BOOL : CORNU_F32;
        in[i] = place->tensor;
        masks[i] = place->mask;
        shapes[i] = place->shape;
        types[i] = cornu_type_from(dtype, place->shape);
    }
    for (int i = 0; i < node->mask_count; i++)
        masks[node->mask_of[i]] = as_mask(to, places[call->in[node->in_count + i]].tensor);
    for (int i = 0; i < node->in_count && i < 3 && layer->kind->consumes_masks; i++)
        places[call->in[i]].mask = CORNU_LITE_NONE;
    layer->reverse = node->reverse;
    CORNU__TRY(cornu__layer_trace(layer, types, node->in_count, made));
    for (int i = 0; i < node->out_count && !imported; i++)
        CORNU__TRY(check_known(layer, made[i].shape));
    CORNU__TRY(put_layer(&(CornuLiteCall){
        .to = to, .layer = layer, .in = in, .masks = masks, .shapes = shapes,
        .in_count = node->in_count, .out = out, .out_masks = out_masks,
    }));
    CORNU__TRY(to->graph->status);
    for (int i = 0; i < node->out_count; i++)
        places[call->first + i] = (Place){ out[i], out_masks[i],
                                           imported ? shape_of(to, out[i]) : made[i].shape };
    return CORNU_OK;
}

static CornuStatus put_model(const CornuLiteCall *call)
{
    const CornuModel *model = (const CornuModel *)call->layer;
    Place            *places = cornu__allocate((size_t)model->value_count, sizeof *places);
    CornuStatus       status = CORNU_OK;
    if (!places) return CORNU_ERR_MEMORY;
    for (int i = 0; i < model->input_count; i++)
        places[cornu__model_value_index(model, model->inputs[i])] =
            (Place){ call->in[i], call->masks ? call->masks[i] : CORNU_LITE_NONE,
                     call->shapes[i] };
    for (int i = 0; i < model->call_count && status == CORNU_OK; i++)
        if (!cornu__node_is_input(model->calls[i].node))
            status = add_call(call->to, &model->calls[i], places);
    for (int i = 0; i < model->output_count && !status; i++) {
        const Place *place = &places[cornu__model_value_index(model, model->outputs[i])];
        call->out[i] = place->tensor;
        if (call->out_masks) call->out_masks[i] = place->mask;
    }
    cornu__release(places);
    return status;
}

/* ---- Inputs and outputs ---- */

/* Imported nodes may be for one size of the batch alone. */
static int64_t rows_of(const CornuModel *model)
{
    for (int i = 0; i < model->call_count; i++)
        if (!strcmp(model->calls[i].node->layer->kind->class_name, "OnnxNode"))
            return cornu_model_batch_size(model);
    return CORNU_NONE;
}

/* Integers for layers that take them, as indices; else f32, also where Cornu's step converts
 * bytes. */
static CornuStatus put_inputs(CornuLite *to, int *in, CornuShape *shapes)
{
    const CornuModel *model = to->model;
    for (int i = 0; i < model->input_count; i++) {
        const CornuLayer *layer = model->inputs[i]->node->layer;
        const bool        indices = cornu__model_takes_integers(model, i);
        const char       *name = cornu_layer_name(layer);
        shapes[i] = model->inputs[i]->type.shape;
        shapes[i].extent[0] = to->rows;
        CORNU__TRY(check_known(layer, shapes[i]));
        in[i] = cornu__lite_add_tensor(to->graph, name, indices ? CORNU_LITE_I32 : CORNU_LITE_F32,
                                       shapes[i]);
        cornu__lite_add_input(to->graph, in[i],
                              model->input_keys[i] ? model->input_keys[i] : name);
    }
    return to->graph->status;
}

/* An output that is an input, or a constant or another output, gets a tensor of its own: runtimes
 * give each output its own memory. */
static int own_tensor(CornuLite *to, int tensor)
{
    bool computed = false;
    if (tensor < 0) return tensor;
    cornu__lite_settle(to, tensor);
    for (int i = 0; i < to->graph->operator_count; i++)
        for (int k = 0; k < to->graph->operators[i].out_count; k++)
            computed |= to->graph->operators[i].out[k] == tensor;
    for (int i = 0; i < to->graph->output_count; i++)
        computed &= to->graph->outputs[i].tensor != tensor;
    return computed ? tensor : cornu__lite_reshape(to, tensor, shape_of(to, tensor));
}

static CornuStatus put_outputs(CornuLite *to, const int *out)
{
    const CornuModel *model = to->model;
    char              name[200];
    for (int i = 0; i < model->output_count; i++) {
        const CornuLayer *layer = model->outputs[i]->node->layer;
        int               same = 0;   /* of a layer with several outputs, or called again */
        for (int k = 0; k < i; k++) same += model->outputs[k]->node->layer == layer;
        snprintf(name, sizeof name, same ? "%.150s_%d" : "%.150s", cornu_layer_name(layer), same);
        to->name = name;
        const int tensor = own_tensor(to, out[i]);
        cornu__lite_add_output(to->graph, tensor,
                               model->output_keys[i] ? model->output_keys[i] : name);
    }
    to->name = cornu_model_name(model);
    return to->graph->status;
}

static CornuStatus put_graph(CornuLite *to)
{
    const CornuModel *model = to->model;
    int               in[CORNU_MAX_MODEL_TENSORS], out[CORNU_MAX_MODEL_TENSORS];
    CornuShape        shapes[CORNU_MAX_MODEL_TENSORS];
    if (cornu__model_on_host(model))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: has a layer that runs on the host, before "
                           "the step, and has no operators in .tflite files",
                           cornu_model_name(model));
    CORNU__TRY(put_inputs(to, in, shapes));
    CORNU__TRY(put_model(&(CornuLiteCall){ .to = to, .layer = &model->base, .in = in,
                                           .shapes = shapes, .in_count = model->input_count,
                                           .out = out }));
    CORNU__TRY(put_outputs(to, out));
    return cornu__lite_fold(to->graph);
}

CornuStatus cornu__lite_from_model(const CornuModel *model, const CornuValues *values,
                                   CornuLiteGraph **graph)
{
    CornuValues own = { 0 };
    CornuStatus status = CORNU_OK;
    *graph = NULL;
    if (!cornu_model_built(model))
        return cornu__fail(CORNU_ERR_ARGUMENT, "the model %s is not built, so it has no weights",
                           cornu_model_name(model));
    if (!values) {
        status = cornu__values_create(model, &own);
        if (!status) status = cornu__values_read(model, &own);
        if (!status) status = cornu__values_merge_lora(model, &own);
    }
    CornuLite to = { .model = model, .weights = values ? values : &own, .rows = rows_of(model) };
    if (!status && !(to.graph = cornu__lite_graph_create(cornu_model_name(model))))
        status = CORNU_ERR_MEMORY;
    if (!status) status = put_graph(&to);
    cornu__values_free(&own);
    cornu__release(to.views);
    if (status) cornu__lite_graph_free(to.graph);
    else *graph = to.graph;
    return status;
}
