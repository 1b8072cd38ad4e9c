/* Layers that run on the host: types, calls, and the encoding of places. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash_internal.h"
#include "host_internal.h"

/* ---- Encoding ---- */

CornuStatus cornu__host_encoded_type(CornuShape shape, CornuOutputMode mode, int64_t depth,
                                     CornuType *out)
{
    CornuDtype dtype = CORNU_F32;
    if (mode == CORNU_INT_OUTPUT) {
        dtype = CORNU_I32;
    } else if (mode == CORNU_ONE_HOT_OUTPUT) {
        if (shape.rank > 1 && shape.extent[shape.rank - 1] == 1) shape.rank--;
        if (shape.rank == CORNU_MAX_RANK)
            return cornu__fail(CORNU_ERR_SHAPE, "the input has %d axes, expected fewer",
                               shape.rank);
        shape.extent[shape.rank++] = depth;
    } else {
        CORNU__TRY(cornu__check_encoded(shape, mode));
        for (int i = 1; i + 1 < shape.rank; i++) shape.extent[i] = shape.extent[i + 1];
        shape.extent[shape.rank - 1] = depth;
    }
    *out = cornu_type_from(dtype, shape);
    return CORNU_OK;
}

void cornu__host_encode(const int64_t *places, CornuShape shape, CornuOutputMode mode,
                        int64_t depth, const double *weights, CornuArray out)
{
    const int64_t count = cornu_shape_count(shape);
    const int64_t steps = mode == CORNU_ONE_HOT_OUTPUT ? 1 : shape.rank > 1 ? shape.extent[1] : 1;
    int64_t       inner = 1;    /* elements of a step */
    float        *hot = out.data;
    if (mode == CORNU_INT_OUTPUT) {
        for (int64_t i = 0; i < count; i++) ((int32_t *)out.data)[i] = (int32_t)places[i];
        return;
    }
    for (int i = 2; i < shape.rank && mode != CORNU_ONE_HOT_OUTPUT; i++) inner *= shape.extent[i];
    memset(hot, 0, cornu_type_bytes(out.type));
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = i / (steps * inner) * inner + i % inner;
        if (places[i] < 0 || places[i] >= depth) continue;
        float *to = &hot[row * depth + places[i]];
        *to = mode == CORNU_MULTI_HOT_OUTPUT ? 1.0f : *to + 1.0f;
    }
    const int64_t made = weights ? cornu_type_count(out.type) : 0;
    for (int64_t i = 0; i < made; i++) hot[i] *= (float)weights[i % depth];
}

/* ---- Strings and hashes ---- */

CornuStatus cornu__host_check_whole(CornuArray array)
{
    const int64_t count = cornu_dtype_is_float(array.type.dtype) ? cornu_type_count(array.type) : 0;
    for (int64_t i = 0; i < count; i++)
        if (isnan(cornu_array_get(array, i)))
            return cornu__fail(CORNU_ERR_VALUE, "element %lld is nan, expected a whole number",
                               (long long)i);
    return CORNU_OK;
}

int64_t cornu__host_whole(CornuArray array, int64_t i)
{
    if (array.type.dtype == CORNU_I64) return ((const int64_t *)array.data)[i];
    const double number = cornu_array_get(array, i);
    return number >= 0x1p63 ? INT64_MAX : number < -0x1p63 ? INT64_MIN : (int64_t)number;
}

const char *cornu__host_text(CornuArray array, int64_t i, char decimal[24])
{
    if (array.type.dtype == CORNU_STRING) {
        const char *text = ((const char *const *)array.data)[i];
        return text ? text : "";
    }
    snprintf(decimal, 24, "%lld", (long long)cornu__host_whole(array, i));
    return decimal;
}

CornuStatus cornu__read_salt(const char *layer, const CornuNumbers *salt, uint64_t key[2])
{
    const int64_t count = salt->values ? cornu_shape_count(salt->shape) : 2;
    bool          fits = salt->shape.rank <= 1 && (count == 1 || count == 2);
    for (int i = 0; i < 2 && fits && salt->values; i++) {
        const double number = salt->values[count == 2 ? i : 0];
        fits = fabs(number) <= 0x1p53 && number == trunc(number);
        if (fits) key[i] = (uint64_t)(int64_t)number;
    }
    return fits ? CORNU_OK : cornu__fail(CORNU_ERR_ARGUMENT, "%s: .salt is not a whole number or "
                                         "two, up to 2^53", layer);
}

int64_t cornu__hash_bin(const char *text, size_t length, const uint64_t *key, int64_t bins)
{
    const uint64_t hash = key ? cornu__sip_hash(key, text, length) : cornu__farm_hash(text, length);
    return (int64_t)(hash % (uint64_t)bins);
}

/* ---- Calls ---- */

CornuStatus cornu__host_types(CornuLayer *layer, const CornuType *in, int in_count, CornuType *out)
{
    CornuArray arrays[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < in_count; i++) arrays[i] = cornu_array_from(NULL, in[i]);
    return layer->kind->host_type(layer, arrays, in_count, out);
}

CornuTensor *cornu__host_call_refused(CornuLayer *layer, const CornuCall *call,
                                      CornuTensor *const *in, int in_count, CornuTensor **out)
{
    (void)call, (void)in, (void)in_count, (void)out;
    return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%s: runs on the host before the step, on the "
                            "inputs of the model or on layers that run there too, and cannot be "
                            "called on a tensor", cornu_layer_name(layer));
}

static CornuStatus compute(const CornuLayer *layer, const CornuArray *in, int count,
                           CornuArray *to)
{
    if (!cornu__on_host(layer))
        return cornu__fail(CORNU_ERR_ARGUMENT, "is of class %s, which does not run on the host",
                           layer->kind->class_name);
    if (count < 1 || count > CORNU_MAX_LAYER_TENSORS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "got %d arrays, expected 1 to %d", count,
                           CORNU_MAX_LAYER_TENSORS);
    for (int i = 0; i < count; i++) {
        CORNU__TRY(cornu_host_type_check(in[i].type));
        if (in[i].type.shape.rank < 1 || (!in[i].data && cornu_type_bytes(in[i].type)))
            return cornu__fail(CORNU_ERR_ARGUMENT, "array %d is %s", i, in[i].data
                               ? "a scalar, expected rows" : "NULL");
    }
    CORNU__TRY(layer->kind->host_type(layer, in, count, &to->type));
    CORNU__TRY(cornu_host_type_check(to->type));
    to->data = cornu__allocate(1, cornu_type_bytes(to->type));
    if (!to->data) return CORNU_ERR_MEMORY;
    const CornuStatus status = layer->kind->host_call(layer, in, count, *to);
    if (status) {
        cornu__release(to->data);
        to->data = NULL;
    }
    return status;
}

CornuStatus cornu_layer_compute(const CornuLayer *layer, const CornuArray *in, int count,
                                CornuArray *to)
{
    CORNU__TRY(cornu__refused_status());
    if (!layer) return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_layer_compute: the layer is NULL");
    to->data = NULL;
    return cornu__fail_prefix(compute(layer, in, count, to), cornu_layer_name(layer));
}
