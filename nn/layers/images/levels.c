/* Solarization, AutoContrast and Equalization, on values mapped to 0 to 255. */
#include "../../../tensor/functions/functions_internal.h"
#include "image_internal.h"

/* ---- Solarization ---- */

CornuTensor *cornu__solarize(CornuTensor *x, CornuDraws *draws, const double addition[2],
                             const double threshold[2], const double range[2])
{
    const double terms[2] = { addition[0], 255.0 * cornu__end(addition, 1) };
    const double bounds[2] = { threshold[0], 255.0 * cornu__end(threshold, 1) };
    CornuTensor *term = cornu__draw_between(draws, terms);
    CornuTensor *bound = cornu__draw_between(draws, bounds);
    x = cornu_op_add(cornu__map_range(x, range, cornu__bytes), term);
    x = cornu_op_clip(x, 0.0, 255.0);
    x = cornu_op_select(cornu__less(x, bound), x, cornu_op_shift(cornu_op_negative(x), 255.0));
    return cornu__map_range(x, cornu__bytes, range);
}

typedef CORNU__LAYER(CornuSolarizationConfig) Solarization;   /* with resolved ranges */

static CornuTensor *solarize(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuSolarizationConfig *config = &((const Solarization *)layer)->config;
    CornuDraws                     draws = cornu__draws(layer, call, x, 2);
    return cornu__solarize(x, &draws, config->addition_factor, config->threshold_factor,
                           config->value_range);
}

static CornuStatus solarize_resolve(CornuLayer *layer)
{
    CornuSolarizationConfig *config = &((Solarization *)layer)->config;
    CORNU__TRY(cornu__resolve_value_range(layer, config->value_range));
    CORNU__TRY(cornu__resolve_factor(layer, "addition_factor", &config->addition,
                                     config->addition_factor, 0.0, 0.0, 1.0));
    return cornu__resolve_factor(layer, "threshold_factor", &config->threshold,
                                 config->threshold_factor, 0.0, 0.0, 1.0);
}

static const CornuField solarize_fields[] = {
    { "value_range", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuSolarizationConfig, value_range) },
    { "addition_factor", CORNU_FIELD_RANGE_OR_NONE,
      offsetof(CornuSolarizationConfig, addition_factor) },
    { "threshold_factor", CORNU_FIELD_RANGE_OR_NONE,
      offsetof(CornuSolarizationConfig, threshold_factor) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuSolarizationConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__solarization_class = {
    .class_name = "Solarization", .size = sizeof(Solarization),
    CORNU__CHANGES_IMAGES(solarize, false),
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(solarize_fields, Solarization, solarize_resolve),
    },
};

CORNU__CONSTRUCTOR(solarization, CornuSolarizationConfig)

/* ---- AutoContrast ---- */

static CornuTensor *least(CornuTensor *x, int64_t axes)
{
    return cornu__reduce_min(x, axes, true);
}

/* A channel of one value stays as it is. */
CornuTensor *cornu__spread_levels(CornuTensor *x, const double range[2])
{
    const int64_t pixels = 1 << 1 | 1 << 2;
    CornuTensor  *y = cornu__map_range(x, range, cornu__bytes);
    CornuTensor  *low = least(y, pixels), *high = cornu_op_reduce_max(y, pixels, true);
    if (!low || !high) return NULL;
    CornuTensor *flat = cornu_op_compare(low, CORNU_EQUAL, high);
    CornuTensor *width = cornu_op_select(flat, cornu_op_constant_like(low, 1.0),
                                         cornu_op_subtract(high, low));
    CornuTensor *scale = cornu_op_divide(cornu_op_constant_like(low, 255.0), width);
    y = cornu_op_subtract(cornu_op_multiply(y, scale), cornu_op_multiply(low, scale));
    y = cornu__map_range(cornu_op_clip(y, 0.0, 255.0), cornu__bytes, range);
    return cornu_op_select(flat, x, y);
}

typedef CORNU__LAYER(CornuAutoContrastConfig) AutoContrast;

static CornuTensor *spread(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return cornu__spread_levels(x, ((const AutoContrast *)layer)->config.value_range);
}

static CornuStatus contrast_resolve(CornuLayer *layer)
{
    return cornu__resolve_value_range(layer, ((AutoContrast *)layer)->config.value_range);
}

static const CornuField contrast_fields[] = {
    { "value_range", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuAutoContrastConfig, value_range) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuAutoContrastConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__auto_contrast_class = {
    .class_name = "AutoContrast", .size = sizeof(AutoContrast),
    CORNU__CHANGES_IMAGES(spread, true),
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(contrast_fields, AutoContrast, contrast_resolve),
    },
};

CORNU__CONSTRUCTOR(auto_contrast, CornuAutoContrastConfig)

/* ---- Equalization ---- */

/* (n, n): row i times a column vector of n sums its elements 0 to i. */
static CornuTensor *running_sums(CornuGraph *graph, int64_t n)
{
    const CornuType square = cornu_type(CORNU_F32, n, n);
    CornuTensor    *row = cornu_op_iota(graph, square, 0);
    CornuTensor    *column = cornu_op_iota(graph, square, 1);
    return cornu_op_convert(cornu_op_compare(column, CORNU_LESS_EQUAL, row), CORNU_F32);
}

/* The bin of each value, in f32. */
static CornuTensor *bins_of(CornuTensor *x, int64_t bins)
{
    const double last = (double)(bins - 1);
    x = cornu_op_divide(cornu_op_scale(x, last), cornu_op_constant_like(x, 255.0));
    return cornu_op_floor(cornu_op_clip(x, 0.0, last));
}

/* The bins of channel c begin at c * bins. */
static CornuTensor *places(CornuTensor *bin, int64_t bins)
{
    CornuTensor *c = cornu_op_iota(cornu_tensor_graph(bin), cornu_tensor_type(bin), 3);
    return cornu_op_convert(cornu_op_add(bin, cornu_op_scale(c, (double)bins)), CORNU_I64);
}

/* 1 for images that count, (B, H, W, C); the last rows of a batch may be padding. */
static CornuTensor *counted(const CornuCall *call, CornuTensor *x)
{
    const CornuShape s = cornu_tensor_shape(x);
    CornuTensor *row = cornu_op_iota(call->graph, cornu_type(CORNU_I64, s.extent[0], 1, 1, 1), 0);
    CornuTensor *valid = cornu_op_convert(cornu__less(row, call->count), CORNU_F32);
    return cornu_op_broadcast(valid, s);
}

/* The new levels, (C, bins), from those of the images: how many are at most as high, scaled. A
 * channel with one level has -1. */
static CornuTensor *table_of(CornuTensor *counts, int64_t bins)
{
    CornuTensor *sums = cornu_op_matmul_transposed(
        counts, false, running_sums(cornu_tensor_graph(counts), bins), true);
    if (!sums) return NULL;
    CornuTensor *none = cornu_op_constant_like(sums, 0.0);
    CornuTensor *total = cornu_op_reduce_max(sums, 1 << 1, true);
    CornuTensor *first = cornu_op_select(cornu__less(none, sums), sums, total);
    first = least(first, 1 << 1);
    CornuTensor *rest = cornu_op_subtract(total, first);
    if (!rest) return NULL;
    CornuTensor *one = cornu_op_constant_like(rest, 1.0);
    CornuTensor *flat = cornu__less(rest, one);
    CornuTensor *y = cornu_op_scale(cornu_op_subtract(sums, first), 255.0);
    y = cornu__round_even(cornu_op_divide(y, cornu_op_select(flat, one, rest)));
    y = cornu_op_clip(y, 0.0, 255.0);
    return y ? cornu_op_select(flat, cornu_op_constant_like(y, -1.0), y) : NULL;
}

CornuTensor *cornu__equalize(const CornuCall *call, CornuTensor *x, int64_t bins,
                             const double range[2])
{
    CornuTensor *y = cornu__map_range(x, range, cornu__bytes);
    if (!y) return NULL;
    const CornuShape s = cornu_tensor_shape(y);
    const int64_t    C = s.extent[3], N = cornu_shape_count(s);
    CornuTensor *place = places(bins_of(y, bins), bins);
    CornuTensor *weight = call->count ? counted(call, y) : cornu_op_constant_like(y, 1.0);
    CornuTensor *counts = cornu_op_segment_sum(cornu_op_reshape(weight, cornu_shape(N, 1)),
                                               cornu_op_reshape(place, cornu_shape(N)), C * bins);
    counts = cornu_op_reshape(counts, cornu_shape(C, bins));
    CornuTensor *table = counts ? table_of(counts, bins) : NULL;
    table = cornu_op_reshape(table, cornu_shape(C * bins, 1));
    /* As Keras: where a level is looked up, it is divided first. */
    CornuTensor *level = cornu_op_scale(cornu_op_divide(y, cornu_op_constant_like(y, 255.0)),
                                        (double)(bins - 1));
    level = cornu_op_floor(cornu_op_clip(level, 0.0, (double)(bins - 1)));
    CornuTensor *found = cornu_op_gather(table, places(level, bins));
    found = cornu_op_reshape(found, s);
    return cornu_op_select(cornu__below(found, 0.0), x,
                           cornu__map_range(found, cornu__bytes, range));
}

typedef CORNU__LAYER(CornuEqualizationConfig) Equalization;

static CornuTensor *equalize(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuEqualizationConfig *config = &((const Equalization *)layer)->config;
    return cornu__equalize(call, x, config->bins, config->value_range);
}

static CornuStatus equalize_resolve(CornuLayer *layer)
{
    CornuEqualizationConfig *config = &((Equalization *)layer)->config;
    config->bins = cornu__integer(config->bins, 256);
    if (config->bins < 1 || config->bins > 65536)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .bins is %lld, expected 1 to 65536",
                           cornu_layer_name(layer), (long long)config->bins);
    return cornu__resolve_value_range(layer, config->value_range);
}

static const CornuField equalize_fields[] = {
    { "bins", CORNU_FIELD_INTEGER, offsetof(CornuEqualizationConfig, bins) },
    { "value_range", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuEqualizationConfig, value_range) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuEqualizationConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__equalization_class = {
    .class_name = "Equalization", .size = sizeof(Equalization),
    CORNU__CHANGES_IMAGES(equalize, false),
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(equalize_fields, Equalization, equalize_resolve),
    },
};

CORNU__CONSTRUCTOR(equalization, CornuEqualizationConfig)
