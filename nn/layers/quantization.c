/* Whether a layer's kernel is quantized, and which weights belong to it. */
#include "quantized_internal.h"

#include <stdio.h>
#include <string.h>

static const char *name_of(const CornuWeight *weight) { return strrchr(weight->path, '/') + 1; }

CornuQuantization cornu__quantization(const CornuLayer *layer)
{
    return layer->own_policy ? layer->own_policy->quantization : CORNU_NOT_QUANTIZED;
}

/* Keras' config, where there is one, is stronger than the policy. */
int64_t cornu__block(const CornuLayer *layer)
{
    if (cornu__quantization(layer) != CORNU_INT4) return CORNU_NONE;
    const int64_t block = layer->quantized.configured ? layer->quantized.config_block
                                                      : layer->quantized.block;
    return block > 0 ? block : CORNU_NONE;
}

bool cornu__has_blocks(const CornuLayer *layer) { return cornu__block(layer) != CORNU_NONE; }

CornuStatus cornu__check_quantization(const CornuLayer *layer)
{
    const CornuQuantization mode = cornu__quantization(layer);
    if (!mode || (cornu__keras_class(layer)->quantizes >> mode & 1)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "layers of class %s have no form of the policy %s, "
                       "expected %s", layer->kind->class_name, layer->own_policy->name,
                       mode == CORNU_FLOAT8 ? "a Dense or EinsumDense"
                                            : "a Dense, EinsumDense, Embedding or "
                                              "ReversibleEmbedding");
}

int cornu__weight_index(const CornuLayer *layer, const char *name)
{
    int i = 0;
    while (i < layer->own_count && strcmp(name_of(layer->weights[i]), name)) i++;
    return i < layer->own_count ? i : -1;
}

int cornu__kernel_weight(const CornuLayer *layer, const CornuQuantizable *kernel,
                         const char *suffix)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", kernel->name, suffix);
    return cornu__weight_index(layer, name);
}

/* Source: variable_serialization_spec of Keras' layers; their lists are parts of this one. */
int cornu__weight_place(const CornuWeight *weight)
{
    static const char *const names[] = {
        "kernel", "embeddings", "bias", "inputs_scale", "inputs_amax_history", "kernel_scale",
        "embeddings_scale", "kernel_amax_history", "kernel_zero", "embeddings_zero",
        "outputs_grad_scale", "outputs_grad_amax_history", "g_idx", "reverse_embeddings",
        "reverse_embeddings_scale", "reverse_embeddings_zero",
    };
    enum { NAMES = sizeof names / sizeof *names };
    int i = 0;
    while (i < NAMES && strcmp(names[i], name_of(weight))) i++;
    return i;
}

CornuTensor *cornu__round_small(CornuTensor *x)
{
    const double most = 12582912.0;   /* 1.5 * 2^23: the next f32 are whole numbers */
    return cornu_op_shift(cornu_op_shift(cornu_op_convert(x, CORNU_F32), most), -most);
}
