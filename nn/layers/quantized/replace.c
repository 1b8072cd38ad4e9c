/* Replacing the floats of a built layer's kernels by their quantized form. */
#include "../quantized_internal.h"

#include "../../config/policy_internal.h"

#include <stdio.h>
#include <string.h>

/* A mode, and what Keras' model.quantize takes for its blocks. */
static CornuStatus read_mode(const char *mode, CornuQuantization *quantization, int64_t *block)
{
    char text[40];
    *block = 0;
    for (int i = CORNU_INT8; i <= CORNU_FLOAT8; i++)
        if (!strcmp(mode, cornu__quantization_names[i])) {
            *quantization = (CornuQuantization)i;
            if (i == CORNU_INT4) *block = 128;
            return CORNU_OK;
        }
    *quantization = CORNU_INT4;
    if (strlen(mode) >= 20 || strncmp(mode, "int4/", 5))
        return cornu__fail(CORNU_ERR_ARGUMENT, "the mode of quantization is \"%.40s\", expected "
                           "int8, int4, float8 or int4/ and the length of blocks, int4/32", mode);
    snprintf(text, sizeof text, "%s_from_float32", mode);
    return cornu__policy_block(text, block);
}

/* The settings that Keras' default config for the mode has. */
static CornuQuantized settings_of(CornuQuantization mode, int64_t block)
{
    CornuQuantized settings = { .configured = true, .block = block };
    if (mode == CORNU_INT8)
        settings.inputs = (CornuQuantizer){ .given = true, .low = -127, .high = 127,
                                            .epsilon = 1e-7 };
    if (mode == CORNU_INT4) settings.config_block = block;
    return settings;
}

static CornuStatus replace_check(const CornuLayer *layer, const CornuPolicy *policy)
{
    if (!cornu__keras_class(layer)->quantizes)
        return cornu__fail(CORNU_ERR_ARGUMENT, "layers of class %s have no quantized form, "
                           "expected a Dense, EinsumDense, Embedding or ReversibleEmbedding",
                           layer->kind->class_name);
    if (!layer->built)
        return cornu__fail(CORNU_ERR_ARGUMENT, "the layer is not built yet, its weights cannot be "
                           "quantized");
    if (cornu__quantization(layer))
        return cornu__fail(CORNU_ERR_ARGUMENT, "the layer is quantized already, by the policy %s",
                           layer->own_policy->name);
    if (layer->compiled)
        return cornu__fail(CORNU_ERR_ARGUMENT, "weights are quantized before the model is "
                           "compiled");
    if (layer->lora_rank)
        return cornu__fail(CORNU_ERR_ARGUMENT, "weights are quantized before low-rank adaptation "
                           "is enabled");
    return policy ? CORNU_OK : cornu_error_take();
}

/* The values of a quantized kernel, in the host memory of its weights. */
static CornuStatus values_of(CornuLayer *layer, const CornuQuantizable *kernel,
                             CornuQuantizedValues *values)
{
    const struct { const char *suffix; float **at; } parts[] = {
        { "", &values->packed }, { "_scale", &values->scale }, { "_zero", &values->zero },
    };
    *values = (CornuQuantizedValues){ .packed = NULL };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const int index = cornu__kernel_weight(layer, kernel, parts[i].suffix);
        if (index < 0) continue;
        CornuWeight *weight = layer->weights[index];
        weight->host = cornu__allocate((size_t)cornu_type_count(weight->type), sizeof(float));
        if (!(*parts[i].at = weight->host)) return CORNU_ERR_MEMORY;
    }
    return CORNU_OK;
}

/* Moves the float kernels from the layer to `old`; the other weights keep their order. */
static void take_kernels(CornuLayer *layer, CornuWeight *old[CORNU_MAX_KERNELS])
{
    for (int k = 0; k < layer->kernel_count; k++) {
        const int at = cornu__kernel_weight(layer, &layer->kernels[k], "");
        old[k] = layer->weights[at];
        for (int i = at; i + 1 < layer->weight_count; i++)
            layer->weights[i] = layer->weights[i + 1];
        layer->own_count--;
        layer->weight_count--;
    }
}

static CornuStatus fill(CornuLayer *layer, CornuWeight *const *old)
{
    for (int k = 0; k < layer->kernel_count; k++) {
        const CornuQuantizable   *kernel = &layer->kernels[k];
        CornuQuantizedValues to;
        float *from = cornu__allocate((size_t)cornu_shape_count(kernel->shape), sizeof *from);
        CornuStatus status = from ? values_of(layer, kernel, &to) : CORNU_ERR_MEMORY;
        if (!status)
            status = cornu_weight_read(old[k], cornu_array_from(from, old[k]->type));
        if (!status) status = cornu__kernel_quantize(layer, kernel, from, &to);
        cornu__release(from);
        CORNU__TRY(status);
    }
    return CORNU_OK;
}

/* Frees the weights that were added after the first `count`. */
static void drop_after(CornuLayer *layer, int count)
{
    while (layer->own_count > count) {
        layer->weight_count--;
        cornu__weight_free(layer->weights[--layer->own_count]);
    }
}

/* The integers in place of the floats; on failure the layer is as before. */
static CornuStatus replace(CornuLayer *layer)
{
    CornuWeight *old[CORNU_MAX_KERNELS] = { NULL };
    take_kernels(layer, old);
    const int   others = layer->own_count;
    CornuStatus status = cornu__kernels_finish(layer);
    if (!status) status = fill(layer, old);
    if (!status) {
        for (int k = 0; k < layer->kernel_count; k++) cornu__weight_free(old[k]);
        return CORNU_OK;
    }
    drop_after(layer, others);
    for (int k = layer->kernel_count - 1; k >= 0; k--) {   /* there is room: they were there */
        for (int i = layer->weight_count; i > 0; i--) layer->weights[i] = layer->weights[i - 1];
        layer->weights[0] = old[k];
        layer->own_count++;
        layer->weight_count++;
    }
    return status;
}

CornuStatus cornu__layer_quantize(CornuLayer *layer, const char *mode, const CornuPolicy *usual)
{
    const CornuPolicy   *own = layer->own_policy, *source = own ? own : usual;
    const CornuQuantized before = layer->quantized;
    const int            count = layer->own_count;
    CornuQuantization    quantization;
    int64_t              block;
    CORNU__TRY(read_mode(mode, &quantization, &block));
    if (!source) source = cornu_policy("float32");
    const CornuPolicy *policy = cornu__quantization(layer)
                                    ? own : cornu__policy_from(source, quantization);
    CORNU__TRY(replace_check(layer, policy));
    layer->own_policy = policy;
    layer->quantized = settings_of(quantization, block);
    CornuStatus status = cornu__check_quantization(layer);
    if (!status)
        status = quantization == CORNU_FLOAT8 ? cornu__float8_declare(layer) : replace(layer);
    if (status) {
        drop_after(layer, count);
        layer->own_policy = own;
        layer->quantized = before;
    }
    return status;
}

CornuStatus cornu_layer_quantize_weights(CornuLayer *layer, const char *mode)
{
    CORNU__NEED(layer);
    CORNU__NEED(mode);
    return cornu__fail_prefix(cornu__layer_quantize(layer, mode, NULL), cornu_layer_name(layer));
}
