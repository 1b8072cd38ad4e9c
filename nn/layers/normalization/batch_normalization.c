#include "../../../tensor/functions/functions_internal.h"
#include "../layer_internal.h"

#include <math.h>

typedef struct {
    CornuLayer                    base;
    CornuBatchNormalizationConfig config;
    int axis;                                        /* of the channels, not negative */
    int gamma, beta, moving_mean, moving_variance;   /* indices of the weights, or -1 */
    int moving_stddev, renorm_mean, renorm_stddev;   /* of renorm */
} BatchNormalization;

/* The initializer of a deviation, from that of its variance. */
static CornuStatus root_of(CornuInitializer variance, CornuInitializer *root)
{
    const double value = cornu__number(variance.value, 0.0);
    *root = variance;
    switch (variance.call ? CORNU_DEFAULT_INITIALIZER : variance.kind) {
    case CORNU_ONES_INITIALIZER: case CORNU_ZEROS_INITIALIZER: return CORNU_OK;
    case CORNU_CONSTANT_INITIALIZER:
        if (value > 0.0) root->value = sqrt(value);
        if (value >= 0.0) return CORNU_OK;
        break;
    default: break;
    }
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "with renorm the moving_variance_initializer is "
                       "expected to be zeros, ones or a constant");
}

static CornuStatus declare_renorm(BatchNormalization *self, CornuShape channels)
{
    const CornuBatchNormalizationConfig *config = &self->config;
    CornuInitializer                     root;
    CORNU__TRY(root_of(config->moving_variance_initializer, &root));
    self->moving_stddev = self->base.weight_count;
    self->renorm_mean = self->moving_stddev + 1;
    self->renorm_stddev = self->renorm_mean + 1;
    CORNU__TRY(cornu_layer_weight(&self->base, "moving_stddev", channels, root, true));
    CORNU__TRY(cornu_layer_weight(&self->base, "renorm_mean", channels,
                                  config->moving_mean_initializer, true));
    return cornu_layer_weight(&self->base, "renorm_stddev", channels, root, true);
}

static CornuStatus batch_normalization_build(CornuLayer *layer, CornuShape input)
{
    BatchNormalization *self = (BatchNormalization *)layer;
    const CornuBatchNormalizationConfig *config = &self->config;
    const int64_t axes[CORNU_MAX_RANK] = { config->axis };
    int64_t       bits;
    CORNU__TRY(cornu__axis_bits(axes, input, &bits));
    self->axis = (int)(config->axis < 0 ? config->axis + input.rank : config->axis);
    const CornuShape channels = cornu_shape(input.extent[self->axis]);
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
    CORNU__TRY(cornu_layer_weight(layer, "moving_variance", channels,
                                  config->moving_variance_initializer, true));
    return config->renorm ? declare_renorm(self, channels) : CORNU_OK;
}

/* Weight i; NULL if the layer does not have it. */
static CornuTensor *weight(CornuLayer *layer, const CornuCall *call, int i)
{
    return i >= 0 ? cornu_layer_read(layer, call, i) : NULL;
}

/* Statistics of the batch, and the number of shards that they average: 0 if no shard has a row. */
typedef struct {
    CornuTensor *mean, *variance, *shards;
} Statistics;

/* moving = momentum moving + (1 - momentum) batch; unchanged if the batch has no row. A layer that
 * is called several times moves them once for each call, in order. */
static CornuTensor *moved(CornuLayer *layer, const CornuCall *call, int i, CornuTensor *batch,
                          CornuTensor *shards, double momentum)
{
    CornuTensor *old = cornu_layer_read_assigned(layer, call, i);
    CornuTensor *next = cornu_op_add(cornu_op_scale(old, momentum),
                                     cornu_op_scale(batch, 1.0 - momentum));
    CornuTensor *any = cornu_op_compare(shards, CORNU_GREATER, cornu_op_constant_like(shards, 0.0));
    return cornu_op_select(any, next, old);
}

static CornuStatus move(CornuLayer *layer, const CornuCall *call, int i, CornuTensor *batch,
                        CornuTensor *shards)
{
    const double momentum = ((BatchNormalization *)layer)->config.momentum;
    return cornu_layer_assign(layer, call, i,
                              moved(layer, call, i, batch, shards, momentum));
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

/* Sums over the rows and positions of x (B, …, C) that count: (C). */
static CornuTensor *sum_of(CornuTensor *x, bool together)
{
    if (!x) return NULL;
    x = cornu_op_reduce_sum(x, (INT64_C(1) << (cornu_tensor_shape(x).rank - 1)) - 1, false);
    return together ? cornu_op_all_reduce(x) : x;
}

/* Statistics of the elements where `counts`, bool like x, is true: of each shard's own, or of all
 * shards together. Source: _moments in keras/src/layers/normalization/batch_normalization.py. */
static CornuTensor *normalize_counted(const CornuCall *call, CornuTensor *x, CornuTensor *counts,
                                      CornuTensor *gamma, CornuTensor *beta, double epsilon,
                                      bool together, Statistics *statistics)
{
    if (!x || !counts) return NULL;
    const CornuDtype dtype = cornu_tensor_type(x).dtype;
    x = cornu_op_convert(x, CORNU_F32);
    CornuTensor *zero = cornu_op_constant_like(x, 0.0);
    CornuTensor *n = cornu_op_shift(sum_of(cornu_op_convert(counts, CORNU_F32), together), 1e-7);
    CornuTensor *mean = cornu_op_divide(sum_of(cornu_op_select(counts, x, zero), together), n);
    CornuTensor *centred = cornu_op_subtract(x, mean);
    CornuTensor *squares = cornu_op_square(cornu_op_select(counts, centred, zero));
    CornuTensor *variance = cornu_op_divide(sum_of(squares, together), n);
    CornuTensor *weight = has_rows(call->count), *shards = cornu_op_all_reduce(weight);
    *statistics = together ? (Statistics){ mean, variance, shards }
                           : (Statistics){ mean_over_shards(mean, weight, shards),
                                           mean_over_shards(variance, weight, shards), shards };
    CornuTensor *scale = cornu_op_multiply(cornu_op_rsqrt(cornu_op_shift(variance, epsilon)),
                                           gamma);
    return cornu_op_convert(cornu_op_add(cornu_op_multiply(centred, scale), beta), dtype);
}

/* Whether the mask has all axes of x but the last one. */
static bool mask_fits(CornuShape mask, CornuShape x)
{
    x.extent[--x.rank] = 0;
    return cornu_shape_equal(mask, x);
}

/* Which elements of x (B, …, C) count, by the mask (B, …) and the number of valid rows. */
static CornuTensor *counted(const CornuCall *call, CornuTensor *x)
{
    CornuShape steps = cornu_tensor_shape(x);
    steps.extent[steps.rank - 1] = 1;
    CornuTensor *row = cornu_op_iota(call->graph, cornu_type_from(CORNU_I64, steps), 0);
    CornuTensor *valid = cornu_op_compare(row, CORNU_LESS, call->count);
    CornuTensor *none = valid ? cornu_op_constant_like(valid, 0.0) : NULL;
    return cornu_op_broadcast(cornu_op_select(cornu_op_reshape(call->mask, steps), valid, none),
                              cornu_tensor_shape(x));
}

/* y = (x r + d) gamma + beta for normalized x, and the moving statistics. */
static CornuTensor *renormalize(CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                                CornuTensor *gamma, CornuTensor *beta, const Statistics *batch)
{
    const BatchNormalization *self = (BatchNormalization *)layer;
    const double  epsilon = self->config.epsilon, momentum = self->config.renorm_momentum;
    const double *clipping = self->config.renorm_clipping;
    CornuTensor  *stddev = cornu_op_sqrt(cornu_op_shift(batch->variance, epsilon));
    CornuTensor  *mean = cornu_layer_read_assigned(layer, call, self->renorm_mean);
    CornuTensor  *root = cornu_layer_read_assigned(layer, call, self->renorm_stddev);
    if (!stddev || !root) return NULL;
    root = cornu_op_maximum(root, cornu_op_constant_like(root, sqrt(epsilon)));
    CornuTensor *r = cornu_op_divide(stddev, root);
    CornuTensor *d = cornu_op_divide(cornu_op_subtract(batch->mean, mean), root);
    if (clipping[1] != 0.0)
        r = cornu_op_maximum(r, cornu_op_constant_like(r, cornu__number(clipping[1], 0.0)));
    if (clipping[0] != 0.0)
        r = cornu_op_minimum(r, cornu_op_constant_like(r, cornu__number(clipping[0], 0.0)));
    if (clipping[2] != 0.0) {
        const double most = cornu__number(clipping[2], 0.0);
        d = cornu_op_clip(d, -most, most);
    }
    CornuTensor *new_stddev = moved(layer, call, self->moving_stddev, stddev, batch->shards,
                                    self->config.momentum);
    CornuTensor *new_variance = cornu_op_relu(cornu_op_shift(cornu_op_square(new_stddev),
                                                             -epsilon));
    if (cornu_layer_assign(layer, call, self->renorm_mean,
                           moved(layer, call, self->renorm_mean, batch->mean, batch->shards,
                                 momentum)) ||
        cornu_layer_assign(layer, call, self->renorm_stddev,
                           moved(layer, call, self->renorm_stddev, stddev, batch->shards,
                                 momentum)) ||
        move(layer, call, self->moving_mean, batch->mean, batch->shards) ||
        cornu_layer_assign(layer, call, self->moving_stddev, new_stddev) ||
        cornu_layer_assign(layer, call, self->moving_variance, new_variance))
        return cornu__null();
    const CornuDtype dtype = cornu_tensor_type(x).dtype;
    CornuTensor     *y = cornu_op_multiply(cornu_op_convert(x, CORNU_F32),
                                           cornu_op_multiply(r, gamma));
    y = cornu_op_add(y, cornu_op_add(cornu_op_multiply(d, gamma), beta));
    return cornu_op_convert(y, dtype);
}

/* In training. The channels of x are last; `counts` is NULL where no step is masked, gamma and beta
 * where the layer has none. */
static CornuTensor *train(CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                          CornuTensor *counts, CornuTensor *gamma, CornuTensor *beta)
{
    const BatchNormalization *self = (BatchNormalization *)layer;
    const bool   one = cornu_graph_shards(call->graph) == 1;
    const bool   together = self->config.synchronized && !one, renorm = self->config.renorm;
    const double epsilon = self->config.epsilon;
    Statistics   batch = { 0 };
    const CornuType channels = layer->weights[self->moving_mean]->type;
    if (!gamma) gamma = cornu_op_constant(call->graph, channels, 1.0);
    if (!beta) beta = cornu_op_constant(call->graph, channels, 0.0);
    if (!gamma || !beta) return NULL;
    if (renorm && (counts || together))
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%s: renorm of %s is not available in this "
                                "version", cornu_layer_name(layer),
                                counts ? "an input with a mask" : "synchronized shards");
    CornuTensor *scale = renorm ? cornu_op_constant_like(gamma, 1.0) : gamma;
    CornuTensor *offset = renorm ? cornu_op_constant_like(beta, 0.0) : beta;
    CornuTensor *y = counts ? normalize_counted(call, x, counts, scale, offset, epsilon, together,
                                                &batch)
                   : (together ? normalize_together : normalize_apart)(call, x, scale, offset,
                                                                       epsilon, &batch);
    if (renorm) return y ? renormalize(layer, call, y, gamma, beta, &batch) : NULL;
    if (!y || move(layer, call, self->moving_mean, batch.mean, batch.shards) ||
        move(layer, call, self->moving_variance, batch.variance, batch.shards))
        return cornu__null();
    return y;
}

static CornuTensor *batch_normalization_call(CornuLayer *layer, const CornuCall *call,
                                             CornuTensor *x)
{
    const BatchNormalization *self = (BatchNormalization *)layer;
    CornuTensor *gamma = weight(layer, call, self->gamma);
    CornuTensor *beta = weight(layer, call, self->beta);
    if (!x || cornu_error_pending()) return NULL;
    const int    last = cornu_tensor_shape(x).rank - 1;
    const bool   trains = cornu__in_training(call) && !layer->frozen;
    CornuTensor *counts = NULL;
    CornuText    a, b;
    if (trains && call->mask &&
        !mask_fits(cornu_tensor_shape(call->mask), cornu_tensor_shape(x)))
        return cornu__fail_null(CORNU_ERR_SHAPE, "%s: its input is %s and the mask %s, expected "
                                "all axes of the input but the last one", cornu_layer_name(layer),
                                cornu_shape_print(&a, cornu_tensor_shape(x)),
                                cornu_shape_print(&b, cornu_tensor_shape(call->mask)));
    if (trains && call->mask)
        counts = cornu__move_axis(counted(call, x), self->axis, last);
    x = cornu__move_axis(x, self->axis, last);
    if (trains)
        return cornu__move_axis(train(layer, call, x, counts, gamma, beta), last, self->axis);
    CornuTensor *mean = cornu_layer_read(layer, call, self->moving_mean);   /* in f32, as all */
    CornuTensor *variance = cornu_layer_read(layer, call, self->moving_variance);
    CornuTensor *y = cornu__batch_norm(x, mean, variance, gamma, beta, self->config.epsilon);
    y = cornu_op_convert(y, layer->compute);
    return cornu__move_axis(y, last, self->axis);
}

static CornuStatus batch_normalization_resolve(CornuLayer *layer)
{
    CornuBatchNormalizationConfig *config = &((BatchNormalization *)layer)->config;
    config->axis = cornu__integer(config->axis, -1);
    config->renorm_momentum = cornu__number(config->renorm_momentum, 0.99);
    config->momentum = cornu__number(config->momentum, 0.99);
    if (!(config->momentum >= 0.0 && config->momentum <= 1.0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .momentum is %g, expected 0 to 1",
                           cornu_layer_name(layer), config->momentum);
    return cornu__resolve_epsilon(layer, &config->epsilon, 0.001);
}

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
    { "renorm", CORNU_FIELD_FLAG, FIELD(renorm) },
    { "renorm_clipping", CORNU_FIELD_CLIPPING, FIELD(renorm_clipping) },
    { "renorm_momentum", CORNU_FIELD_NUMBER, FIELD(renorm_momentum) },
    { 0 },
};

const CornuLayerClass cornu__batch_normalization_class = {
    .class_name = "BatchNormalization", .size = sizeof(BatchNormalization),
    .build = batch_normalization_build, .call = batch_normalization_call, .normalizes = true,
    .keras = &(const CornuKerasClass){ CORNU__TRAINED(fields, BatchNormalization,
                                                      batch_normalization_resolve) },
};

CORNU__CONSTRUCTOR(batch_normalization, CornuBatchNormalizationConfig)
