/* A model's graph: its layers, their weights, their calls, and the values of calls. */
#include "model_internal.h"

CornuStatus cornu__model_append_layer(CornuModel *model, CornuLayer *layer)
{
    CornuLayer *base = &model->base;
    CORNU__TRY(cornu__check_depth(base->name, layer));
    CORNU__TRY(cornu__reserve(&base->inner, &model->layer_space, base->inner_count, 1,
                              sizeof *base->inner));
    CORNU__TRY(cornu__layer_count_label(layer, &model->labels));
    CORNU__TRY(cornu__lookup_set(&model->names, layer->name, base->inner_count));
    base->inner[base->inner_count++] = layer;
    layer->owners++;
    model->rows = CORNU_ROWS_UNKNOWN;
    if (base->depth <= layer->depth) base->depth = layer->depth + 1;
    return CORNU_OK;
}

/* Weights of shared layers are added once. */
static CornuStatus add_weight(CornuModel *model, CornuWeight *weight)
{
    CornuLayer *base = &model->base;
    if (cornu__model_weight_index(model, weight) >= 0) return CORNU_OK;
    CORNU__TRY(cornu__lookup_set(&model->numbers, weight, base->weight_count));
    base->weights[base->weight_count++] = weight;
    return CORNU_OK;
}

CornuStatus cornu__model_add_weights(CornuModel *model, const CornuLayer *layer)
{
    CornuLayer *base = &model->base;
    CORNU__TRY(cornu__reserve(&base->weights, &model->weight_space, base->weight_count,
                              layer->weight_count, sizeof *base->weights));
    if (cornu__keras_class(layer)->lists && layer->built)
        CORNU__TRY(add_weight(model, cornu__keras_class(layer)->lists(layer)));
    for (int i = 0; i < layer->weight_count; i++) CORNU__TRY(add_weight(model, layer->weights[i]));
    return CORNU_OK;
}

CornuStatus cornu__model_list_weights(CornuModel *model)
{
    for (int i = 0; i < model->base.inner_count; i++) {
        CornuLayer *layer = model->base.inner[i];
        if (layer->kind->call_masked) CORNU__TRY(cornu__model_list_weights((CornuModel *)layer));
    }
    model->base.weight_count = 0;
    cornu__lookup_clear(&model->numbers);
    for (int i = 0; i < model->base.inner_count; i++)
        CORNU__TRY(cornu__model_add_weights(model, model->base.inner[i]));
    return CORNU_OK;
}

int cornu__model_weight_index(const CornuModel *model, const CornuWeight *weight)
{
    return cornu__lookup_find(&model->numbers, weight);
}

CornuStatus cornu__model_check_inputs(const CornuModel *model, const CornuType *in, int count)
{
    CornuText a, b;
    if (count != model->input_count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: got %d tensors, expected %d", model->base.name,
                           count, model->input_count);
    for (int i = 0; i < count; i++)
        if (!cornu__shape_fits(in[i].shape, model->inputs[i]->type.shape))
            return cornu__fail(CORNU_ERR_SHAPE, "%s: input %d is %s, expected %s",
                               model->base.name, i, cornu_shape_print(&a, in[i].shape),
                               cornu_shape_print(&b, model->inputs[i]->type.shape));
    return CORNU_OK;
}

int cornu__model_value_index(const CornuModel *model, const CornuSymbol *symbol)
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

CornuStatus cornu__model_append_call(CornuModel *model, CornuNode *node)
{
    const int number = model->call_count;
    CORNU__TRY(cornu__reserve(&model->calls, &model->call_space, number, 1, sizeof *model->calls));
    const int last = cornu__lookup_find(&model->calls_of, node->layer);
    CORNU__TRY(cornu__lookup_set(&model->calls_of, node, number));
    CORNU__TRY(cornu__lookup_set(&model->calls_of, node->layer, number));
    CornuModelCall *call = &model->calls[number];
    int *in = cornu__allocate((size_t)cornu__node_symbols(node) + 1, sizeof *in);
    if (!in) return CORNU_ERR_MEMORY;
    *call = (CornuModelCall){ .node = cornu__node_ref(node), .in = in, .first = model->value_count,
                              .nth = number, .next = last < 0 ? number : model->calls[last].next };
    if (last >= 0) model->calls[last].next = number;
    for (int i = 0; i < cornu__node_symbols(node); i++)
        call->in[i] = cornu__model_value_index(model, node->in[i]);
    model->value_count += node->out_count;
    model->call_count++;
    return CORNU_OK;
}

/* Of a wrapper it is the wrapped layer that takes them, which may be a model. */
static bool takes_integers(const CornuLayer *layer, int input)
{
    if (layer->kind->call_masked)
        return cornu__model_takes_integers((const CornuModel *)layer, input);
    if (layer->takes_integers && layer->inner_count > 0) return takes_integers(layer->inner[0], 0);
    return layer->takes_integers &&
           !(input > 0 && cornu__keras_class(layer)->one_operand);   /* weights */
}

bool cornu__model_takes_integers(const CornuModel *model, int input)
{
    const int value = cornu__model_value_index(model, model->inputs[input]);
    bool      takes = true;
    for (int i = 0; i < model->call_count; i++) {
        const CornuModelCall *call = &model->calls[i];
        const CornuLayer     *layer = call->node->layer;
        for (int k = 0; k < call->node->in_count; k++) {
            if (call->in[k] == value) takes &= takes_integers(layer, k);
        }
    }
    return takes;
}
