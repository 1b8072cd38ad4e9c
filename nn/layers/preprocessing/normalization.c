/* Normalization: by the mean and variance of a data set. */
#include "adapt_internal.h"

#include <math.h>
#include <string.h>

#include "../../../datasets/pipeline/iterator.h"

typedef struct {
    CornuLayer               base;
    CornuNormalizationConfig config;     /* with axes set */
    int64_t                  axes;       /* as a bit mask, once built */
    CornuShape               shape;      /* of `adapted`, unless that is NULL */
    float                   *adapted;    /* means, then variances, until the weights exist */
} Normalization;

enum { MEAN, VARIANCE, COUNT };

static bool is_given(const Normalization *self)
{
    return self->config.variance != 0.0 || self->config.variances.values;
}

/* Without axes there is a single mean and variance. */
static CornuStatus axes_of(const Normalization *self, CornuShape input, int64_t *bits)
{
    *bits = 0;
    if (self->config.axes[0] == CORNU_ZERO) return CORNU_OK;
    return cornu__axis_bits(self->config.axes, input, bits);
}

/* ---- The layer ---- */

static CornuStatus write(CornuLayer *layer, float *means, CornuShape shape)
{
    const CornuType type = layer->weights[MEAN]->type;
    CornuText       a, b;
    if (!cornu_shape_equal(type.shape, shape))
        return cornu__fail(CORNU_ERR_SHAPE, "the statistics of the data are %s, expected %s as for "
                           "the input", cornu_shape_print(&a, shape),
                           cornu_shape_print(&b, type.shape));
    float *variances = means + cornu_type_count(type);
    CORNU__TRY(cornu_weight_write(layer->weights[MEAN], cornu_array_from(means, type)));
    return cornu_weight_write(layer->weights[VARIANCE], cornu_array_from(variances, type));
}

CornuStatus cornu__spread_numbers(const CornuNumbers *numbers, CornuShape input, int64_t axes,
                                  CornuShape *shape)
{
    CornuText a, b;
    int       left = numbers->shape.rank;
    *shape = (CornuShape){ .rank = input.rank };
    for (int i = input.rank - 1; i >= 0; i--) {
        shape->extent[i] = axes >> i & 1 && left > 0 ? numbers->shape.extent[--left] : 1;
        if (shape->extent[i] != 1 && shape->extent[i] != input.extent[i]) left = input.rank;
    }
    if (left == 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "the given means and variances are %s, which cannot be "
                       "broadcast along the layer's axes of the input %s",
                       cornu_shape_print(&a, numbers->shape), cornu_shape_print(&b, input));
}

static CornuStatus normalization_build(CornuLayer *layer, CornuShape input)
{
    Normalization *self = (Normalization *)layer;
    CORNU__TRY(axes_of(self, input, &self->axes));
    if (self->config.variances.values)
        return cornu__spread_numbers(&self->config.variances, input, self->axes,
                                     &(CornuShape){ 0 });
    if (is_given(self)) return CORNU_OK;
    const CornuShape shape = cornu__along(input, self->axes, false);
    CORNU__TRY(cornu_layer_weight(layer, "mean", shape, CORNU_ZEROS, true));
    CORNU__TRY(cornu_layer_weight(layer, "variance", shape, CORNU_ONES, true));
    CORNU__TRY(cornu_layer_weight(layer, "count", (CornuShape){ 0 }, CORNU_ZEROS, true));
    return self->adapted ? write(layer, self->adapted, self->shape) : CORNU_OK;
}

/* A weight, or the number given instead, broadcastable to the input. */
static CornuTensor *statistic(CornuLayer *layer, const CornuCall *call, int i, double given,
                              const CornuNumbers *numbers, CornuTensor *x)
{
    const Normalization *self = (Normalization *)layer;
    const CornuShape     kept = cornu__along(cornu_tensor_shape(x), self->axes, true);
    CornuShape           shape;
    if (numbers->values)
        return cornu__spread_numbers(numbers, cornu_tensor_shape(x), self->axes, &shape)
                   ? cornu__null() : cornu__numbers_tensor(call, numbers, shape);
    if (is_given(self))
        return cornu_op_constant(call->graph, cornu_type_from(CORNU_F32, kept),
                                 cornu__number(given, 0.0));
    return cornu_op_reshape(cornu_layer_read_as(layer, call, i, CORNU_F32), kept);
}

static CornuTensor *normalization_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuNormalizationConfig *config = &((Normalization *)layer)->config;
    if (!x) return NULL;
    CornuTensor *mean = statistic(layer, call, MEAN, config->mean, &config->means, x);
    CornuTensor *root = cornu_op_sqrt(statistic(layer, call, VARIANCE, config->variance,
                                                &config->variances, x));
    CornuTensor *least = root ? cornu_op_constant_like(root, 1e-7) : NULL;
    CornuTensor *deviation = cornu_op_maximum(root, least);
    x = cornu_op_convert(x, CORNU_F32);
    CornuTensor *y = config->invert
        ? cornu_op_add(cornu_op_multiply(x, deviation), mean)
        : cornu_op_divide(cornu_op_subtract(x, mean), deviation);
    return cornu_op_convert(y, layer->result);
}

static void free_adapted(CornuLayer *layer)
{
    cornu__release(((Normalization *)layer)->adapted);
}

static CornuStatus normalization_resolve(CornuLayer *layer)
{
    CornuNormalizationConfig *config = &((Normalization *)layer)->config;
    const char   *name = cornu_layer_name(layer);
    const double  variance = cornu__number(config->variance, 0.0);
    CornuNumbers *means = &config->means, *variances = &config->variances;
    if ((config->mean == 0.0) != (config->variance == 0.0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is given without .%s, expected both or "
                           "none", name, config->mean == 0.0 ? "variance" : "mean",
                           config->mean == 0.0 ? "mean" : "variance");
    if (!isfinite(config->mean) || !isfinite(variance) || variance < 0.0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .mean and .variance are %g and %g, expected "
                           "finite ones, the variance 0 or more", name,
                           cornu__number(config->mean, 0.0), variance);
    if (!means->values != !variances->values ||
        (means->values &&
         (config->mean != 0.0 || !cornu_shape_equal(means->shape, variances->shape))))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .means and .variances are not both given, in "
                           "one shape and without .mean", name);
    CORNU__TRY(cornu__check_numbers(name, "means", means));
    CORNU__TRY(cornu__check_numbers(name, "variances", variances));
    CORNU__TRY(cornu__axes(name, &config->axis, config->axes));
    CORNU__TRY(cornu__layer_copy_numbers(layer, means));
    return cornu__layer_copy_numbers(layer, variances);
}

static const CornuField fields[] = {
    { "axis", CORNU_FIELD_ROW_AXES, offsetof(CornuNormalizationConfig, axes) },
    { "mean", CORNU_FIELD_NUMBER_OR_NONE, offsetof(CornuNormalizationConfig, mean) },
    { "mean", CORNU_FIELD_NUMBERS, offsetof(CornuNormalizationConfig, means) },
    { "variance", CORNU_FIELD_NUMBER_OR_NONE, offsetof(CornuNormalizationConfig, variance) },
    { "variance", CORNU_FIELD_NUMBERS, offsetof(CornuNormalizationConfig, variances) },
    { "invert", CORNU_FIELD_FLAG, offsetof(CornuNormalizationConfig, invert) },
    { 0 },
};

const CornuLayerClass cornu__normalization_class = {
    .class_name = "Normalization", .size = sizeof(Normalization), .build = normalization_build,
    .call = normalization_call, .free = free_adapted,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, Normalization,
                                                     normalization_resolve) },
};

CORNU__CONSTRUCTOR(normalization, CornuNormalizationConfig)

/* ---- Statistics of data ---- */

/* The mean and the sum of squared differences from it, for each position along the axes.
 * Source: Welford, "Note on a Method for Calculating Corrected Sums of Squares and Products",
 * Technometrics 4(3), 1962. */
typedef struct {
    CornuShape shape;        /* of the positions */
    int64_t    positions, row;   /* elements of a row */
    int64_t   *place;        /* the position that element i of a row belongs to */
    double    *count, *mean, *squares;
} Moments;

static void moments_free(Moments *m)
{
    cornu__release(m->place);
    cornu__release(m->count);
}

static CornuStatus moments_begin(Moments *m, const Normalization *self, CornuShape row)
{
    CornuShape input = { .rank = row.rank + 1, .extent = { CORNU_NONE } };
    int64_t    bits;
    *m = (Moments){ 0 };
    if (row.rank == CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_SHAPE, "the data's rows have %d axes, expected at most %d",
                           row.rank, CORNU_MAX_RANK - 1);
    for (int i = 0; i < row.rank; i++) input.extent[i + 1] = row.extent[i];
    CORNU__TRY(axes_of(self, input, &bits));
    m->shape = cornu__along(input, bits, false);
    m->positions = cornu_shape_count(m->shape);
    m->row = cornu_shape_count(row);
    m->place = cornu__allocate((size_t)m->row, sizeof *m->place);
    m->count = cornu__allocate(3 * (size_t)m->positions, sizeof *m->count);
    if (!m->place || !m->count) return CORNU_ERR_MEMORY;
    m->mean = m->count + m->positions;
    m->squares = m->mean + m->positions;
    for (int64_t i = 0; i < m->row; i++) {
        int64_t rest = i, stride = 1;
        for (int k = input.rank - 1; k > 0; k--) {
            if (bits >> k & 1) {
                m->place[i] += rest % input.extent[k] * stride;
                stride *= input.extent[k];
            }
            rest /= input.extent[k];
        }
    }
    return CORNU_OK;
}

static void moments_add(Moments *m, CornuArray rows, int64_t count)
{
    for (int64_t i = 0; i < count * m->row; i++) {
        const int64_t at = m->place[i % m->row];
        const double  x = cornu_array_get(rows, i), apart = x - m->mean[at];
        m->mean[at] += apart / ++m->count[at];
        m->squares[at] += apart * (x - m->mean[at]);
    }
}

static CornuStatus add_array(Moments *m, const Normalization *self, CornuArray x)
{
    CornuShape row = { .rank = x.type.shape.rank - 1 };
    if (row.rank < 0)
        return cornu__fail(CORNU_ERR_SHAPE, "the data are a scalar, expected rows");
    for (int i = 0; i < row.rank; i++) row.extent[i] = x.type.shape.extent[i + 1];
    CORNU__TRY(moments_begin(m, self, row));
    moments_add(m, x, x.type.shape.extent[0]);
    return CORNU_OK;
}

static CornuStatus add_dataset(Moments *m, const Normalization *self, CornuDataset *data)
{
    const CornuBatch *batch;
    if (cornu_dataset_count(data) == CORNU_NONE)
        return cornu__fail(CORNU_ERR_ARGUMENT, "the data set is infinite, expected a finite one");
    CORNU__TRY(moments_begin(m, self, cornu_dataset_type(data, 0).shape));
    CornuIterator *iterator = cornu_iterator_begin(data, 0);
    if (!iterator) return cornu_error_take();
    CornuStatus status;
    while (!(status = cornu_iterator_next(iterator, &batch)) && batch)
        moments_add(m, batch->arrays[0], batch->valid);
    cornu_iterator_free(iterator);
    return status;
}

/* Writes the weights, or keeps the values until they exist. */
static CornuStatus keep(CornuLayer *layer, const Moments *m)
{
    Normalization *self = (Normalization *)layer;
    if (m->positions == 0 || m->count[0] == 0.0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "the data have no rows");
    float *to = cornu__allocate(2 * (size_t)m->positions, sizeof *to);
    if (!to) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < m->positions; i++) {
        to[i] = (float)m->mean[i];
        to[m->positions + i] = (float)(m->squares[i] / m->count[i]);
    }
    if (layer->built) {
        const CornuStatus status = write(layer, to, m->shape);
        cornu__release(to);
        return status;
    }
    cornu__release(self->adapted);
    self->adapted = to;
    self->shape = m->shape;
    return CORNU_OK;
}

CornuStatus cornu__adapt_normalization(const CornuAdaptConfig *config)
{
    const Normalization *self = (const Normalization *)config->layer;
    Moments m = { 0 };
    if (is_given(self))
        return cornu__fail(CORNU_ERR_ARGUMENT, ".mean and .variance are given, nothing to adapt");
    if (!config->data == !config->x.data)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s a data set %s .x given, expected one of them",
                           config->data ? "both" : "neither", config->data ? "and" : "nor");
    CornuStatus status = config->data ? add_dataset(&m, self, config->data)
                                      : add_array(&m, self, config->x);
    if (!status) status = keep(config->layer, &m);
    moments_free(&m);
    return status;
}
