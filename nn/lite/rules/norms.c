/* Normalization by statistics that are computed into constants. */
#include "rules_internal.h"

#include <math.h>

/* y = gamma (x - mean) / sqrt(variance + epsilon) + beta, with the moving statistics: a product and
 * a sum, which fold.c makes part of the product before them. Weights are in Keras' order: gamma and
 * beta if the layer has them, then the statistics. */
static CornuStatus batch_normalization(const CornuLiteCall *call)
{
    CornuLite        *to = call->to;
    const CornuLayer *layer = call->layer;
    const int         rank = call->shapes[0].rank;
    const int64_t     given_axis = whole(layer, "axis");
    const int64_t     axis = given_axis < 0 ? given_axis + rank : given_axis;
    const int64_t     channels = call->shapes[0].extent[axis];
    const double      epsilon = number(layer, "epsilon");
    CornuShape        spread = cornu_shape(channels);
    if (axis != rank - 1) {
        spread.rank = rank;
        for (int i = 0; i < rank; i++) spread.extent[i] = i == axis ? channels : 1;
    }
    int          next = 0;
    const float *gamma = given(layer, "scale") ? cornu__lite_values(to, layer, next++) : NULL;
    const float *beta = given(layer, "center") ? cornu__lite_values(to, layer, next++) : NULL;
    const float *mean = cornu__lite_values(to, layer, next);
    const float *variance = cornu__lite_values(to, layer, next + 1);
    const int    factors = cornu__lite_room(to, "factors", spread);
    const int    terms = cornu__lite_room(to, "terms", spread);
    float       *factor = cornu__lite_data(to, factors), *term = cornu__lite_data(to, terms);
    for (int64_t c = 0; factor && term && c < channels; c++) {
        const double f = (gamma ? (double)gamma[c] : 1.0) / sqrt((double)variance[c] + epsilon);
        factor[c] = (float)f;
        term[c] = (float)((beta ? (double)beta[c] : 0.0) - (double)mean[c] * f);
    }
    const int y = cornu__lite_two(to, CORNU_LITE_MUL, call->in[0], factors);
    *call->out = cornu__lite_two(to, CORNU_LITE_ADD, y, terms);
    return CORNU_OK;
}

/* The statistic as a constant: a list or a number of the arguments, or weight i in this shape. */
static int statistic(const CornuLiteCall *call, const char *name, int i, CornuShape kept)
{
    CornuLite          *to = call->to;
    const CornuNumbers *list = cornu__layer_numbers(call->layer, name);
    const double       *variance = cornu__layer_argument(call->layer, "variance");
    if (list->values) return cornu__lite_numbers(to, list, call->shapes[0].rank);
    if (*variance == 0.0) return cornu__lite_weight_as(to, call->layer, i, NULL, kept);
    const int constant = cornu__lite_room(to, name, (CornuShape){ 0 });
    float    *value = cornu__lite_data(to, constant);
    if (value) *value = (float)number(call->layer, name);
    return constant;
}

/* (x - mean) / max(sqrt(variance), 1e-7), or back; CORNU_ZERO as the axis means no axis. */
static CornuStatus normalization(const CornuLiteCall *call)
{
    CornuLite     *to = call->to;
    const int64_t *axis = cornu__layer_argument(call->layer, "axis");
    const bool     invert = flag(call->layer, "invert");
    int64_t        axes = 0;
    if (*axis != CORNU_ZERO) CORNU__TRY(cornu__axis_bits(axis, call->shapes[0], &axes));
    CornuShape kept = cornu__along(call->shapes[0], axes, true);
    kept.extent[0] = 1;
    const int mean = statistic(call, "mean", 0, kept);
    const int factor = statistic(call, "variance", 1, kept);
    float    *f = cornu__lite_data(to, factor);
    for (int64_t i = 0; f && i < cornu_shape_count(shape_of(to, factor)); i++) {
        const double deviation = fmax(sqrt((double)f[i]), 1e-7);
        f[i] = (float)(invert ? deviation : 1.0 / deviation);
    }
    const int x = invert ? call->in[0] : cornu__lite_two(to, CORNU_LITE_SUB, call->in[0], mean);
    const int y = cornu__lite_two(to, CORNU_LITE_MUL, x, factor);
    *call->out = invert ? cornu__lite_two(to, CORNU_LITE_ADD, y, mean) : y;
    return CORNU_OK;
}

const CornuLiteRow cornu__lite_norms[] = {
    { "BatchNormalization", batch_normalization },
    { "Normalization", normalization },
    { 0 },
};
