/* A model's weights and its optimizer's variables as named arrays, for files. */
#include "files_internal.h"

#include "../../device/memory_internal.h"
#include "../layers/quantized_internal.h"
#include "../model/model_internal.h"

#include <stdio.h>
#include <string.h>

CornuStatus cornu__values_list(const CornuModel *model, CornuValues *values)
{
    *values = (CornuValues){ .weights = cornu_model_weight_count(model),
                             .variables = cornu__model_saved_count(model) };
    const int count = values->weights + values->variables;
    values->arrays = cornu__allocate((size_t)count, sizeof *values->arrays);
    if (!values->arrays) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) {
        const CornuWeight   *weight = i < values->weights ? cornu_model_weight(model, i) : NULL;
        const CornuVariable *variable =
            weight ? NULL : cornu_model_optimizer_variable(model, i - values->weights);
        const CornuType type = weight ? weight->type : cornu_variable_type(variable);
        values->arrays[i] = (CornuNamedArray){
            weight ? weight->path : cornu_variable_name(variable), cornu_array_from(NULL, type) };
    }
    return CORNU_OK;
}

CornuStatus cornu__values_create(const CornuModel *model, CornuValues *values)
{
    CORNU__TRY(cornu__values_list(model, values));
    for (int i = 0; i < values->weights + values->variables; i++) {
        CornuArray *array = &values->arrays[i].array;
        array->data = cornu__allocate(cornu_type_bytes(array->type), 1);
        if (!array->data) return CORNU_ERR_MEMORY;
    }
    return CORNU_OK;
}

void cornu__values_free(CornuValues *values)
{
    for (int i = 0; values->arrays && i < values->weights + values->variables; i++)
        cornu__release(values->arrays[i].array.data);
    cornu__release(values->arrays);
    *values = (CornuValues){ 0 };
}

CornuStatus cornu__values_read(const CornuModel *model, CornuValues *values)
{
    const CornuNamedArray *variables = values->arrays + values->weights;
    for (int i = 0; i < values->weights; i++)
        CORNU__TRY(cornu_weight_read(cornu_model_weight(model, i), values->arrays[i].array));
    for (int i = 0; i < values->variables; i++)
        CORNU__TRY(cornu_variable_read(cornu_model_optimizer_variable(model, i),
                                       variables[i].array));
    return CORNU_OK;
}

/* Adds a b, scaled, to a kernel of as many elements as `count`. */
static void add_product(const CornuWeight *weight, const float *a, const float *b, float *kernel,
                        int64_t count)
{
    const CornuShape shape = weight->lora_b->type.shape;
    const int64_t    rank = shape.extent[0], N = shape.extent[1];
    for (int64_t m = 0; m < count / N; m++)
        for (int64_t n = 0; n < N; n++) {
            double sum = 0.0;
            for (int64_t k = 0; k < rank; k++)
                sum += (double)a[m * rank + k] * (double)b[k * N + n];
            kernel[m * N + n] += (float)(weight->lora_scale * sum);
        }
}

/* The values of the weight beside a kernel; NULL if there is none. */
static float *beside(const CornuModel *model, const CornuValues *values, const CornuLayer *layer,
                     const char *name, const char *suffix)
{
    char text[64];
    snprintf(text, sizeof text, "%s%s", name, suffix);
    const int own = cornu__weight_index(layer, text);
    const int i = own < 0 ? -1 : cornu__model_weight_index(model, layer->weights[own]);
    return i < 0 ? NULL : values->arrays[i].array.data;
}

/* As Keras, which quantizes the sum anew: keras/src/layers/core/dense.py,
 * _get_kernel_with_merged_lora. */
static CornuStatus merge_quantized(const CornuModel *model, const CornuWeight *weight,
                                   const float *a, const float *b, CornuValues *values)
{
    const CornuLayer  *layer = weight->layer;
    const CornuQuantizable *kernel = layer->kernels;
    const int64_t      count = cornu_shape_count(kernel->shape);
    const char        *name = kernel->name;
    const CornuQuantizedValues of = {
        .packed = beside(model, values, layer, name, ""),
        .scale = beside(model, values, layer, name, "_scale"),
        .zero = beside(model, values, layer, name, "_zero"),
        .index = beside(model, values, layer, "g_idx", ""),
    };
    float *floats = cornu__allocate((size_t)count, sizeof *floats);
    if (!floats) return CORNU_ERR_MEMORY;
    cornu__kernel_dequantize(layer, kernel, &of, floats);
    add_product(weight, a, b, floats, count);
    const CornuStatus status = cornu__kernel_quantize(layer, kernel, floats, &of);
    cornu__release(floats);
    return status;
}

CornuStatus cornu__values_merge_lora(const CornuModel *model, CornuValues *values)
{
    for (int i = 0; i < values->weights; i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        const int at = weight->lora_a ? cornu__model_weight_index(model, weight->lora_a) : -1;
        const int bt = weight->lora_b ? cornu__model_weight_index(model, weight->lora_b) : -1;
        if (at < 0 || bt < 0) continue;
        float *a = values->arrays[at].array.data, *b = values->arrays[bt].array.data;
        if (cornu__quantization(weight->layer))
            CORNU__TRY(merge_quantized(model, weight, a, b, values));
        else
            add_product(weight, a, b, values->arrays[i].array.data,
                        cornu_type_count(weight->type));
        memset(a, 0, cornu_type_bytes(weight->lora_a->type));
        memset(b, 0, cornu_type_bytes(weight->lora_b->type));
    }
    return CORNU_OK;
}

CornuStatus cornu__values_write(CornuModel *model, const CornuValues *values)
{
    const CornuNamedArray *variables = values->arrays + values->weights;
    for (int i = 0; i < values->weights; i++)
        CORNU__TRY(cornu_weight_write(cornu_model_weight(model, i), values->arrays[i].array));
    for (int i = 0; i < values->variables; i++)
        CORNU__TRY(cornu_variable_write(cornu_model_optimizer_variable(model, i),
                                        variables[i].array));
    return CORNU_OK;
}

CornuStatus cornu__check_fit(const CornuNamedArray *array, const char *name, CornuType type)
{
    CornuText here, there;
    if (!array)
        return cornu__fail(CORNU_ERR_FORMAT, "there is no %s, which the model has", name);
    if (!cornu_shape_equal(array->array.type.shape, type.shape))
        return cornu__fail(CORNU_ERR_SHAPE, "%s is %s in the model and %s in the file", name,
                           cornu_shape_print(&here, type.shape),
                           cornu_shape_print(&there, array->array.type.shape));
    if (array->array.type.dtype != type.dtype)
        return cornu__fail(CORNU_ERR_DTYPE, "%s is %s in the model and %s in the file", name,
                           cornu_type_print(&here, type),
                           cornu_type_print(&there, array->array.type));
    return CORNU_OK;
}

/* ---- Weights in files of other programs, which may have fewer bits ---- */

static bool is_narrower(CornuDtype given, CornuDtype wanted)
{
    return wanted == CORNU_F32 && (given == CORNU_BF16 || given == CORNU_F16);
}

CornuStatus cornu__check_fills(const CornuNamedArray *array, const char *name, CornuType type)
{
    if (array && is_narrower(array->array.type.dtype, type.dtype))
        type.dtype = array->array.type.dtype;
    return cornu__check_fit(array, name, type);
}

void cornu__fill_from(CornuArray to, CornuArray from)
{
    uint16_t         bits;
    const CornuArray one = cornu_array_from(&bits, cornu_scalar(from.type.dtype));
    if (from.type.dtype == to.type.dtype) {
        memcpy(to.data, from.data, cornu_type_bytes(to.type));
        return;
    }
    for (int64_t i = 0; i < cornu_type_count(to.type); i++) {
        memcpy(&bits, (const char *)from.data + (size_t)i * sizeof bits, sizeof bits);
        cornu_array_set(to, i, cornu_array_get(one, 0));
    }
}
