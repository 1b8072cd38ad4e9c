#include "noise_internal.h"

#include <string.h>

CornuStatus cornu__resolve_share(const CornuLayer *layer, double *rate)
{
    *rate = cornu__number(*rate, 0.0);
    if (*rate >= 0.0 && *rate <= 1.0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .rate is %g, expected 0 to 1",
                       cornu_layer_name(layer), *rate);
}

CornuStatus cornu__check_noise_shape(const CornuLayer *layer, const int64_t *noise)
{
    for (int i = 0; i < CORNU_MAX_RANK && noise[i] != 0; i++)
        if (noise[i] != CORNU_NONE && noise[i] < 1)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .noise_shape has %lld, expected 1 or more, "
                               "or CORNU_NONE", cornu_layer_name(layer), (long long)noise[i]);
    return CORNU_OK;
}

CornuStatus cornu__build_noise(CornuLayer *layer, CornuShape input)
{
    CornuText      text;
    const int64_t *noise = ((CornuDropoutLayer *)layer)->config.noise_shape;
    int            rank = 0;
    bool           fits = true;
    for (; rank < CORNU_MAX_RANK && noise[rank] != 0; rank++)
        fits = fits && (rank >= input.rank || noise[rank] == CORNU_NONE || noise[rank] == 1 ||
                        input.extent[rank] == CORNU_NONE || input.extent[rank] == noise[rank]);
    if (rank == 0 || (fits && rank == input.rank)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "its .noise_shape cannot be broadcast to the input %s",
                       cornu_shape_print(&text, input));
}

CornuShape cornu__noise_of(const CornuLayer *layer, CornuShape x)
{
    const int64_t *noise = ((const CornuDropoutLayer *)layer)->config.noise_shape;
    for (int i = 0; i < x.rank && noise[i] != 0; i++)
        if (noise[i] != CORNU_NONE) x.extent[i] = noise[i];
    return x;
}

CornuTensor *cornu__noise_position(const CornuLayer *layer, const CornuCall *call)
{
    const int64_t rows = ((const CornuDropoutLayer *)layer)->config.noise_shape[0];
    return rows == 0 || rows == CORNU_NONE ? call->position
                                           : cornu_op_constant_like(call->position, 0.0);
}

static CornuTensor *dropout_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuDropoutConfig *config = &((CornuDropoutLayer *)layer)->config;
    const double              rate = config->rate;
    if (!x || !call->training || rate == 0.0) return x;
    if (rate == 1.0) return cornu_op_constant_like(x, 0.0);
    if (config->noise_shape[0] != 0) {
        const CornuShape shape = cornu__noise_of(layer, cornu_tensor_shape(x));
        CornuTensor     *ones = cornu_op_constant(call->graph, cornu_type_from(CORNU_F32, shape),
                                                  1.0);
        CornuTensor     *kept = cornu_op_dropout(ones, rate, call->seed, call->iteration,
                                                 cornu__noise_position(layer, call),
                                                 layer->generator);
        CornuTensor     *y = cornu_op_multiply(cornu_op_convert(x, CORNU_F32), kept);
        return cornu_op_convert(y, cornu_tensor_type(x).dtype);
    }
    return cornu_op_dropout(x, rate, call->seed, call->iteration, call->position,
                            layer->generator);
}

static CornuStatus dropout_resolve(CornuLayer *layer)
{
    CornuDropoutConfig *config = &((CornuDropoutLayer *)layer)->config;
    CORNU__TRY(cornu__resolve_share(layer, &config->rate));
    return cornu__check_noise_shape(layer, config->noise_shape);
}

static const CornuField fields[] = {
    { "rate", CORNU_FIELD_NUMBER, offsetof(CornuDropoutConfig, rate) },
    { "noise_shape", CORNU_FIELD_SHAPE_OR_NONE, offsetof(CornuDropoutConfig, noise_shape) },
    { 0 },
};

const CornuLayerClass cornu__dropout_class = {
    .class_name = "Dropout", .size = sizeof(CornuDropoutLayer), .build = cornu__build_noise,
    .call = dropout_call,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, CornuDropoutLayer, dropout_resolve) },
};

CORNU__CONSTRUCTOR(dropout, CornuDropoutConfig)
