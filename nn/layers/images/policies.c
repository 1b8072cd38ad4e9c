/* RandAugment and AugMix, made of other augmentations; MaxNumBoundingBoxes. */
#include "moves_internal.h"

#include <math.h>

/* ---- The augmentations they choose from ---- */

typedef struct {
    const double *factor, *range;
    CornuSampling sampling;
} Choice;

/* In Keras' order, which does not matter; the first COLORLESS leave
 * colors but for levels as they are. */
enum { COLORLESS = 7, ALL = 11, MOST_DRAWS = 3 };

static CornuTensor *augmented(const CornuCall *call, const Choice *choice, int which,
                              CornuTensor *x, CornuDraws *draws)
{
    const double  *f = choice->factor, *range = choice->range;
    const int64_t  most = (int64_t)(8.0 * cornu__end(f, 1)), bits = most < 1 ? 1 : most;
    CornuTensor   *y = NULL;
    const int64_t  next = draws->next + MOST_DRAWS;
    switch (which) {
    case 0:  y = cornu__shear(x, draws, f, f, &choice->sampling); break;
    case 1:  y = cornu__translate(x, draws, f, f, &choice->sampling); break;
    case 2:  y = cornu__rotate(x, draws, f, &choice->sampling); break;
    case 3:  y = cornu__posterize(x, draws, (const int64_t[]){ 1, bits }, range); break;
    case 4:  y = cornu__solarize(x, draws, f, f, range); break;
    case 5:  y = cornu__spread_levels(x, range); break;
    case 6:  y = cornu__equalize(call, x, 256, range); break;
    case 7:  y = cornu__change_brightness(x, draws, f, range); break;
    case 8:  y = cornu__degenerate(x, draws, f, range); break;
    case 9:  y = cornu__change_contrast(x, draws, f, range); break;
    default: y = cornu__sharpen(x, draws, f, range); break;
    }
    draws->next = next;
    return y;
}

/* The augmentation of this number, in f32, that all images share; x itself for other numbers. */
static CornuTensor *chosen(const CornuCall *call, const Choice *choice, int count,
                           CornuTensor *number, CornuTensor *x, CornuDraws *draws)
{
    CornuTensor *y = x;
    if (!number) return NULL;
    for (int i = 0; i < count && y; i++) {
        CornuTensor *it = cornu_op_compare(number, CORNU_EQUAL,
                                           cornu_op_constant_like(number, (double)i));
        y = cornu_op_select(it, augmented(call, choice, i, x, draws), y);
    }
    return y;
}

/* A whole number below `count`. */
static CornuTensor *drawn(CornuDraws *shared, int count)
{
    return cornu_op_floor(cornu_op_scale(cornu__draw(shared), (double)count));
}

static CornuStatus check_count(const CornuLayer *layer, const char *argument, int64_t *count,
                               int64_t usual)
{
    *count = cornu__integer(*count, usual);
    if (*count >= 1 && *count <= 64) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %lld, expected 1 to 64",
                       cornu_layer_name(layer), argument, (long long)*count);
}

/* ---- RandAugment ---- */

typedef CORNU__LAYER(CornuRandAugmentConfig) RandAugment;   /* with resolved ranges */

static CornuTensor *rand_augment(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuRandAugmentConfig *c = &((const RandAugment *)layer)->config;
    const Choice choice = { c->factor, c->value_range,
                            { CORNU_FILL_REFLECT, c->interpolation, 0.0 } };
    CornuDraws   shared = cornu__shared_draws(layer, call, c->num_ops);
    CornuDraws   draws = cornu__draws(layer, call, x, c->num_ops * ALL * MOST_DRAWS);
    for (int64_t i = 0; i < c->num_ops; i++)
        x = chosen(call, &choice, ALL, drawn(&shared, ALL), x, &draws);
    return x;
}

static CornuStatus rand_augment_resolve(CornuLayer *layer)
{
    CornuRandAugmentConfig *config = &((RandAugment *)layer)->config;
    CORNU__TRY(cornu__resolve_value_range(layer, config->value_range));
    CORNU__TRY(check_count(layer, "num_ops", &config->num_ops, 2));
    CORNU__TRY(cornu__resolve_factor(layer, "factor", &config->most, config->factor, 0.5, 0.0,
                                     1.0));
    return cornu__check_interpolation(cornu_layer_name(layer), &config->interpolation,
                                      CORNU_BILINEAR, CORNU_BILINEAR);
}

static const CornuField rand_augment_fields[] = {
    { "value_range", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuRandAugmentConfig, value_range) },
    { "num_ops", CORNU_FIELD_INTEGER, offsetof(CornuRandAugmentConfig, num_ops) },
    { "factor", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuRandAugmentConfig, factor) },
    { "interpolation", CORNU_FIELD_INTERPOLATION,
      offsetof(CornuRandAugmentConfig, interpolation) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuRandAugmentConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__rand_augment_class = {
    .class_name = "RandAugment", .size = sizeof(RandAugment),
    CORNU__CHANGES_IMAGES(rand_augment, false),
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(rand_augment_fields, RandAugment, rand_augment_resolve),
    },
};

CORNU__CONSTRUCTOR(rand_augment, CornuRandAugmentConfig)

/* ---- AugMix ---- */

typedef CORNU__LAYER(CornuAugMixConfig) AugMix;   /* with resolved ranges */

/* The weights of the chains are of a Dirichlet distribution: parts of a sum of gammas. */
static CornuTensor *aug_mix(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuAugMixConfig *c = &((const AugMix *)layer)->config;
    const Choice choice = { c->factor, c->value_range,
                            { CORNU_FILL_REFLECT, c->interpolation, 0.0 } };
    const int    count = c->not_all_ops ? COLORLESS : ALL;
    CornuDraws   shared = cornu__shared_draws(
        layer, call, c->num_chains * (c->chain_depth + CORNU_GAMMA_DRAWS) + 2 * CORNU_GAMMA_DRAWS);
    CornuDraws   draws = cornu__draws(layer, call, x,
                                      c->num_chains * c->chain_depth * count * MOST_DRAWS);
    CornuTensor *alpha = cornu_op_constant(call->graph, cornu_type(CORNU_F32, 1, 1, 1, 1),
                                           c->alpha);
    CornuTensor *sum = NULL, *total = NULL;
    for (int64_t i = 0; i < c->num_chains; i++) {
        CornuTensor *y = x;
        for (int64_t k = 0; k < c->chain_depth; k++)
            y = chosen(call, &choice, count, drawn(&shared, count + 1), y, &draws);
        CornuTensor *weight = cornu_op_exp(cornu__draw_log_gamma(&shared, alpha));
        y = cornu_op_multiply(y, weight);
        sum = sum ? cornu_op_add(sum, y) : y;
        total = total ? cornu_op_add(total, weight) : weight;
    }
    if (!total) return NULL;
    total = cornu_op_maximum(total, cornu_op_constant_like(total, 1e-30));
    CornuTensor *a = cornu__draw_log_gamma(&shared, alpha);
    CornuTensor *part = cornu_op_sigmoid(cornu_op_subtract(a, cornu__draw_log_gamma(&shared,
                                                                                    alpha)));
    CornuTensor *mean = cornu_op_divide(sum, total);
    x = cornu_op_add(mean, cornu_op_multiply(part, cornu_op_subtract(x, mean)));
    return cornu__clip_to(x, c->value_range);
}

static CornuStatus aug_mix_resolve(CornuLayer *layer)
{
    CornuAugMixConfig *config = &((AugMix *)layer)->config;
    config->alpha = cornu__number(config->alpha, 1.0);
    if (!(config->alpha > 0.0 && config->alpha < INFINITY))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .alpha is %g, expected above 0",
                           cornu_layer_name(layer), config->alpha);
    CORNU__TRY(cornu__resolve_value_range(layer, config->value_range));
    CORNU__TRY(check_count(layer, "num_chains", &config->num_chains, 3));
    CORNU__TRY(check_count(layer, "chain_depth", &config->chain_depth, 3));
    CORNU__TRY(cornu__resolve_factor(layer, "factor", &config->most, config->factor, 0.3, 0.0,
                                     1.0));
    return cornu__check_interpolation(cornu_layer_name(layer), &config->interpolation,
                                      CORNU_BILINEAR, CORNU_BILINEAR);
}

static const CornuField aug_mix_fields[] = {
    { "value_range", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuAugMixConfig, value_range) },
    { "num_chains", CORNU_FIELD_INTEGER, offsetof(CornuAugMixConfig, num_chains) },
    { "chain_depth", CORNU_FIELD_INTEGER, offsetof(CornuAugMixConfig, chain_depth) },
    { "factor", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuAugMixConfig, factor) },
    { "alpha", CORNU_FIELD_NUMBER, offsetof(CornuAugMixConfig, alpha) },
    { "all_ops", CORNU_FIELD_NOT, offsetof(CornuAugMixConfig, not_all_ops) },
    { "interpolation", CORNU_FIELD_INTERPOLATION, offsetof(CornuAugMixConfig, interpolation) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuAugMixConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__aug_mix_class = {
    .class_name = "AugMix", .size = sizeof(AugMix), CORNU__CHANGES_IMAGES(aug_mix, false),
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(aug_mix_fields, AugMix, aug_mix_resolve) },
};

CORNU__CONSTRUCTOR(aug_mix, CornuAugMixConfig)

/* ---- MaxNumBoundingBoxes ---- */

typedef CORNU__LAYER(CornuMaxNumBoundingBoxesConfig) MaxNumBoundingBoxes;

static CornuTensor *boxes_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)layer, (void)call;
    return x;
}

static CornuStatus boxes_resolve(CornuLayer *layer)
{
    return cornu__positive(cornu_layer_name(layer), "max_number",
                           ((MaxNumBoundingBoxes *)layer)->config.max_number);
}

static const CornuField boxes_fields[] = {
    { "max_number", CORNU_FIELD_INTEGER, offsetof(CornuMaxNumBoundingBoxesConfig, max_number) },
    { "data_format", CORNU_FIELD_DATA_FORMAT,
      offsetof(CornuMaxNumBoundingBoxesConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__max_num_bounding_boxes_class = {
    .class_name = "MaxNumBoundingBoxes", .size = sizeof(MaxNumBoundingBoxes),
    .build = cornu__build_images, .call = boxes_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(boxes_fields, MaxNumBoundingBoxes, boxes_resolve),
    },
};

CORNU__CONSTRUCTOR(max_num_bounding_boxes, CornuMaxNumBoundingBoxesConfig)
