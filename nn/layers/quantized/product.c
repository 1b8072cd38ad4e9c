/* Products with quantized kernels. Source: _int8_call and _int4_call of Keras' layers. */
#include "../quantized_internal.h"

/* ---- Inputs ---- */

/* x times *scale, rounded to whole numbers from low to high, f32; *scale = high / (the largest |x|
 * along the axes, which are kept, + epsilon), in the dtype of x. Source:
 * keras/src/quantizers/quantizers.py, abs_max_quantize. */
static CornuTensor *quantize_inputs(CornuTensor *x, int64_t axes, const CornuQuantizer *how,
                                    CornuTensor **scale)
{
    CornuTensor *most = cornu_op_reduce_max(cornu_op_absolute(x), axes, true);
    most = cornu_op_shift(most, how->epsilon);
    *scale = most ? cornu_op_divide(cornu_op_constant_like(most, how->high), most) : NULL;
    CornuTensor *q = cornu_op_convert(cornu_op_multiply(x, *scale), CORNU_F32);
    return cornu__round_small(cornu_op_clip(q, how->low, how->high));
}

/* The scale of inputs, with their axes, broadcast to the result: without those that are summed. */
static CornuTensor *along_result(const CornuProduct *product, CornuTensor *scale)
{
    if (!scale) return NULL;
    const CornuShape shape = cornu_tensor_shape(scale);
    CornuShape       to = { .rank = product->rank };
    int              axes[CORNU_MAX_RANK], at = 0;
    for (int i = 0; i < product->rank; i++) {
        const int x = product->from_x[i];
        to.extent[i] = x < 0 ? 1 : shape.extent[x];
        if (x >= 0) axes[at++] = x;
    }
    for (int i = 0; i < product->pair_count; i++) axes[at++] = product->pairs[i][0];
    return cornu_op_reshape(cornu_op_transpose(scale, axes), to);
}

/* ---- Exact sums ---- */

/* So many products of numbers up to 127 have a sum below 2^24, which f32 holds. */
enum { EXACT_TERMS = (1 << 24) / (127 * 127) };

static CornuTensor *part(CornuTensor *x, int axis, int64_t first, int64_t extent)
{
    if (!x || axis < 0) return x;
    int64_t    starts[CORNU_MAX_RANK] = { 0 };
    CornuShape shape = cornu_tensor_shape(x);
    starts[axis] = first;
    shape.extent[axis] = extent;
    return cornu_op_slice(x, starts, shape.extent);
}

/* A product of whole numbers in f32. Longer sums are divided along the axes from pair `first` on,
 * and the parts added in i32, as Keras adds all. */
static CornuTensor *exact_product(const CornuProduct *product, CornuTensor *x, CornuTensor *kernel,
                                  int first)
{
    if (!x || !kernel) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    int64_t          terms = 1;
    for (int i = first; i < product->pair_count; i++) terms *= shape.extent[product->pairs[i][0]];
    if (terms <= EXACT_TERMS)
        return product->function(product->context, x, kernel, CORNU_F32);
    const int     of_x = product->pairs[first][0], of_kernel = product->pairs[first][1];
    const int64_t extent = shape.extent[of_x], others = terms / extent;
    const int64_t step = others < EXACT_TERMS ? EXACT_TERMS / others : 1;
    CornuTensor  *sum = NULL;
    for (int64_t at = 0; at < extent; at += step) {
        const int64_t n = at + step < extent ? step : extent - at;
        CornuTensor  *y = exact_product(product, part(x, of_x, at, n),
                                        part(kernel, of_kernel, at, n),
                                        n * others > EXACT_TERMS ? first + 1 : first);
        y = cornu_op_convert(y, CORNU_I32);
        sum = sum ? cornu_op_add(sum, y) : y;
        if (!sum) return NULL;
    }
    return cornu_op_convert(sum, CORNU_F32);
}

/* ---- The product ---- */

/* The quantizer of inputs; NULL if they stay floats. */
static const CornuQuantizer *of_inputs(const CornuLayer *layer, bool always)
{
    static const CornuQuantizer usual = { .given = true, .low = -127, .high = 127,
                                          .epsilon = 1e-7 };
    if (layer->quantized.configured)
        return layer->quantized.inputs.given ? &layer->quantized.inputs : NULL;
    return always || cornu__quantization(layer) == CORNU_INT8 ? &usual : NULL;
}

/* The sums of whole numbers, or floats times those, over the scales; and the gradient is that of
 * the product with the floats that the kernel stands for or, `through_scale`, what remains of the
 * product's own where whole numbers have none: that of the inputs' scale. */
static CornuTensor *integer_product(CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                                    const CornuProduct *product, const CornuQuantizer *how,
                                    bool through_scale)
{
    const CornuQuantizable *kernel = product->kernel;
    const CornuDtype   compute = layer->compute;
    CornuTensor *floats = cornu__kernel_floats(layer, call, kernel), *scale;
    CornuTensor *plain = product->function(product->context, x, floats, compute);
    const bool   whole = cornu__quantization(layer) == CORNU_INT8 ||
                         (!cornu__has_blocks(layer) && product->last_scaled);
    if (!how) return plain;
    int64_t axes = 0;
    for (int i = 0; i < product->pair_count; i++) axes |= INT64_C(1) << product->pairs[i][0];
    CornuTensor *none = cornu_op_constant(call->graph,
                                          cornu_type_from(CORNU_F32, cornu_tensor_shape(x)), 0.0);
    CornuTensor *q = quantize_inputs(x, axes, how, &scale), *y;
    q = q && none ? cornu_op_with_gradient(q, none, NULL, NULL) : NULL;
    scale = along_result(product, scale);
    if (whole) {
        CornuTensor *k = cornu_op_reshape(cornu__kernel_integers(layer, call, kernel),
                                          kernel->shape);
        const int    at = cornu__kernel_weight(layer, kernel, "_scale");
        CornuTensor *of_kernel = cornu__layer_read_plain(layer, call, at, compute);
        if (cornu__quantization(layer) == CORNU_INT8)
            of_kernel = cornu_op_reshape(of_kernel, kernel->scale);
        y = cornu_op_convert(exact_product(product, q, k, 0), compute);
        y = cornu_op_divide(y, cornu_op_multiply(of_kernel, scale));
    } else {
        y = product->function(product->context, cornu_op_convert(q, compute), floats, compute);
        y = cornu_op_divide(y, scale);
    }
    if (through_scale || !y || !plain) return y;
    return cornu_op_with_gradient(y, plain, NULL, NULL);
}

CornuTensor *cornu__kernel_product(CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                                   const CornuProduct *product, bool always)
{
    const CornuQuantization mode = cornu__quantization(layer);
    const CornuQuantizable      *kernel = product->kernel;
    const int               index = cornu__kernel_weight(layer, kernel, "");
    if (!x) return NULL;
    if (mode == CORNU_NOT_QUANTIZED)
        return product->function(product->context, x, cornu_layer_read(layer, call, index),
                                 layer->result);
    if (mode == CORNU_FLOAT8) {
        CornuTensor *k = cornu_layer_read(layer, call, index);
        x = cornu__float8_round(layer, call, x, "inputs");
        k = cornu__float8_round(layer, call, k, "kernel");
        CornuTensor *y = product->function(product->context, x, k, layer->result);
        return cornu__float8_output(layer, call, y);
    }
    CornuTensor *y = integer_product(layer, call, x, product, of_inputs(layer, always),
                                     always);
    y = cornu_op_convert(y, layer->result);
    if (!layer->weights[index]->lora_a) return y;
    CornuTensor *ab = cornu__layer_lora(layer, call, index, kernel->shape);
    ab = cornu_op_convert(ab, layer->compute);
    return cornu_op_add(y, product->function(product->context, x, ab, layer->result));
}
