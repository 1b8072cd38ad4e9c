/* RandomErasing, RandomGaussianBlur, MixUp and CutMix. */
#include "moves_internal.h"

#include <math.h>

/* bool (B, H, W, 1): the pixels of a rectangle whose sides are these parts of the image's, at a
 * place that takes two draws. */
static CornuTensor *rectangle(CornuTensor *x, CornuDraws *draws, CornuTensor *width,
                              CornuTensor *height)
{
    const CornuShape s = cornu_tensor_shape(x);
    CornuTensor     *inside = NULL, *sides[2] = { width, height };
    for (int i = 0; i < 2; i++) {
        const int    axis = 2 - i;
        const double extent = (double)s.extent[axis];
        const CornuType line = cornu_type(CORNU_F32, 1, i ? s.extent[1] : 1, i ? 1 : s.extent[2],
                                          1);
        CornuTensor *side = cornu_op_scale(sides[i], extent);
        CornuTensor *rest = cornu_op_shift(cornu_op_negative(side), extent);
        CornuTensor *first = cornu_op_multiply(cornu__draw(draws), rest);
        CornuTensor *place = cornu_op_iota(cornu_tensor_graph(x), line, axis);
        CornuTensor *from = cornu_op_compare(place, CORNU_GREATER_EQUAL, first);
        CornuTensor *to = cornu__less(place, cornu_op_add(first, side));
        CornuTensor *none = to ? cornu_op_constant_like(to, 0.0) : NULL;
        CornuTensor *both = cornu_op_select(from, to, none);
        none = both ? cornu_op_constant_like(both, 0.0) : NULL;
        inside = inside ? cornu_op_select(inside, both, none) : both;
    }
    return inside;
}

/* ---- RandomErasing ---- */

typedef CORNU__LAYER(CornuRandomErasingConfig) RandomErasing;   /* with resolved ranges */

static CornuTensor *erase(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuRandomErasingConfig *c = &((const RandomErasing *)layer)->config;
    const CornuShape s = cornu_tensor_shape(x);
    const bool       noise = c->fill_value == 0.0 && !c->fill_values.values;
    const int64_t    row = s.extent[1] * s.extent[2] * s.extent[3];
    CornuDraws   draws = cornu__draws(layer, call, x, 6 + (noise ? 2 * row : 0));
    CornuTensor *width = cornu_op_sqrt(cornu__draw_between(&draws, c->scale));
    CornuTensor *height = cornu_op_sqrt(cornu__draw_between(&draws, c->scale));
    CornuTensor *inside = rectangle(x, &draws, width, height);
    CornuTensor *chosen = cornu__draw_chance(&draws, c->factor), *fill;
    if (noise)
        fill = cornu_op_scale(cornu__draw_normal(&draws, s), cornu__end(c->value_range, 1));
    else if (c->fill_values.values)
        fill = cornu__numbers_tensor(call, &c->fill_values, c->fill_values.shape);
    else
        fill = cornu_op_constant_like(x, cornu__number(c->fill_value, 0.0));
    CornuTensor *erased = cornu_op_select(inside, cornu__clip_to(fill, c->value_range), x);
    return cornu_op_select(chosen, erased, x);
}

static CornuStatus erase_resolve(CornuLayer *layer)
{
    CornuRandomErasingConfig *config = &((RandomErasing *)layer)->config;
    CornuNumbers             *fill = &config->fill_values;
    double                    none = 0.0;
    if (config->scale[0] == 0.0 && config->scale[1] == 0.0) {
        config->scale[0] = 0.02;
        config->scale[1] = 0.33;
    }
    if (fill->values &&
        (config->fill_value != 0.0 || fill->shape.rank != 1 || fill->shape.extent[0] != 3))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .fill_values are not three numbers, or given "
                           "with .fill_value", cornu_layer_name(layer));
    CORNU__TRY(cornu__resolve_factor(layer, "factor", &config->most, config->factor, 1.0, 0.0,
                                     1.0));
    CORNU__TRY(cornu__resolve_factor(layer, "scale", &none, config->scale, 0.0, 0.0, 1.0));
    CORNU__TRY(cornu__resolve_value_range(layer, config->value_range));
    return cornu__layer_copy_numbers(layer, fill);
}

static const CornuField erase_fields[] = {
    { "factor", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuRandomErasingConfig, factor) },
    { "scale", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuRandomErasingConfig, scale) },
    { "fill_value", CORNU_FIELD_NUMBER_OR_NONE, offsetof(CornuRandomErasingConfig, fill_value) },
    { "fill_value", CORNU_FIELD_NUMBERS, offsetof(CornuRandomErasingConfig, fill_values) },
    { "value_range", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuRandomErasingConfig, value_range) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuRandomErasingConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__random_erasing_class = {
    .class_name = "RandomErasing", .size = sizeof(RandomErasing),
    CORNU__CHANGES_IMAGES(erase, false),
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(erase_fields, RandomErasing, erase_resolve) },
};

CORNU__CONSTRUCTOR(random_erasing, CornuRandomErasingConfig)

/* ---- RandomGaussianBlur ---- */

/* (1, size, size', 1) with the weights along an axis. */
static CornuTensor *bell(CornuGraph *graph, int64_t size, int axis, CornuTensor *sigma)
{
    const CornuType type = cornu_type(CORNU_F32, 1, axis == 1 ? size : 1, axis == 2 ? size : 1, 1);
    CornuTensor *distance = cornu_op_shift(cornu_op_iota(graph, type, axis),
                                           -0.5 * (double)(size - 1));
    CornuTensor *w = cornu_op_square(cornu_op_divide(distance, sigma));
    w = cornu_op_exp(cornu_op_scale(w, -0.5));
    return cornu_op_divide(w, cornu_op_reduce_sum(w, INT64_C(1) << axis, true));
}

CornuTensor *cornu__blur(CornuTensor *x, const int64_t size[2], CornuTensor *const sigma[2])
{
    if (!x || !sigma[0] || !sigma[1]) return NULL;
    const int64_t C = cornu_tensor_shape(x).extent[3];
    for (int i = 0; i < 2; i++) {
        const int64_t    half = size[i] / 2;
        CornuConvolution how = { .strides = { 1, 1 }, .groups = C };
        CornuTensor *filter = bell(cornu_tensor_graph(x), size[i], i + 1, sigma[i]);
        const CornuShape shape = i == 0 ? cornu_shape(size[0], 1, 1, 1)
                                        : cornu_shape(1, size[1], 1, 1);
        filter = cornu_op_reshape(filter, shape);
        filter = cornu_op_broadcast(filter, cornu_shape(shape.extent[0], shape.extent[1], 1, C));
        how.low[i] = how.high[i] = half;
        x = cornu_op_conv2d(x, filter, &how);
    }
    return x;
}

typedef CORNU__LAYER(CornuRandomGaussianBlurConfig) RandomGaussianBlur;   /* with resolved ranges */

/* As in Keras the first size and sigma are of the width; of the size, the first is. */
static CornuTensor *blur(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuRandomGaussianBlurConfig *c = &((const RandomGaussianBlur *)layer)->config;
    CornuDraws   shared = cornu__shared_draws(layer, call, 2);
    CornuDraws   draws = cornu__draws(layer, call, x, 2);
    CornuTensor *chosen = cornu__draw_chance(&draws, c->factor), *sigma[2];
    for (int i = 1; i >= 0; i--)
        sigma[i] = cornu_op_shift(cornu__draw_between(&shared, c->sigma), 1e-6);
    CornuTensor *y = cornu__blur(x, (const int64_t[]){ c->kernel_size[1], c->kernel_size[0] },
                                 sigma);
    return cornu__clip_to(cornu_op_select(chosen, y, x), c->value_range);
}

static CornuStatus blur_resolve(CornuLayer *layer)
{
    CornuRandomGaussianBlurConfig *config = &((RandomGaussianBlur *)layer)->config;
    const char                    *name = cornu_layer_name(layer);
    int64_t                       *size = config->kernel_size;
    double                         none = 0.0;
    CORNU__TRY(cornu__pair(name, "kernel_size", "kernel_size", 0, size, 3, size));
    CORNU__TRY(cornu__resolve_factor(layer, "factor", &config->most, config->factor, 1.0, 0.0,
                                     1.0));
    CORNU__TRY(cornu__resolve_factor(layer, "sigma", &none, config->sigma, 1.0, 0.0, 1.0));
    CORNU__TRY(cornu__resolve_value_range(layer, config->value_range));
    if (size[0] % 2 != 0 && size[1] % 2 != 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .kernel_size is (%lld, %lld), expected odd numbers",
                       name, (long long)size[0], (long long)size[1]);
}

static const CornuField blur_fields[] = {
    { "factor", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuRandomGaussianBlurConfig, factor) },
    { "kernel_size", CORNU_FIELD_PAIR, offsetof(CornuRandomGaussianBlurConfig, kernel_size) },
    { "sigma", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuRandomGaussianBlurConfig, sigma) },
    { "value_range", CORNU_FIELD_RANGE_OR_NONE,
      offsetof(CornuRandomGaussianBlurConfig, value_range) },
    { "data_format", CORNU_FIELD_DATA_FORMAT,
      offsetof(CornuRandomGaussianBlurConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__random_gaussian_blur_class = {
    .class_name = "RandomGaussianBlur", .size = sizeof(RandomGaussianBlur),
    CORNU__CHANGES_IMAGES(blur, false),
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(blur_fields, RandomGaussianBlur, blur_resolve),
    },
};

CORNU__CONSTRUCTOR(random_gaussian_blur, CornuRandomGaussianBlurConfig)

/* ---- Partners ---- */

/* Each image's partner is the one `distance` places on, among the images that count; the distance
 * is drawn for the batch. */
static CornuTensor *partners(const CornuCall *call, CornuTensor *x, CornuDraws *shared)
{
    const CornuShape s = cornu_tensor_shape(x);
    const int64_t    B = s.extent[0], row = cornu_shape_count(s) / (B ? B : 1);
    CornuTensor *number = cornu_op_reshape(cornu__draw(shared), cornu_shape(1));
    CornuTensor *rows = cornu_op_iota(call->graph, cornu_type(CORNU_F32, B), 0);
    CornuTensor *count = call->count
        ? cornu_op_convert(call->count, CORNU_F32)
        : cornu_op_constant(call->graph, cornu_scalar(CORNU_F32), (double)B);
    count = cornu_op_maximum(count, cornu_op_constant(call->graph, cornu_scalar(CORNU_F32), 1.0));
    CornuTensor *at = cornu_op_add(rows, cornu_op_floor(cornu_op_multiply(number, count)));
    CornuTensor *laps = cornu_op_floor(cornu_op_divide(at, count));
    at = cornu_op_subtract(at, cornu_op_multiply(laps, count));
    at = cornu_op_clip(at, 0.0, (double)(B - 1));
    x = cornu_op_gather(cornu_op_reshape(x, cornu_shape(B, row)), cornu_op_convert(at, CORNU_I64));
    return cornu_op_reshape(x, s);
}

/* Of the distribution Beta(alpha, alpha): 1 / (1 + b / a) of two numbers of Gamma(alpha). */
static CornuTensor *beta(CornuDraws *draws, CornuTensor *alpha)
{
    CornuTensor *a = cornu__draw_log_gamma(draws, alpha);
    return cornu_op_sigmoid(cornu_op_subtract(a, cornu__draw_log_gamma(draws, alpha)));
}

/* ---- MixUp ---- */

typedef CORNU__LAYER(CornuMixUpConfig) MixUp;

static CornuTensor *mix(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const double alpha = ((const MixUp *)layer)->config.alpha;
    CornuDraws   draws = cornu__draws(layer, call, x, 2 * CORNU_GAMMA_DRAWS);
    CornuDraws   shared = cornu__shared_draws(layer, call, 1);
    CornuTensor *one = cornu_op_constant(call->graph, cornu_type(CORNU_F32, 1, 1, 1, 1), alpha);
    CornuTensor *other = partners(call, x, &shared);
    CornuTensor *apart = cornu_op_multiply(beta(&draws, one), cornu_op_subtract(x, other));
    return cornu_op_add(other, apart);
}

static CornuStatus mix_resolve(CornuLayer *layer)
{
    double *alpha = &((MixUp *)layer)->config.alpha;
    *alpha = cornu__number(*alpha, 0.2);
    if (*alpha > 0.0 && *alpha < INFINITY) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .alpha is %g, expected above 0",
                       cornu_layer_name(layer), *alpha);
}

static const CornuField mix_fields[] = {
    { "alpha", CORNU_FIELD_NUMBER, offsetof(CornuMixUpConfig, alpha) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuMixUpConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__mix_up_class = {
    .class_name = "MixUp", .size = sizeof(MixUp), CORNU__CHANGES_IMAGES(mix, false),
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(mix_fields, MixUp, mix_resolve) },
};

CORNU__CONSTRUCTOR(mix_up, CornuMixUpConfig)

/* ---- CutMix ---- */

typedef CORNU__LAYER(CornuCutMixConfig) CutMix;   /* with the resolved range */

static CornuTensor *cut(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuCutMixConfig *config = &((const CutMix *)layer)->config;
    CornuDraws   draws = cornu__draws(layer, call, x, 2 * CORNU_GAMMA_DRAWS + 2);
    CornuDraws   shared = cornu__shared_draws(layer, call, 2);
    CornuTensor *alpha = cornu_op_shift(cornu__draw_between(&shared, config->factor), 1e-6);
    CornuTensor *weight = beta(&draws, alpha);
    CornuTensor *side = cornu_op_sqrt(cornu_op_shift(cornu_op_negative(weight), 1.0));
    return cornu_op_select(rectangle(x, &draws, side, side), partners(call, x, &shared), x);
}

static CornuStatus cut_resolve(CornuLayer *layer)
{
    CornuCutMixConfig *config = &((CutMix *)layer)->config;
    return cornu__resolve_factor(layer, "factor", &config->most, config->factor, 1.0, 0.0, 1.0);
}

static const CornuField cut_fields[] = {
    { "factor", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuCutMixConfig, factor) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuCutMixConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__cut_mix_class = {
    .class_name = "CutMix", .size = sizeof(CutMix), CORNU__CHANGES_IMAGES(cut, false),
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(cut_fields, CutMix, cut_resolve) },
};

CORNU__CONSTRUCTOR(cut_mix, CornuCutMixConfig)
