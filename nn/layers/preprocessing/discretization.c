/* Discretization. */
#include <math.h>
#include <stdlib.h>

#include "categories_internal.h"
#include "adapt_internal.h"
#include "host_internal.h"

typedef CORNU__LAYER(CornuDiscretizationConfig) Discretization;

static CornuStatus discretization_build(CornuLayer *layer, CornuShape input)
{
    return cornu__check_encoded(input, ((Discretization *)layer)->config.output_mode);
}

/* A number that is none is above all boundaries, as in NumPy. */
static CornuTensor *discretization_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuDiscretizationConfig *config = &((Discretization *)layer)->config;
    const int64_t count = config->bin_boundaries.values
        ? cornu_shape_count(config->bin_boundaries.shape) : config->num_bins - 1;
    if (!x) return NULL;
    CornuShape shape = cornu_tensor_shape(x);
    if (shape.rank == CORNU_MAX_RANK)
        return cornu__fail_null(CORNU_ERR_SHAPE, "the input has %d axes, expected at most %d",
                                shape.rank, CORNU_MAX_RANK - 1);
    if (!config->bin_boundaries.values && !call->shapes_only)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: has no boundaries, expected "
                                ".bin_boundaries or cornu_adapt before it is used",
                                cornu_layer_name(layer));
    CornuTensor *indices;
    if (count == 0 || !config->bin_boundaries.values) {
        indices = cornu_op_constant(call->graph, cornu_type_from(CORNU_I32, shape), 0.0);
    } else {
        shape.extent[shape.rank++] = 1;
        x = cornu_op_reshape(cornu_op_convert(x, CORNU_F32), shape);
        CornuTensor *bounds = cornu__numbers_tensor(call, &config->bin_boundaries,
                                                    cornu_shape(count));
        CornuTensor *below = cornu_op_convert(cornu_op_compare(x, CORNU_LESS, bounds), CORNU_F32);
        below = cornu_op_reduce_sum(below, INT64_C(1) << (shape.rank - 1), false);
        indices = cornu_op_convert(cornu_op_shift(cornu_op_negative(below), (double)count),
                                   CORNU_I32);
    }
    return cornu__encode(layer, indices, config->output_mode, count + 1, NULL);
}

/* ---- On the host ---- */

static CornuStatus type_of(const CornuLayer *layer, const CornuArray *in, int in_count,
                           CornuType *out)
{
    (void)in_count;
    if (((const Discretization *)layer)->config.output_mode != CORNU_INT_OUTPUT)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "on the host, where a layer takes the result, "
                           "the numbers of bins are found: expected the output mode \"int\"");
    return cornu__host_encoded_type(in[0].type.shape, CORNU_INT_OUTPUT, 0, out);
}

static CornuStatus discretization_host(const CornuLayer *layer, const CornuArray *in, int in_count,
                                       CornuArray out)
{
    const CornuNumbers *bounds = &((const Discretization *)layer)->config.bin_boundaries;
    const int64_t       count = cornu_type_count(in[0].type);
    (void)in_count;
    if (!bounds->values)
        return cornu__fail(CORNU_ERR_ARGUMENT, "has no boundaries, expected .bin_boundaries or "
                           "cornu_adapt before it is used");
    const int64_t bins = cornu_shape_count(bounds->shape);
    for (int64_t i = 0; i < count; i++) {
        const float x = (float)cornu_array_get(in[0], i);
        int32_t     above = (int32_t)bins;     /* as in the step, in f32 */
        while (above > 0 && x < (float)bounds->values[above - 1]) above--;
        ((int32_t *)out.data)[i] = above;
    }
    return CORNU_OK;
}

/* ---- Class ---- */

static CornuStatus discretization_resolve(CornuLayer *layer)
{
    CornuDiscretizationConfig *config = &((Discretization *)layer)->config;
    CornuNumbers              *bounds = &config->bin_boundaries;
    const char                *name = cornu_layer_name(layer);
    config->epsilon = cornu__number(config->epsilon, 0.01);
    if (!bounds->values && config->num_bins < 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: neither .bin_boundaries nor .num_bins of 1 or "
                           "more is given, expected one", name);
    if (config->num_bins < 0 || config->num_bins > INT32_MAX || !(config->epsilon > 0.0) ||
        config->epsilon > 1.0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .num_bins is %lld and .epsilon %g, expected 1 "
                           "or more and 0 to 1", name, (long long)config->num_bins,
                           config->epsilon);
    if (bounds->values && bounds->shape.rank != 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .bin_boundaries have %d axes, expected a list",
                           name, bounds->shape.rank);
    for (int64_t i = 1; bounds->values && i < bounds->shape.extent[0]; i++)
        if (!(bounds->values[i - 1] <= bounds->values[i]))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .bin_boundaries have %g before %g, "
                               "expected ascending numbers", name, bounds->values[i - 1],
                               bounds->values[i]);
    CORNU__TRY(cornu__check_output_mode(name, &config->output_mode, CORNU_INT_OUTPUT,
                                        CORNU_INT_OUTPUT, CORNU_COUNT_OUTPUT));
    return cornu__layer_copy_numbers(layer, bounds);
}

static const CornuField fields[] = {
    { "bin_boundaries", CORNU_FIELD_NUMBERS, offsetof(CornuDiscretizationConfig, bin_boundaries) },
    { "num_bins", CORNU_FIELD_INTEGER_OR_NONE, offsetof(CornuDiscretizationConfig, num_bins) },
    { "epsilon", CORNU_FIELD_NUMBER, offsetof(CornuDiscretizationConfig, epsilon) },
    { "output_mode", CORNU_FIELD_OUTPUT_MODE, offsetof(CornuDiscretizationConfig, output_mode) },
    { 0 },
};

const CornuLayerClass cornu__discretization_class = {
    .class_name = "Discretization", .size = sizeof(Discretization), .build = discretization_build,
    .call = discretization_call, .mask = cornu__no_mask,
    .host_type = type_of, .host_call = discretization_host, .moves_to_host = true,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, Discretization,
                                                     discretization_resolve),
                                       .never_trains = true },
};

CORNU__CONSTRUCTOR(discretization, CornuDiscretizationConfig)

/* ---- Boundaries from data ---- */

/* Values and how many of the data each stands for, ascending by value, as Keras keeps them in f32.
 * Source: keras/src/layers/preprocessing/discretization.py. */
typedef struct {
    float  *values, *weights;
    int64_t count;
    double  epsilon;
} Summary;

static void summary_free(Summary *s)
{
    cornu__release(s->values);
    cornu__release(s->weights);
}

static CornuStatus summary_make(Summary *s, int64_t count, double epsilon)
{
    *s = (Summary){ .count = count, .epsilon = epsilon };
    s->values = cornu__allocate((size_t)count, sizeof *s->values);
    s->weights = cornu__allocate((size_t)count, sizeof *s->weights);
    return s->values && s->weights ? CORNU_OK : CORNU_ERR_MEMORY;
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The ordinate at x of the line through points with ascending abscissas. */
static double interpolated(double x, const double *at, const float *y, int64_t count)
{
    int64_t i = 0;
    while (i < count && at[i] <= x) i++;
    if (i == 0) return (double)y[0];
    if (i == count) return (double)y[count - 1];
    const double slope = ((double)y[i] - (double)y[i - 1]) / (at[i] - at[i - 1]);
    return slope * (x - at[i - 1]) + (double)y[i - 1];
}

/* Replaces the summary by 1 / epsilon values at equal distances in rank. */
static CornuStatus compress(Summary *s, double epsilon)
{
    if ((double)s->count * epsilon < 1.0) return CORNU_OK;
    int64_t count = (int64_t)ceil(1.0 / epsilon);
    Summary to;
    double *part = cornu__allocate((size_t)s->count, sizeof *part);
    float  *sums = cornu__allocate((size_t)s->count, sizeof *sums);
    CornuStatus status = part && sums ? summary_make(&to, count, s->epsilon) : CORNU_ERR_MEMORY;
    if (!status) {
        float  sum = 0.0f;
        double before = 0.0;
        for (int64_t i = 0; i < s->count; i++) sums[i] = sum += s->weights[i];
        for (int64_t i = 0; i < s->count; i++) part[i] = (double)(sums[i] / sum);
        for (int64_t i = 0; i < count; i++) {
            const double rank = epsilon + (double)i * epsilon;
            const double upto = interpolated(rank, part, sums, s->count);
            to.values[i] = (float)interpolated(rank, part, s->values, s->count);
            to.weights[i] = (float)(upto - before);
            before = upto;
        }
        summary_free(s);
        *s = to;
    } else if (part && sums) {
        summary_free(&to);
    }
    cornu__release(part);
    cornu__release(sums);
    return status;
}

/* Merges two lists that ascend; of equal values the first list's come first. */
static CornuStatus merge(Summary *s, const Summary *more)
{
    Summary to;
    int64_t a = 0, b = 0;
    CornuStatus status = summary_make(&to, s->count + more->count, s->epsilon);
    for (int64_t i = 0; !status && i < to.count; i++) {
        const bool first = b == more->count ||
                           (a < s->count && s->values[a] < more->values[b]);
        to.values[i] = first ? s->values[a] : more->values[b];
        to.weights[i] = first ? s->weights[a++] : more->weights[b++];
    }
    if (status) {
        summary_free(&to);
        return status;
    }
    summary_free(s);
    *s = to;
    return compress(s, s->epsilon);
}

/* Every 1 / epsilon-th value of the sorted batch. */
static CornuStatus add_batch(void *context, CornuArray rows, int64_t count)
{
    Summary      *s = context, batch = { 0 };
    const int64_t all = rows.type.shape.rank && rows.type.shape.extent[0]
        ? cornu_type_count(rows.type) / rows.type.shape.extent[0] * count : count;
    const double  stride = fmax((double)all * s->epsilon, 1.0);
    float        *sorted = cornu__allocate((size_t)all, sizeof *sorted);
    if (!sorted) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < all; i++) sorted[i] = (float)cornu_array_get(rows, i);
    qsort(sorted, (size_t)all, sizeof *sorted, by_value);
    const int64_t first = (int64_t)(stride - 1.0), step = (int64_t)stride;
    const int64_t kept = all > first ? (all - first + step - 1) / step : 0;
    CornuStatus   status = summary_make(&batch, kept, s->epsilon);
    for (int64_t i = 0; !status && i < kept; i++) {
        batch.values[i] = sorted[first + i * step];
        batch.weights[i] = (float)stride;
    }
    if (!status) status = merge(s, &batch);
    summary_free(&batch);
    cornu__release(sorted);
    return status;
}

CornuStatus cornu__adapt_discretization(const CornuAdaptConfig *config)
{
    CornuDiscretizationConfig *to = &((Discretization *)config->layer)->config;
    Summary                    s;
    if (to->num_bins == 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, ".bin_boundaries are given, nothing to adapt");
    CornuStatus status = summary_make(&s, 0, to->epsilon);
    if (!status) status = cornu__adapt_each(config, add_batch, &s);
    if (!status && s.count == 0)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "the data have no rows");
    if (!status) status = compress(&s, 1.0 / (double)to->num_bins);
    double *bounds = status ? NULL : cornu__allocate((size_t)s.count, sizeof *bounds);
    if (bounds) {
        for (int64_t i = 0; i < s.count; i++) bounds[i] = (double)s.values[i];
        const CornuShape shape = cornu_shape(s.count - 1);
        status = cornu__layer_keep(config->layer, bounds);
        to->bin_boundaries = (CornuNumbers){ status || s.count < 2 ? NULL : bounds, shape };
    } else if (!status) {
        status = CORNU_ERR_MEMORY;
    }
    summary_free(&s);
    return status;
}
