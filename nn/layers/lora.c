/* Low-rank adaptation of a layer's kernel. Source: keras/src/layers/core/dense.py, enable_lora. */
#include "quantized_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The last part of a weight's path. */
static const char *name_of(const CornuWeight *weight) { return strrchr(weight->path, '/') + 1; }

static int find(const CornuLayer *layer, const char *name)
{
    int i = 0;
    while (i < layer->weight_count && strcmp(name_of(layer->weights[i]), name)) i++;
    return i < layer->weight_count ? i : -1;
}

static CornuStatus add(CornuLayer *layer, const char *which, CornuShape shape,
                       CornuInitializer initializer, CornuRegularizer regularizer)
{
    char name[40];
    snprintf(name, sizeof name, "lora_%s_%s", cornu__keras_class(layer)->lora, which);
    CORNU__TRY(cornu_layer_weight(layer, name, shape, initializer, false));
    CORNU__TRY(cornu_layer_weight_rules(layer, regularizer, (CornuConstraint){ .kind = 0 }));
    layer->weights[layer->own_count - 1]->is_lora = true;
    layer->weights[layer->own_count - 1]->stored = CORNU_STORED_F32;
    return CORNU_OK;
}

CornuStatus cornu__layer_add_lora(CornuLayer *layer)
{
    if (!layer->lora_rank) return CORNU_OK;
    CornuWeight *kernel = layer->weights[find(layer, cornu__keras_class(layer)->lora)];
    if (cornu__quantization(layer) == CORNU_FLOAT8)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "low-rank adaptation of a layer with float8 is "
                           "not available, in Keras neither");
    if (kernel->constraint.kind)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s has a constraint, which cannot be kept with "
                           "low-rank adaptation; expected none", name_of(kernel));
    CornuShape    a = cornu__quantization(layer) ? layer->kernels[0].shape : kernel->type.shape;
    const int64_t rank = layer->lora_rank, last = a.extent[a.rank - 1];
    a.extent[a.rank - 1] = rank;
    CORNU__TRY(add(layer, "a", a, CORNU_HE_UNIFORM, kernel->regularizer));
    CORNU__TRY(add(layer, "b", cornu_shape(rank, last), CORNU_ZEROS, kernel->regularizer));
    kernel->non_trainable = true;
    kernel->lora_a = layer->weights[layer->own_count - 2];
    kernel->lora_b = layer->weights[layer->own_count - 1];
    kernel->lora_scale = layer->lora_alpha / (double)rank;
    return CORNU_OK;
}

CornuStatus cornu_layer_enable_lora(CornuLayer *layer, int64_t rank, double alpha)
{
    CORNU__NEED(layer);
    const char *name = cornu_layer_name(layer);
    if (!cornu__keras_class(layer)->lora)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: layers of class %s have no low-rank "
                           "adaptation, expected a Dense, EinsumDense, Embedding or convolution",
                           name, layer->kind->class_name);
    CORNU__TRY(cornu__positive(name, "lora_rank", rank));
    if (!isfinite(alpha) || alpha < 0.0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .lora_alpha is %g, expected 0 or more", name,
                           alpha);
    if (layer->lora_rank)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: low-rank adaptation is already enabled", name);
    if (layer->compiled ||
        (layer->built && layer->outer && cornu__keras_class(layer->outer)->folders))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: low-rank adaptation is enabled before the "
                           "model is compiled, and before a wrapper is built around the layer",
                           name);
    layer->lora_rank = rank;
    layer->lora_alpha = alpha == 0.0 ? (double)rank : alpha;
    const CornuStatus status = layer->built ? cornu__layer_add_lora(layer) : CORNU_OK;
    if (status) layer->lora_rank = 0;
    return cornu__fail_prefix(status, name);
}
