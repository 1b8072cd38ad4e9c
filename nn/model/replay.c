/* What a model is made of, and its trace: the calls of its layers, made again on tensors. */
#include "model_internal.h"

#include <jansson.h>

/* ---- Making ---- */

CornuStatus cornu__model_hold(CornuModel *model, CornuLayer *layer)
{
    CornuLayer *base = &model->base;
    CORNU__TRY(cornu__check_depth(base->name, layer));
    CORNU__TRY(cornu__reserve(&base->inner, &model->layer_space, base->inner_count, 1,
                              sizeof *base->inner));
    CORNU__TRY(cornu__layer_count(layer, &model->labels));
    CORNU__TRY(cornu__lookup_set(&model->names, layer->name, base->inner_count));
    base->inner[base->inner_count++] = layer;
    layer->owners++;
    if (base->depth <= layer->depth) base->depth = layer->depth + 1;
    return CORNU_OK;
}

/* Those that models share are there once. */
CornuStatus cornu__model_add_weights(CornuModel *model, const CornuLayer *layer)
{
    CornuLayer *base = &model->base;
    CORNU__TRY(cornu__reserve(&base->weights, &model->weight_space, base->weight_count,
                              layer->weight_count, sizeof *base->weights));
    for (int i = 0; i < layer->weight_count; i++) {
        CornuWeight *weight = layer->weights[i];
        if (cornu__model_number(model, weight) >= 0) continue;
        CORNU__TRY(cornu__lookup_set(&model->numbers, weight, base->weight_count));
        base->weights[base->weight_count++] = weight;
    }
    return CORNU_OK;
}

CornuStatus cornu__model_list_weights(CornuModel *model)
{
    model->base.weight_count = 0;
    cornu__lookup_clear(&model->numbers);
    for (int i = 0; i < model->base.inner_count; i++)
        CORNU__TRY(cornu__model_add_weights(model, model->base.inner[i]));
    return CORNU_OK;
}

int cornu__model_number(const CornuModel *model, const CornuWeight *weight)
{
    return cornu__lookup_find(&model->numbers, weight);
}

int cornu__model_value(const CornuModel *model, const CornuSymbol *symbol)
{
    const int call = cornu__lookup_find(&model->calls_of, symbol->node);
    return call < 0 ? -1 : model->calls[call].first + symbol->index;
}

int cornu__model_first_call(const CornuModel *model, const CornuLayer *layer)
{
    const int last = cornu__lookup_find(&model->calls_of, layer);
    return last < 0 ? -1 : model->calls[last].next;
}

int cornu__model_next_call(const CornuModel *model, int i)
{
    return model->calls[i].next > i ? model->calls[i].next : -1;
}

CornuStatus cornu__model_push(CornuModel *model, CornuNode *node)
{
    const int number = model->call_count;
    CORNU__TRY(cornu__reserve(&model->calls, &model->call_space, number, 1, sizeof *model->calls));
    const int last = cornu__lookup_find(&model->calls_of, node->layer);
    CORNU__TRY(cornu__lookup_set(&model->calls_of, node, number));
    CORNU__TRY(cornu__lookup_set(&model->calls_of, node->layer, number));
    CornuModelCall *call = &model->calls[number];
    *call = (CornuModelCall){ .node = cornu__node_hold(node), .first = model->value_count,
                              .next = last < 0 ? number : model->calls[last].next };
    if (last >= 0) model->calls[last].next = number;
    for (int i = 0; i < node->in_count; i++) call->in[i] = cornu__model_value(model, node->in[i]);
    model->value_count += node->out_count;
    model->call_count++;
    return CORNU_OK;
}

bool cornu__model_keeps_numbers(const CornuModel *model, int input)
{
    const int value = cornu__model_value(model, model->inputs[input]);
    bool      keeps = true;
    for (int i = 0; i < model->call_count; i++) {
        const CornuModelCall *call = &model->calls[i];
        const CornuLayer     *layer = call->node->layer;
        for (int k = 0; k < call->node->in_count; k++) {
            if (call->in[k] != value) continue;
            keeps &= layer->kind->replay ? cornu__model_keeps_numbers((const CornuModel *)layer, k)
                                         : layer->takes_numbers;
        }
    }
    return keeps;
}

static bool gives_output(const CornuModel *model, const CornuLayer *layer)
{
    for (int i = 0; i < model->output_count; i++)
        if (model->outputs[i]->node->layer == layer) return true;
    return false;
}

bool cornu__model_settle(CornuModel *model, const CornuPolicy *policy, bool last)
{
    bool narrow = false;
    for (int i = 0; i < model->base.inner_count; i++) {
        CornuLayer *layer = model->base.inner[i];
        narrow |= cornu__layer_settle(layer, policy, last && gives_output(model, layer));
    }
    return narrow;
}

/* ---- Recording ---- */

static int input_number(const CornuModel *model, const CornuNode *node)
{
    int i = 0;
    while (i < model->input_count && model->inputs[i]->node != node) i++;
    return i;
}

static bool make_calls(const CornuModel *model, const CornuCall *call, CornuTensor *const *in,
                       CornuTensor *const *in_masks, CornuTensor **values, CornuTensor **masks)
{
    for (int i = 0; i < model->call_count; i++) {
        const CornuModelCall *made = &model->calls[i];
        const CornuNode      *node = made->node;
        CornuTensor *x[CORNU_MAX_LAYER_TENSORS], *x_masks[CORNU_MAX_LAYER_TENSORS];
        CornuTensor *y[CORNU_MAX_LAYER_TENSORS], *y_masks[CORNU_MAX_LAYER_TENSORS];
        if (node->in_count == 0) {
            const int k = input_number(model, node);
            values[made->first] = in[k];
            masks[made->first] = in_masks[k];
            continue;
        }
        for (int k = 0; k < node->in_count; k++) {
            x[k] = values[made->in[k]];
            x_masks[k] = masks[made->in[k]];
        }
        if (!cornu__layer_call_masked(node->layer, call, x, node->in_count, x_masks, y, y_masks))
            return false;
        for (int k = 0; k < node->out_count; k++) {
            values[made->first + k] = y[k];
            masks[made->first + k] = y_masks[k];
        }
    }
    return true;
}

CornuTensor *cornu__model_replay(const CornuModel *model, const CornuCall *call,
                                 CornuTensor *const *in, CornuTensor *const *masks,
                                 CornuTensor **out, CornuTensor **out_masks)
{
    const size_t  count = (size_t)model->value_count;
    CornuTensor **values = cornu__allocate(2 * count, sizeof(CornuTensor *));
    if (!values) return cornu__null();
    const bool made = make_calls(model, call, in, masks, values, values + count);
    for (int i = 0; i < model->output_count && made; i++) {
        const int value = cornu__model_value(model, model->outputs[i]);
        out[i] = values[value];
        out_masks[i] = values[count + (size_t)value];
    }
    cornu__release(values);
    return made ? out[0] : NULL;
}

/* ---- The class ---- */

static CornuStatus build_many(CornuLayer *layer, const CornuShape *in, int in_count)
{
    CornuShape row = { .rank = in[0].rank - 1 };
    for (int i = 0; i < row.rank; i++) row.extent[i] = in[0].extent[i + 1];
    (void)in_count;   /* a Sequential model has one input, a Functional one is built */
    return cornu_model_build((CornuModel *)layer, row);
}

static CornuTensor *replay(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                           int in_count, CornuTensor *const *masks, CornuTensor **out,
                           CornuTensor **out_masks)
{
    const CornuModel *model = (const CornuModel *)layer;
    if (in_count != model->input_count)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: %d tensors come in, expected %d",
                                layer->name, in_count, model->input_count);
    for (int i = 0; i < in_count; i++) {
        CornuShape got = cornu_tensor_shape(in[i]), want = model->inputs[i]->type.shape;
        CornuText  a, b;
        got.extent[0] = CORNU_NONE;
        if (!cornu__shape_fits(got, want))
            return cornu__fail_null(CORNU_ERR_SHAPE, "%s: input %d is %s, expected %s",
                                    layer->name, i, cornu_shape_print(&a, got),
                                    cornu_shape_print(&b, want));
    }
    return cornu__model_replay(model, call, in, masks, out, out_masks);
}

static int outputs(const CornuLayer *layer) { return ((const CornuModel *)layer)->output_count; }

static void free_model(CornuLayer *layer)
{
    CornuModel *model = (CornuModel *)layer;
    cornu__uncompile(model);
    cornu_variable_free(model->seed_variable);
    for (int i = model->call_count - 1; i >= 0; i--) cornu__node_drop(model->calls[i].node);
    for (int i = 0; i < layer->inner_count; i++) {
        cornu__layer_leave(layer->inner[i], model->own_device);
        cornu_layer_free(layer->inner[i]);
    }
    cornu__release(model->calls);
    cornu__release(layer->inner);
    cornu__lookup_clear(&model->labels);
    cornu__lookup_clear(&model->names);
    cornu__lookup_clear(&model->numbers);
    cornu__lookup_clear(&model->calls_of);
    cornu_device_close(model->own_device);
    json_decref(model->notes);
    layer->inner_count = layer->weight_count = 0;
}

const CornuLayerClass cornu__sequential_class = {
    .class_name = "Sequential", .size = sizeof(CornuModel), .build_many = build_many,
    .replay = replay, .outputs = outputs, .free = free_model, .takes_numbers = true,
};

const CornuLayerClass cornu__functional_class = {
    .class_name = "Functional", .size = sizeof(CornuModel), .build_many = build_many,
    .replay = replay, .outputs = outputs, .free = free_model, .takes_numbers = true,
};
