/*
 * Training with products of float8: what is multiplied is rounded to it, after a division by a
 * scale that follows the largest values of past steps. The scales and the histories are not
 * trained; each step in which gradients are taken assigns them.
 * Source: keras/src/layers/core/dense.py, _float8_call; keras/src/quantizers/quantizers.py,
 * compute_float8_scale, compute_float8_amax_history, quantize_and_dequantize.
 */
#include "../quantized_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Formats of 8 bits: bits of the mantissa, the exponent of the smallest normal number, by how many
 * squarings of 2 the exponents range, the largest number. Source: Micikevicius et al., "FP8 formats
 * for deep learning", arXiv 2209.05433. */
typedef struct {
    int    mantissa, lowest, doublings;
    double most;
} Format;
static const Format e4m3 = { 3, -6, 4, 448.0 }, e5m2 = { 2, -14, 5, 57344.0 };

static const char *const parts[] = { "inputs", "kernel", "outputs_grad" };
enum { PARTS = sizeof parts / sizeof *parts };

CornuStatus cornu__float8_declare(CornuLayer *layer)
{
    const int64_t given = layer->quantized.history;
    for (int i = 0; i < PARTS; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_scale", parts[i]);
        CORNU__TRY(cornu_layer_weight(layer, name, (CornuShape){ .rank = 0 }, CORNU_ONES, true));
        snprintf(name, sizeof name, "%s_amax_history", parts[i]);
        CORNU__TRY(cornu_layer_weight(layer, name, cornu_shape(given > 0 ? given : 1024),
                                      CORNU_ZEROS, true));
        for (int k = 1; k <= 2; k++)
            layer->weights[layer->own_count - k]->stored = CORNU_STORED_F32;
    }
    return CORNU_OK;
}

static int find(const CornuLayer *layer, const char *what, const char *suffix)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", what, suffix);
    return cornu__weight_index(layer, name);
}

/* The distance of neighbours of x, f32: 2^(e - mantissa) for 2^e <= |x| < 2^(e + 1), and that of
 * the lowest e below. All operations are exact. */
static CornuTensor *spacing(CornuTensor *x, const Format *format)
{
    CornuTensor *rest = cornu_op_scale(cornu_op_absolute(x), ldexp(1.0, -format->lowest));
    CornuTensor *power = rest ? cornu_op_constant_like(rest, 1.0) : NULL;
    for (int i = format->doublings - 1; i >= 0 && power; i--) {
        const double factor = ldexp(1.0, 1 << i);
        CornuTensor *least = cornu_op_constant_like(rest, factor);
        CornuTensor *large = cornu_op_compare(rest, CORNU_GREATER_EQUAL, least);
        rest = cornu_op_select(large, cornu_op_scale(rest, 1.0 / factor), rest);
        power = cornu_op_select(large, cornu_op_scale(power, factor), power);
    }
    return cornu_op_scale(power, ldexp(1.0, format->lowest - format->mantissa));
}

/* x / scale rounded to the format, times scale, in the dtype of x. */
static CornuTensor *rounded(CornuTensor *x, CornuTensor *scale, const Format *format)
{
    if (!x) return NULL;
    const CornuDtype dtype = cornu_tensor_type(x).dtype;
    scale = cornu_op_convert(scale, dtype);
    CornuTensor *y = cornu_op_clip(cornu_op_divide(x, scale), -format->most, format->most);
    y = cornu_op_convert(y, CORNU_F32);
    CornuTensor *step = spacing(y, format);
    y = cornu_op_multiply(cornu__round_small(cornu_op_divide(y, step)), step);
    return cornu_op_multiply(cornu_op_convert(y, dtype), scale);
}

/* ---- Scales ---- */

/* The largest |x| on all shards, an f32 vector of one element. */
static CornuTensor *largest(CornuTensor *x)
{
    CornuTensor *most = cornu_op_reduce_max(cornu_op_absolute(x), CORNU_ALL_AXES, false);
    most = cornu_op_reshape(cornu_op_convert(most, CORNU_F32), cornu_shape(1));
    if (!most || !cornu_tensor_varies(most)) return most;
    return cornu_op_reshape(cornu_op_reduce_max(cornu_op_all_gather(most, NULL), 1, false),
                            cornu_shape(1));
}

/* Assigns the scale that the history suggests, and the history with the largest |x| in place of
 * the oldest: its elements move down by one, element 0 is the newest. */
static CornuStatus follow(CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                          const char *what, const Format *format)
{
    const int    at = find(layer, what, "_scale"), past = find(layer, what, "_amax_history");
    CornuTensor *scale = cornu_layer_read_as(layer, call, at, CORNU_F32);
    CornuTensor *history = cornu_layer_read_as(layer, call, past, CORNU_F32);
    CornuTensor *most = cornu_op_reduce_max(history, 1, false), *now = largest(x);
    if (!scale || !most || !now) return cornu_error_status();
    CornuTensor *zero = cornu_op_constant_like(most, 0.0);
    CornuTensor *sf = cornu_op_divide(cornu_op_constant_like(most, format->most), most);
    CornuTensor *one = cornu_op_constant_like(most, 1.0);
    CornuTensor *old = cornu_op_divide(one, scale);
    sf = cornu_op_select(cornu_op_compare(most, CORNU_GREATER, zero), sf, old);
    sf = cornu_op_select(cornu_op_is_finite(most), sf, old);
    CORNU__TRY(cornu_layer_assign(layer, call, at, cornu_op_divide(one, sf)));

    const int64_t length = cornu_tensor_shape(history).extent[0];
    CornuTensor  *moved = now;
    if (length > 1) {   /* what was at 1 comes to 0 and is replaced; 0 comes to the end */
        CornuTensor *rest[] = { now, NULL, cornu_op_slice(history, (int64_t[]){ 0 },
                                                          (int64_t[]){ 1 }) };
        if (length > 2) rest[1] = cornu_op_slice(history, (int64_t[]){ 2 },
                                                 (int64_t[]){ length - 2 });
        else rest[1] = rest[2];
        moved = cornu_op_concat(rest, length > 2 ? 3 : 2, 0);
    }
    return moved ? cornu_layer_assign(layer, call, past, moved) : cornu_error_status();
}

CornuTensor *cornu__float8_round(CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                                 const char *what)
{
    CornuTensor *scale = cornu_layer_read_as(layer, call, find(layer, what, "_scale"), CORNU_F32);
    CornuTensor *y = rounded(x, scale, &e4m3);
    if (call->training && !layer->frozen && follow(layer, call, x, what, &e4m3)) return NULL;
    return y ? cornu_op_with_gradient(y, x, NULL, NULL) : NULL;
}

/* The gradient of the product, rounded to the wider range. */
static CornuTensor *round_gradient(void *context, CornuTensor *d_y)
{
    CornuLayer *layer = context;
    CornuCall   call = { .graph = cornu_tensor_graph(d_y) };
    const char *what = "outputs_grad";
    CornuTensor *scale = cornu_layer_read_as(layer, &call, find(layer, what, "_scale"), CORNU_F32);
    const CornuDtype dtype = cornu_tensor_type(d_y).dtype;
    d_y = cornu_op_convert(d_y, layer->compute);
    CornuTensor *y = rounded(d_y, scale, &e5m2);
    if (!layer->frozen && follow(layer, &call, d_y, what, &e5m2)) return NULL;
    return cornu_op_convert(y, dtype);
}

CornuTensor *cornu__float8_output(CornuLayer *layer, const CornuCall *call, CornuTensor *y)
{
    if (!y || call->description) return y;
    return cornu_op_with_gradient(y, y, round_gradient, layer);
}

/* ---- The bias ---- */

static CornuTensor *through_bf16(CornuTensor *x)
{
    return cornu_op_convert(cornu_op_convert(x, CORNU_BF16), CORNU_F32);
}

static CornuTensor *bias_gradient(void *context, CornuTensor *d_y)
{
    (void)context;
    return cornu_op_convert(through_bf16(d_y), cornu_tensor_type(d_y).dtype);
}

/* Keras rounds the bias of an f32 layer to bf16, and its gradient with it. */
CornuTensor *cornu__kernel_bias(CornuLayer *layer, const CornuCall *call)
{
    const int    i = cornu__weight_index(layer, "bias");
    CornuTensor *bias = cornu_layer_read_as(layer, call, i, layer->result);
    if (cornu__quantization(layer) != CORNU_FLOAT8 || layer->compute != CORNU_F32) return bias;
    bias = through_bf16(bias);
    return bias ? cornu_op_with_gradient(bias, bias, bias_gradient, NULL) : NULL;
}
