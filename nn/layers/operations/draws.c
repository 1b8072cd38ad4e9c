/*
 * keras.random: numbers that differ from step to step, in inference, too. They are drawn as those
 * of Dropout are (device/random.h): by seed, step, generator and row of the batch, so that any
 * number of threads and shards draws the same ones. A `seed` that is a number gives the same
 * numbers in every step; one of a SeedGenerator takes the place of the model's.
 */
#include "operation_internal.h"

#include "../../../tensor/functions/functions_internal.h"

#include <math.h>

/* What numbers are drawn by. */
typedef struct {
    CornuTensor *seed, *iteration, *position;
    int64_t      generator;
} Source;

static CornuTensor *number(const CornuOperands *o, double value)
{
    return cornu_op_constant(o->graph, cornu_scalar(CORNU_I64), value);
}

/* With `rows` row i of the result is row i of the batch. */
static bool source_of(const CornuOperands *o, bool rows, Source *source)
{
    const json_t *seed = cornu__argument(o, "seed", -1);
    const json_t *own = json_object_get(json_object_get(seed, "config"), "seed");
    if (!o->call || !o->call->seed || !o->call->iteration || !o->call->position) {
        cornu__operation_refuse(o, "draws numbers, for which this graph has no seed");
        return false;
    }
    *source = (Source){ o->call->seed, o->call->iteration, o->call->position,
                        o->layer->generator };
    if (!rows) source->position = number(o, 0.0);
    if (json_is_integer(own)) source->seed = number(o, (double)json_integer_value(own));
    if (json_is_integer(seed))
        *source = (Source){ number(o, (double)json_integer_value(seed)), number(o, 0.0),
                            source->position, 0 };
    return source->seed && source->iteration && source->position;
}

/* `times` uniform numbers for each element of the shape, (rows, times, others). */
static CornuTensor *uniform(const CornuOperands *o, CornuShape shape, bool rows, int64_t times)
{
    Source source;
    if (!source_of(o, rows, &source)) return NULL;
    const int64_t first = shape.rank ? shape.extent[0] : 1;
    const int64_t others = cornu_shape_count(shape) / first;
    return cornu_op_random_uniform(cornu_shape(first, times, others), source.seed,
                                   source.iteration, source.position, source.generator);
}

/* The i-th number of each element. */
static CornuTensor *part(CornuTensor *numbers, int64_t i, CornuShape shape)
{
    return numbers ? cornu_op_reshape(cornu__slice_axis(numbers, 1, i, i + 1), shape) : NULL;
}

/* sqrt(-2 log(1 - u)) cos(2 pi v). Source: Box and Muller, 1958. */
static CornuTensor *normal(const CornuOperands *o, CornuShape shape, bool rows)
{
    CornuTensor *numbers = uniform(o, shape, rows, 2), *u = part(numbers, 0, shape);
    CornuTensor *turn = cornu_op_cos(cornu_op_scale(part(numbers, 1, shape), 6.283185307179586));
    u = cornu_op_log(cornu_op_shift(cornu_op_negative(u), 1.0));
    return cornu_op_multiply(cornu_op_sqrt(cornu_op_scale(u, -2.0)), turn);
}

/* ---- Arguments ---- */

/* The shape, whether its first extent is that of the batch, and the dtype. */
typedef struct {
    CornuShape shape;
    bool       rows;
    CornuDtype dtype;
} Wanted;

static bool wanted_of(const CornuOperands *o, CornuDtype usual, Wanted *wanted)
{
    int64_t       extents[CORNU_MAX_RANK];
    const json_t *shape = cornu__argument(o, "shape", -1);
    const int     rank = cornu__argument_list(o, "shape", -1, extents);
    if (rank < 0) return false;
    *wanted = (Wanted){ cornu_shape_from(rank, extents),
                        cornu__is_rows(json_is_array(shape) ? json_array_get(shape, 0) : shape),
                        cornu__argument_dtype(o, "dtype", usual) };
    bool fits = wanted->dtype != CORNU_DTYPE_COUNT;
    for (int i = 0; i < rank; i++) fits &= extents[i] >= 1;
    if (!fits) cornu__operation_refuse(o, "expected extents of 1 or more, and a known dtype");
    return fits;
}

/* An argument in f32, or the number that it is by default. */
static CornuTensor *scalar(const CornuOperands *o, const char *name, int at, double usual)
{
    if (!cornu__argument(o, name, at))
        return cornu_op_constant(o->graph, cornu_scalar(CORNU_F32), usual);
    return cornu_op_convert(cornu__operand_tensor(o, name, at), CORNU_F32);
}

/* x factor + term, in the wanted type. */
static CornuTensor *moved(CornuTensor *x, CornuTensor *factor, CornuTensor *term,
                          const Wanted *wanted)
{
    x = cornu_op_add(cornu_op_multiply(x, factor), term);
    return cornu_op_convert(cornu__broadcast_to(x, wanted->shape), wanted->dtype);
}

/* ---- Distributions ---- */

CornuTensor *cornu__operation_normal(const CornuOperands *o)
{
    Wanted wanted;
    if (!wanted_of(o, CORNU_F32, &wanted)) return NULL;
    CornuTensor *mean = scalar(o, "mean", 0, 0.0), *stddev = scalar(o, "stddev", 1, 1.0);
    return moved(normal(o, wanted.shape, wanted.rows), stddev, mean, &wanted);
}

/* Within two standard deviations: by the inverse of the distribution. */
CornuTensor *cornu__operation_truncated_normal(const CornuOperands *o)
{
    Wanted       wanted;
    const double most = erf(sqrt(2.0));
    if (!wanted_of(o, CORNU_F32, &wanted)) return NULL;
    CornuTensor *mean = scalar(o, "mean", 0, 0.0), *stddev = scalar(o, "stddev", 1, 1.0);
    CornuTensor *u = part(uniform(o, wanted.shape, wanted.rows, 1), 0, wanted.shape);
    u = cornu_op_shift(cornu_op_scale(u, 2.0 * most), -most);
    u = cornu_op_clip(cornu_op_scale(cornu__erfinv(u), sqrt(2.0)), -2.0, 2.0);
    return moved(u, stddev, mean, &wanted);
}

CornuTensor *cornu__operation_uniform(const CornuOperands *o)
{
    Wanted wanted;
    if (!wanted_of(o, CORNU_F32, &wanted)) return NULL;
    CornuTensor *low = scalar(o, "minval", 0, 0.0), *high = scalar(o, "maxval", 1, 1.0);
    CornuTensor *u = part(uniform(o, wanted.shape, wanted.rows, 1), 0, wanted.shape);
    return moved(u, cornu_op_subtract(high, low), low, &wanted);
}

/* Of numbers with 24 bits: a range above 2^24 has gaps. */
CornuTensor *cornu__operation_randint(const CornuOperands *o)
{
    Wanted wanted;
    if (!wanted_of(o, CORNU_I32, &wanted)) return NULL;
    const CornuDtype dtype = wanted.dtype;
    CornuTensor *low = scalar(o, "minval", 0, 0.0), *high = scalar(o, "maxval", 1, 1.0);
    CornuTensor *u = part(uniform(o, wanted.shape, wanted.rows, 1), 0, wanted.shape);
    wanted.dtype = CORNU_F32;
    u = cornu_op_floor(moved(u, cornu_op_subtract(high, low), low, &wanted));
    /* u (high - low) may round up to the end of the range. */
    u = cornu_op_minimum(u, cornu_op_shift(high, -1.0));
    return cornu_op_convert(u, dtype);
}

/* Trials, of which each succeeds with the probability. */
CornuTensor *cornu__operation_binomial(const CornuOperands *o)
{
    enum { MOST = 4096 };
    Wanted        wanted;
    const json_t *counts = cornu__argument(o, "counts", 0);
    double        trials;
    if (!wanted_of(o, CORNU_F32, &wanted)) return NULL;
    if (!cornu__number_of(o, counts, &trials) || trials < 1.0 || trials > MOST ||
        trials != floor(trials))
        return cornu__operation_refuse(o, "counts is a whole number from 1 to 4096");
    CornuTensor *p = scalar(o, "probabilities", 1, 0.5), *sum = NULL;
    CornuTensor *u = uniform(o, wanted.shape, wanted.rows, (int64_t)trials);
    if (!p || !u) return NULL;
    if (cornu_tensor_shape(p).rank == 0) {
        CornuTensor *hit = cornu_op_convert(cornu_op_compare(u, CORNU_LESS, p), CORNU_F32);
        sum = cornu_op_reshape(cornu_op_reduce_sum(hit, 1 << 1, false), wanted.shape);
    } else {
        for (int64_t i = 0; i < (int64_t)trials && p; i++) {
            CornuTensor *hit = cornu_op_compare(part(u, i, wanted.shape), CORNU_LESS, p);
            hit = cornu_op_convert(hit, CORNU_F32);
            sum = sum ? cornu_op_add(sum, hit) : hit;
        }
    }
    return cornu_op_convert(sum, wanted.dtype);
}

/* The largest of logits (B, C) less the logarithms of exponential numbers. */
CornuTensor *cornu__operation_categorical(const CornuOperands *o)
{
    CornuTensor  *logits = cornu_op_convert(cornu__operand_tensor(o, "logits", 0), CORNU_F32);
    const int64_t samples = cornu__argument_integer(o, "num_samples", 1);
    const CornuDtype dtype = cornu__argument_dtype(o, "dtype", CORNU_I32);
    if (!logits) return NULL;
    const CornuShape s = cornu_tensor_shape(logits);
    if (s.rank != 2 || samples < 1 || dtype == CORNU_DTYPE_COUNT)
        return cornu__operation_refuse(o, "expected logits (B, C), one sample or more and a known "
                                       "dtype");
    const CornuShape each = cornu_shape(s.extent[0], samples, s.extent[1]);
    CornuTensor *u = part(uniform(o, each, true, 1), 0, each);
    CornuTensor *waits = cornu_op_negative(cornu_op_log(cornu_op_shift(cornu_op_negative(u), 1.0)));
    waits = waits ? cornu_op_log(cornu_op_maximum(waits, cornu__like(waits, 1e-30))) : NULL;
    CornuTensor *score = cornu_op_subtract(cornu__add_axis(logits, 1), waits);
    return score ? cornu_op_convert(cornu_op_argmax(score, 2), dtype) : NULL;
}

/* ---- Of a tensor ---- */

CornuTensor *cornu__operation_dropout(const CornuOperands *o)
{
    CornuTensor  *x = cornu__operand_tensor(o, "inputs", 0);
    const double  rate = cornu__argument_number(o, "rate", 0.0);
    int64_t       noise[CORNU_MAX_RANK];
    const json_t *given = cornu__argument(o, "noise_shape", -1);
    Source        source;
    if (!x || rate == 0.0) return x;
    CornuShape shape = cornu_tensor_shape(x);
    if (!(rate > 0.0 && rate < 1.0)) return cornu__operation_refuse(o, "rate is not from 0 to 1");
    for (int i = 0; given && i < shape.rank; i++) {
        const json_t *extent = json_array_get(given, (size_t)i);
        noise[i] = shape.extent[i];
        if (!json_is_null(extent) && !cornu__whole_of(o, extent, &noise[i]))
            return cornu__operation_refuse(o, "noise_shape is not a list of extents");
    }
    if (given) shape = cornu_shape_from(shape.rank, noise);
    const bool all = shape.rank > 0 && shape.extent[0] != cornu_tensor_shape(x).extent[0];
    if (!source_of(o, !all, &source)) return NULL;
    CornuTensor *kept = cornu_op_constant(o->graph, cornu_type_from(CORNU_F32, shape), 1.0);
    kept = cornu_op_dropout(given ? kept : x, rate, source.seed, source.iteration, source.position,
                            source.generator);
    return given ? cornu_op_multiply(x, cornu_op_convert(kept, cornu_tensor_type(x).dtype)) : kept;
}

/* The elements along an axis in the order of a random number for each. */
CornuTensor *cornu__operation_shuffle(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    const int    axis = x ? cornu__argument_axis(o, "axis", cornu_tensor_shape(x).rank, 0) : -1;
    if (axis < 0) return NULL;
    CornuShape    shape = cornu_tensor_shape(x);
    const int64_t n = shape.extent[axis];
    CornuTensor  *key = part(uniform(o, cornu_shape(n), false, 1), 0, cornu_shape(n));
    CornuTensor  *i = cornu_op_iota(o->graph, cornu_type(CORNU_I32, n), 0);
    CornuTensor  *other = cornu__add_axis(key, 1), *before_it = cornu__add_axis(i, 1);
    CornuTensor  *before = cornu_op_select(cornu_op_compare(other, CORNU_EQUAL, key),
                                           cornu_op_compare(before_it, CORNU_LESS, i),
                                           cornu_op_compare(other, CORNU_LESS, key));
    CornuTensor *place = cornu_op_reduce_sum(cornu_op_convert(before, CORNU_I32), 1, false);
    if (!place || !(x = cornu__move_axis(x, axis, 0))) return NULL;
    shape = cornu_tensor_shape(x);
    x = cornu_op_reshape(x, cornu_shape(n, cornu_shape_count(shape) / n));
    return cornu__move_axis(cornu_op_reshape(cornu_op_gather(x, place), shape), 0, axis);
}
