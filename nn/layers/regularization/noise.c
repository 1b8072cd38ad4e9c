/* GaussianDropout, AlphaDropout and GaussianNoise, only in training. Noise is drawn
 * and applied in f32 whatever the dtype of x. */
#include "noise_internal.h"

#include <math.h>
#include <string.h>

static double rate_of(const CornuLayer *layer)
{
    return ((const CornuDropoutLayer *)layer)->config.rate;
}

static bool draws(const CornuLayer *layer, const CornuCall *call)
{
    return call->training && rate_of(layer) > 0.0;
}

/* `times` uniform numbers per element of x, (B, times, …). */
static CornuTensor *uniform(const CornuLayer *layer, const CornuCall *call, CornuShape x,
                            int64_t times)
{
    int64_t row = 1;
    for (int i = 1; i < x.rank; i++) row *= x.extent[i];
    return cornu_op_random_uniform(cornu_shape(x.extent[0], times, row), call->seed,
                                   call->iteration, call->position, layer->generator);
}

/* The i-th number of each element. */
static CornuTensor *part(CornuTensor *numbers, int64_t i, CornuShape x)
{
    if (!numbers) return NULL;
    const CornuShape all = cornu_tensor_shape(numbers);
    const int64_t    starts[3] = { 0, i, 0 }, sizes[3] = { all.extent[0], 1, all.extent[2] };
    return cornu_op_reshape(cornu_op_slice(numbers, starts, sizes), x);
}

/* Standard normal numbers in x's shape: sqrt(-2 log(1 - u)) cos(2 pi v).
 * Source: Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958. */
static CornuTensor *normal(const CornuLayer *layer, const CornuCall *call, CornuShape x)
{
    CornuTensor *numbers = uniform(layer, call, x, 2), *u = part(numbers, 0, x);
    CornuTensor *v = cornu_op_scale(part(numbers, 1, x), 6.283185307179586);
    u = cornu_op_log(cornu_op_shift(cornu_op_negative(u), 1.0));
    return cornu_op_multiply(cornu_op_sqrt(cornu_op_scale(u, -2.0)), cornu_op_cos(v));
}

/* x factor + term in f32, in x's dtype; either may be NULL. */
static CornuTensor *applied(CornuTensor *x, CornuTensor *factor, CornuTensor *term)
{
    CornuTensor *y = cornu_op_convert(x, CORNU_F32);
    if (factor) y = cornu_op_multiply(y, factor);
    if (term) y = cornu_op_add(y, term);
    return y ? cornu_op_convert(y, cornu_tensor_type(x).dtype) : NULL;
}

/* ---- GaussianDropout ---- */

static CornuTensor *gaussian_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const double rate = rate_of(layer);
    if (!x || !draws(layer, call)) return x;
    CornuTensor *numbers = normal(layer, call, cornu_tensor_shape(x));
    CornuTensor *factor = cornu_op_shift(cornu_op_scale(numbers, sqrt(rate / (1.0 - rate))), 1.0);
    return factor ? applied(x, factor, NULL) : NULL;
}

/* ---- AlphaDropout ---- */

/* Dropped elements get the limit of selu at minus infinity; an affine map then restores mean and
 * variance. Source: Klambauer et al., "Self-Normalizing Neural Networks", arXiv
 * 1706.02515, section "New Dropout Technique"; keras/src/layers/regularization/alpha_dropout.py. */
static CornuTensor *alpha_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const double rate = rate_of(layer);
    const double least = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946;
    const double a = 1.0 / sqrt((1.0 - rate) * (1.0 + rate * least * least));
    if (!x || !draws(layer, call)) return x;
    const CornuType type = cornu_tensor_type(x);
    CornuTensor    *number = cornu_op_random_uniform(
        cornu__noise_of(layer, type.shape), call->seed, call->iteration,
        cornu__noise_position(layer, call), layer->generator);
    if (!number) return NULL;
    CornuTensor *dropped = cornu_op_compare(number, CORNU_LESS,
                                            cornu_op_constant_like(number, rate));
    CornuTensor *y = cornu_op_convert(x, CORNU_F32);
    y = y ? cornu_op_select(dropped, cornu_op_constant_like(y, least), y) : NULL;
    y = cornu_op_shift(cornu_op_scale(y, a), -a * least * rate);
    return cornu_op_convert(y, type.dtype);
}

/* ---- Layers with a rate ---- */

static CornuStatus resolve(CornuLayer *layer)
{
    CornuDropoutConfig *config = &((CornuDropoutLayer *)layer)->config;
    CORNU__TRY(cornu__resolve_rate(layer, "rate", &config->rate));
    if (config->noise_shape[0] != 0 && !layer->kind->build)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .noise_shape is given, which the layer does "
                           "not take", cornu_layer_name(layer));
    return cornu__check_noise_shape(layer, config->noise_shape);
}

static const CornuField fields[] = {
    { "rate", CORNU_FIELD_NUMBER, offsetof(CornuDropoutConfig, rate) },
    { 0 },
};

static const CornuField alpha_fields[] = {
    { "rate", CORNU_FIELD_NUMBER, offsetof(CornuDropoutConfig, rate) },
    { "noise_shape", CORNU_FIELD_SHAPE_OR_NONE, offsetof(CornuDropoutConfig, noise_shape) },
    { 0 },
};

#define COMMON .size = sizeof(CornuDropoutLayer)

const CornuLayerClass cornu__gaussian_dropout_class = {
    .class_name = "GaussianDropout", .call = gaussian_call, COMMON,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, CornuDropoutLayer, resolve) },
};
const CornuLayerClass cornu__alpha_dropout_class = {
    .class_name = "AlphaDropout", .build = cornu__build_noise, .call = alpha_call, COMMON,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(alpha_fields, CornuDropoutLayer, resolve) },
};

CORNU__CONSTRUCTOR(gaussian_dropout, CornuDropoutConfig)
CORNU__CONSTRUCTOR(alpha_dropout, CornuDropoutConfig)

/* ---- GaussianNoise ---- */

typedef CORNU__LAYER(CornuGaussianNoiseConfig) GaussianNoise;

static CornuTensor *noise_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const double stddev = ((GaussianNoise *)layer)->config.stddev;
    if (!x || !call->training || stddev == 0.0) return x;
    CornuTensor *term = cornu_op_scale(normal(layer, call, cornu_tensor_shape(x)), stddev);
    return term ? applied(x, NULL, term) : NULL;
}

static CornuStatus noise_resolve(CornuLayer *layer)
{
    double *stddev = &((GaussianNoise *)layer)->config.stddev;
    *stddev = cornu__number(*stddev, 0.0);
    if (*stddev >= 0.0 && *stddev < INFINITY) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .stddev is %g, expected 0 or more",
                       cornu_layer_name(layer), *stddev);
}

static const CornuField noise_fields[] = {
    { "stddev", CORNU_FIELD_NUMBER, offsetof(CornuGaussianNoiseConfig, stddev) },
    { 0 },
};

const CornuLayerClass cornu__gaussian_noise_class = {
    .class_name = "GaussianNoise", .size = sizeof(GaussianNoise), .call = noise_call,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(noise_fields, GaussianNoise, noise_resolve) },
};

CORNU__CONSTRUCTOR(gaussian_noise, CornuGaussianNoiseConfig)
