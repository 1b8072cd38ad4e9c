/* Quantizing the layers of a model. Source: keras/src/models/model.py, quantize. */
#include "../layers/quantized_internal.h"
#include "model_internal.h"

#include <string.h>

/* A layer made of others lists their weights after its own. */
static CornuStatus list_inner(CornuLayer *layer)
{
    const int own = layer->own_count;
    int       count = own, space = own;
    if (layer->kind->call_masked || layer->inner_count == 0) return CORNU_OK;
    for (int i = 0; i < layer->inner_count; i++) count += layer->inner[i]->weight_count;
    CORNU__TRY(cornu__reserve(&layer->weights, &space, own, count - own, sizeof *layer->weights));
    layer->weight_count = own;
    for (int i = 0; i < layer->inner_count; i++)
        for (int k = 0; k < layer->inner[i]->weight_count; k++)
            layer->weights[layer->weight_count++] = layer->inner[i]->weights[k];
    return CORNU_OK;
}

/* Layers whose products are layers of their own in Keras, and not here. */
static CornuStatus check_class(const CornuLayer *layer)
{
    const char *name = layer->kind->class_name;
    if (strcmp(name, "MultiHeadAttention") && strcmp(name, "GroupQueryAttention"))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: the products of a %s cannot be quantized in "
                       "this version; quantize other layers by cornu_layer_quantize_weights",
                       cornu_layer_name(layer), name);
}

/* Layers that are shared are met several times. */
static CornuStatus check_tree(const CornuLayer *layer)
{
    CORNU__TRY(check_class(layer));
    if (cornu__keras_class(layer)->quantizes && !layer->built)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the layer is not built yet, its weights cannot "
                           "be quantized", cornu_layer_name(layer));
    if (cornu__keras_class(layer)->quantizes && cornu__quantization(layer))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the layer is quantized already, by the policy "
                           "%s", cornu_layer_name(layer), layer->own_policy->name);
    for (int i = 0; i < layer->inner_count; i++) CORNU__TRY(check_tree(layer->inner[i]));
    return CORNU_OK;
}

static CornuStatus quantize_tree(CornuLayer *layer, const char *mode, const CornuPolicy *usual,
                                 unsigned quantizes)
{
    if (layer->kind->call_masked && layer->own_policy) usual = layer->own_policy;
    for (int i = 0; i < layer->inner_count; i++)
        CORNU__TRY(quantize_tree(layer->inner[i], mode, usual, quantizes));
    CORNU__TRY(list_inner(layer));
    if (!(cornu__keras_class(layer)->quantizes & quantizes) || cornu__quantization(layer))
        return CORNU_OK;
    return cornu__fail_prefix(cornu__layer_quantize(layer, mode, usual), cornu_layer_name(layer));
}

CornuStatus cornu_model_quantize_weights(CornuModel *model, const char *mode)
{
    CORNU__NEED(model);
    CORNU__NEED(mode);
    if (model->compiled)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s is compiled: weights are quantized before",
                           model->base.name);
    CORNU__TRY(check_tree(&model->base));
    /* Keras leaves layers alone that have no form of the mode. */
    const unsigned quantizes = !strcmp(mode, "float8") ? 1u << CORNU_FLOAT8 : 1u << CORNU_INT8;
    CORNU__TRY(quantize_tree(&model->base, mode, NULL, quantizes));
    return cornu__model_list_weights(model);
}
