#include "../layer_internal.h"

typedef struct {
    CornuLayer                    base;
    CornuBatchNormalizationConfig config;
    int gamma, beta, moving_mean, moving_variance;   /* indices of the weights, or -1 */
} BatchNormalization;

static CornuStatus build(CornuLayer *layer, CornuShape input)
{
    BatchNormalization *self = (BatchNormalization *)layer;
    const CornuBatchNormalizationConfig *config = &self->config;
    CornuText text;
    if (input.rank < 2)
        return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected (B, …, C)",
                           cornu_shape_print(&text, input));
    const CornuShape channels = cornu_shape(input.extent[input.rank - 1]);
    int next = 0;
    self->gamma = config->no_scale ? -1 : next++;
    self->beta = config->no_center ? -1 : next++;
    self->moving_mean = next++;
    self->moving_variance = next;
    if (!config->no_scale) {
        CORNU__TRY(cornu_layer_weight(layer, "gamma", channels, config->gamma_initializer, false));
        CORNU__TRY(cornu_layer_weight_rules(layer, config->gamma_regularizer,
                                            config->gamma_constraint));
    }
    if (!config->no_center) {
        CORNU__TRY(cornu_layer_weight(layer, "beta", channels, config->beta_initializer, false));
        CORNU__TRY(cornu_layer_weight_rules(layer, config->beta_regularizer,
                                            config->beta_constraint));
    }
    CORNU__TRY(cornu_layer_weight(layer, "moving_mean", channels,
                                  config->moving_mean_initializer, true));
    return cornu_layer_weight(layer, "moving_variance", channels,
                              config->moving_variance_initializer, true);
}

/* Weight i, or a constant if the layer does not have it. */
static CornuTensor *weight(CornuLayer *layer, const CornuCall *call, int i, double instead)
{
    if (i >= 0) return cornu_layer_read(layer, call, i);
    const BatchNormalization *self = (BatchNormalization *)layer;
    return cornu_op_constant(call->graph, layer->weights[self->moving_mean]->type, instead);
}

/* Statistics of the batch, and the number of shards that they average: 0 if no shard has a row. */
typedef struct {
    CornuTensor *mean, *variance, *shards;
} Statistics;

/* moving = momentum moving + (1 - momentum) batch; unchanged if the batch has no row. */
static CornuStatus move(CornuLayer *layer, const CornuCall *call, int i, CornuTensor *batch,
                        CornuTensor *shards)
{
    const double momentum = ((BatchNormalization *)layer)->config.momentum;
    CornuTensor *old = cornu_layer_read(layer, call, i);
    CornuTensor *moved = cornu_op_add(cornu_op_scale(old, momentum),
                                      cornu_op_scale(batch, 1.0 - momentum));
    CornuTensor *any = cornu_op_compare(shards, CORNU_GREATER, cornu_op_constant_like(shards, 0.0));
    return cornu_layer_assign(layer, call, i, cornu_op_select(any, moved, old));
}

/* 1 for a count above 0, else 0. */
static CornuTensor *has_rows(CornuTensor *count)
{
    CornuTensor *none = cornu_op_constant_like(count, 0.0);
    return cornu_op_convert(cornu_op_compare(count, CORNU_GREATER, none), CORNU_F32);
}

static CornuTensor *mean_over_shards(CornuTensor *own, CornuTensor *weight, CornuTensor *shards)
{
    return cornu_op_divide(cornu_op_all_reduce(cornu_op_multiply(own, weight)), shards);
}

/* Statistics of each shard's own rows. */
static CornuTensor *normalize_apart(const CornuCall *call, CornuTensor *x, CornuTensor *gamma,
                                    CornuTensor *beta, double epsilon, Statistics *statistics)
{
    CornuTensor *mean, *variance;
    CornuTensor *y = cornu_op_batch_norm(x, gamma, beta, call->count, epsilon, &mean, &variance);
    if (!y) return NULL;
    CornuTensor *weight = has_rows(call->count), *shards = cornu_op_all_reduce(weight);
    *statistics = (Statistics){ mean_over_shards(mean, weight, shards),
                                mean_over_shards(variance, weight, shards), shards };
    return y;
}

/* Statistics of the whole batch: one sum over the shards of each channel's x and x^2. */
static CornuTensor *normalize_together(const CornuCall *call, CornuTensor *x, CornuTensor *gamma,
                                       CornuTensor *beta, double epsilon, Statistics *statistics)
{
    const CornuShape shape = cornu_tensor_shape(x);
    const int64_t    last = shape.rank - 1, channels = shape.extent[last], axes = (1 << last) - 1;
    const CornuDtype dtype = cornu_tensor_type(x).dtype;
    CornuShape       rows = { .rank = shape.rank, .extent = { shape.extent[0], 1, 1, 1, 1, 1 } };
    double           positions = 1.0;
    for (int i = 1; i < last; i++) positions *= (double)shape.extent[i];

    x = cornu_op_convert(x, CORNU_F32);
    CornuTensor *row = cornu_op_iota(call->graph, cornu_type_from(CORNU_I64, rows), 0);
    CornuTensor *valid = cornu_op_compare(row, CORNU_LESS, call->count);
    CornuTensor *kept = cornu_op_select(valid, x, cornu_op_constant_like(x, 0.0));
    CornuTensor *own[2] = { cornu_op_reduce_sum(kept, axes, false),
                            cornu_op_reduce_sum(cornu_op_square(kept), axes, false) };
    CornuTensor *sums = cornu_op_all_reduce(cornu_op_concat(own, 2, 0));
    CornuTensor *count = cornu_op_convert(cornu_op_all_reduce(call->count), CORNU_F32);
    CornuTensor *n = cornu_op_scale(cornu_op_maximum(count, cornu_op_constant_like(count, 1.0)),
                                    positions);
    if (!n) return NULL;
    const int64_t first = 0;
    CornuTensor *mean = cornu_op_divide(cornu_op_slice(sums, &first, &channels), n);
    CornuTensor *squares = cornu_op_divide(cornu_op_slice(sums, &channels, &channels), n);
    CornuTensor *variance = cornu_op_subtract(squares, cornu_op_square(mean));
    variance = cornu_op_maximum(variance, cornu_op_constant_like(variance, 0.0));
    *statistics = (Statistics){ mean, variance, has_rows(cornu_op_all_reduce(call->count)) };

    CornuTensor *inverse = cornu_op_rsqrt(cornu_op_shift(variance, epsilon));
    CornuTensor *scale = cornu_op_multiply(inverse, gamma);
    CornuTensor *scaled = cornu_op_multiply(cornu_op_subtract(x, mean), scale);
    return cornu_op_convert(cornu_op_add(scaled, beta), dtype);
}

static CornuTensor *call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const BatchNormalization *self = (BatchNormalization *)layer;
    CornuTensor *gamma = weight(layer, call, self->gamma, 1.0);
    CornuTensor *beta = weight(layer, call, self->beta, 0.0);
    if (call->training && !layer->frozen && call->mask)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%s: its input has a mask, and statistics "
                                "of masked inputs are not available in this version",
                                cornu_layer_name(layer));
    if (call->training && !layer->frozen) {
        const bool   one = cornu_device_shards(cornu_graph_device(call->graph)) == 1;
        Statistics   batch = { 0 };
        CornuTensor *y = (self->config.synchronized && !one ? normalize_together : normalize_apart)(
            call, x, gamma, beta, self->config.epsilon, &batch);
        if (!y || move(layer, call, self->moving_mean, batch.mean, batch.shards) ||
            move(layer, call, self->moving_variance, batch.variance, batch.shards))
            return cornu__null();
        return y;
    }
    /* y = x scale + shift, in f32 whatever the dtype of x */
    CornuTensor *mean = cornu_layer_read(layer, call, self->moving_mean);
    CornuTensor *variance = cornu_layer_read(layer, call, self->moving_variance);
    CornuTensor *inverse = cornu_op_rsqrt(cornu_op_shift(variance, self->config.epsilon));
    CornuTensor *scale = cornu_op_multiply(inverse, gamma);
    CornuTensor *shift = cornu_op_subtract(beta, cornu_op_multiply(mean, scale));
    CornuTensor *scaled = cornu_op_multiply(cornu_op_convert(x, CORNU_F32), scale);
    return cornu_op_convert(cornu_op_add(scaled, shift), layer->compute);
}

static CornuLayer *from(const void *config) { return cornu_batch_normalization_from(config); }

#define FIELD(field) offsetof(CornuBatchNormalizationConfig, field)
static const CornuField fields[] = {
    { "axis", CORNU_FIELD_INTEGER, FIELD(axis) },
    { "momentum", CORNU_FIELD_NUMBER, FIELD(momentum) },
    { "epsilon", CORNU_FIELD_NUMBER, FIELD(epsilon) },
    { "center", CORNU_FIELD_NOT, FIELD(no_center) },
    { "scale", CORNU_FIELD_NOT, FIELD(no_scale) },
    { "synchronized", CORNU_FIELD_FLAG, FIELD(synchronized) },
    { "beta_initializer", CORNU_FIELD_INITIALIZER, FIELD(beta_initializer) },
    { "gamma_initializer", CORNU_FIELD_INITIALIZER, FIELD(gamma_initializer) },
    { "moving_mean_initializer", CORNU_FIELD_INITIALIZER, FIELD(moving_mean_initializer) },
    { "moving_variance_initializer", CORNU_FIELD_INITIALIZER,
      FIELD(moving_variance_initializer) },
    CORNU__SCALE_FIELDS(CornuBatchNormalizationConfig),
    { 0 },
};

const CornuLayerClass cornu__batch_normalization_class = {
    .class_name = "BatchNormalization", .size = sizeof(BatchNormalization), .build = build,
    .call = call, .fields = fields, .config_size = sizeof(CornuBatchNormalizationConfig),
    .config_offset = offsetof(BatchNormalization, config), .from = from,
    .normalizes = true,
};

static CornuStatus check(const CornuBatchNormalizationConfig *config, const char *name)
{
    const CornuInitializer initializers[] = {
        config->beta_initializer, config->gamma_initializer, config->moving_mean_initializer,
        config->moving_variance_initializer,
    };
    const double momentum = cornu__number(config->momentum, 0.99);
    const double epsilon = cornu__number(config->epsilon, 0.001);
    if (config->axis != 0 && config->axis != -1)
        return cornu__fail(CORNU_ERR_UNSUPPORTED,
                           "%s: .axis is %lld; only -1 is available in this version", name,
                           (long long)config->axis);
    if (!(momentum >= 0.0 && momentum <= 1.0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .momentum is %g, expected 0 to 1", name,
                           momentum);
    CORNU__TRY(cornu__check_epsilon(name, epsilon));
    return cornu__check_enums(name, CORNU_LINEAR, initializers, 4);
}

CornuLayer *cornu_batch_normalization_from(const CornuBatchNormalizationConfig *config)
{
    if (check(config, config->name ? config->name : "batch_normalization"))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__batch_normalization_class, config->name,
                                           config->dtype);
    if (!layer) return NULL;
    CornuBatchNormalizationConfig *to = &((BatchNormalization *)layer)->config;
    *to = *config;
    to->name = to->dtype = NULL;
    to->axis = -1;
    to->momentum = cornu__number(config->momentum, 0.99);
    to->epsilon = cornu__number(config->epsilon, 0.001);
    to->beta_initializer = cornu__initializer(config->beta_initializer, CORNU_ZEROS);
    to->gamma_initializer = cornu__initializer(config->gamma_initializer, CORNU_ONES);
    to->moving_mean_initializer =
        cornu__initializer(config->moving_mean_initializer, CORNU_ZEROS);
    to->moving_variance_initializer =
        cornu__initializer(config->moving_variance_initializer, CORNU_ONES);
    layer->frozen = config->frozen;
    return layer;
}
