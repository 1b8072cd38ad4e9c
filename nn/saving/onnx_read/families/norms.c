/* Normalizations and softmax. Formulas: docs/Operators.md of ONNX. */
#include "../run_internal.h"

/* (x - mean) / sqrt(variance + epsilon) over the axes, which are bits. */
static CornuTensor *standardized(CornuTensor *x, int64_t axes, double epsilon, CornuTensor **mean,
                                 CornuTensor **inverse)
{
    CornuTensor *middle = cornu_op_reduce_mean(x, axes, true);
    CornuTensor *rest = cornu_op_subtract(x, middle);
    CornuTensor *variance = cornu_op_reduce_mean(cornu_op_multiply(rest, rest), axes, true);
    CornuTensor *scale = cornu_op_rsqrt(cornu_op_shift(variance, epsilon));
    if (mean) *mean = middle;
    if (inverse) *inverse = scale;
    return cornu_op_multiply(rest, scale);
}

/* A vector (C) as (C, 1, …), for tensors (B, C, …). */
static CornuTensor *per_channel(CornuTensor *x, int rank)
{
    int64_t extents[CORNU_MAX_RANK] = { cornu__extent_of(x, 0), 1, 1, 1, 1, 1 };
    return cornu__reshaped(x, rank > 1 ? rank - 1 : 1, extents);
}

/* For training a file gives the statistics of the batch, and moves the others towards them. */
static CornuStatus batch_statistics(CornuReadStep *step, CornuTensor *x, CornuTensor **in)
{
    const double  kept = cornu__real(step, "momentum", 0.9);
    const int64_t axes = ((INT64_C(1) << cornu__rank_of(x)) - 1) & ~INT64_C(2);
    CornuTensor  *now[2];
    now[0] = cornu_op_reduce_mean(x, axes, true);
    CornuTensor *rest = cornu_op_subtract(x, now[0]);
    now[1] = cornu_op_reduce_mean(cornu_op_multiply(rest, rest), axes, true);
    for (int i = 0; i < 2 && now[i]; i++) {
        const int64_t channels[] = { cornu__extent_of(x, 1) };
        CornuTensor  *moved = cornu_op_add(
            cornu_op_scale(cornu__operand_of(step, 3 + i), kept),
            cornu_op_scale(cornu__reshaped(now[i], 1, channels), 1.0 - kept));
        CORNU__TRY(cornu__result(step, 1 + i, moved));
        in[3 + i] = now[i];
    }
    return CORNU_OK;
}

/* With the moving statistics, as in inference: a model that is read is trained with frozen
 * ones. */
static CornuStatus read_batch_norm(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0), *in[5] = { NULL };
    if (!x) return cornu_error_take();
    for (int i = 1; i < 5; i++) in[i] = per_channel(cornu__operand_of(step, i), cornu__rank_of(x));
    if (cornu__whole(step, "training_mode", 0)) CORNU__TRY(batch_statistics(step, x, in));
    CornuTensor *scale = cornu_op_rsqrt(cornu_op_shift(in[4], cornu__real(step, "epsilon", 1e-5)));
    scale = cornu_op_multiply(scale, in[1]);
    CornuTensor *offset = cornu_op_subtract(in[2], cornu_op_multiply(in[3], scale));
    return cornu__result(step, 0, cornu_op_add(cornu_op_multiply(x, scale), offset));
}

static CornuStatus read_instance_norm(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    if (!x) return cornu_error_take();
    const int     rank = cornu__rank_of(x);
    const int64_t axes = ((INT64_C(1) << rank) - 1) & ~INT64_C(3);
    CornuTensor  *y = standardized(x, axes, cornu__real(step, "epsilon", 1e-5), NULL, NULL);
    y = cornu_op_multiply(y, per_channel(cornu__operand_of(step, 1), rank));
    return cornu__result(step, 0, cornu_op_add(y, per_channel(cornu__operand_of(step, 2), rank)));
}

/* Axes from `axis` on. */
static CornuStatus trailing(CornuReadStep *step, CornuTensor *x, int64_t usual, int64_t *axes)
{
    int first;
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "axis", usual), cornu__rank_of(x), &first));
    *axes = ((INT64_C(1) << cornu__rank_of(x)) - 1) & ~((INT64_C(1) << first) - 1);
    return CORNU_OK;
}

static CornuStatus read_layer_norm(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0), *mean, *inverse;
    int64_t      axes;
    if (!x) return cornu_error_take();
    CORNU__TRY(trailing(step, x, -1, &axes));
    CornuTensor *y = standardized(x, axes, cornu__real(step, "epsilon", 1e-5), &mean, &inverse);
    y = cornu_op_multiply(y, cornu__operand_of(step, 1));
    CornuTensor *bias = cornu__optional(step, 2);
    CORNU__TRY(cornu__result(step, 0, bias ? cornu_op_add(y, bias) : y));
    CORNU__TRY(cornu__result(step, 1, mean));
    return cornu__result(step, 2, inverse);
}

static CornuStatus read_rms_norm(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int64_t      axes;
    if (!x) return cornu_error_take();
    CORNU__TRY(trailing(step, x, -1, &axes));
    CornuTensor *mean = cornu_op_reduce_mean(cornu_op_multiply(x, x), axes, true);
    CornuTensor *scale = cornu_op_rsqrt(cornu_op_shift(mean, cornu__real(step, "epsilon", 1e-5)));
    return cornu__result(step, 0, cornu_op_multiply(cornu_op_multiply(x, scale),
                                                    cornu__operand_of(step, 1)));
}

/* Scale and bias are per group up to opset 20, then per channel. */
static CornuStatus read_group_norm(CornuReadStep *step)
{
    CornuTensor  *x = cornu__operand_of(step, 0), *in[3] = { NULL };
    const int64_t groups = cornu__whole(step, "num_groups", 0);
    if (!x) return cornu_error_take();
    const CornuShape shape = cornu_tensor_shape(x);
    if (shape.rank < 2 || groups < 1 || shape.extent[1] % groups)
        return cornu__fail(CORNU_ERR_SHAPE, "%lld groups of %lld channels", (long long)groups,
                           (long long)shape.extent[1]);
    const int64_t size = cornu_shape_count(shape) / (shape.extent[0] ? shape.extent[0] : 1) /
                         groups;
    CornuTensor  *y = cornu__reshaped(x, 3, (const int64_t[]){ shape.extent[0], groups, size });
    y = standardized(y, 4, cornu__real(step, "epsilon", 1e-5), NULL, NULL);
    y = y ? cornu_op_reshape(y, shape) : NULL;
    for (int i = 1; i < 3; i++) {
        CornuTensor  *v = cornu__operand_of(step, i);
        const int64_t given = cornu__extent_of(v, 0), each = shape.extent[1] / groups;
        if (given == groups && each > 1) {
            v = cornu__reshaped(v, 2, (const int64_t[]){ groups, 1 });
            v = v ? cornu_op_broadcast(v, cornu_shape(groups, each)) : NULL;
            v = cornu__reshaped(v, 1, (const int64_t[]){ shape.extent[1] });
        }
        in[i] = per_channel(v, shape.rank);
    }
    return cornu__result(step, 0, cornu_op_add(cornu_op_multiply(y, in[1]), in[2]));
}

/* x / (bias + alpha / size * sum over the neighbouring channels of x^2)^beta */
static CornuStatus read_lrn(CornuReadStep *step)
{
    CornuTensor  *x = cornu__operand_of(step, 0);
    const int64_t size = cornu__whole(step, "size", 1);
    if (!x) return cornu_error_take();
    if (cornu__rank_of(x) < 2 || size < 1 || size > 1024)
        return cornu__fail(CORNU_ERR_SHAPE, "a window of %lld channels", (long long)size);
    int64_t low[CORNU_MAX_RANK] = { 0, (size - 1) / 2 };
    int64_t high[CORNU_MAX_RANK] = { 0, size - 1 - (size - 1) / 2 };
    CornuTensor *square = cornu_op_pad(cornu_op_multiply(x, x), low, high, 0.0), *sum = NULL;
    for (int64_t i = 0; i < size; i++) {
        CornuTensor *part = cornu__part_of(square, 1, i, cornu__extent_of(x, 1));
        sum = sum ? cornu_op_add(sum, part) : part;
    }
    sum = cornu_op_shift(cornu_op_scale(sum, cornu__real(step, "alpha", 1e-4) / (double)size),
                         cornu__real(step, "bias", 1.0));
    CornuTensor *beta = sum ? cornu_op_constant_like(sum, cornu__real(step, "beta", 0.75)) : NULL;
    return cornu__result(step, 0, cornu_op_divide(x, cornu_op_power(sum, beta)));
}

/* Where the length is 0, so is x. */
static CornuStatus read_lp_norm(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int          axis;
    if (!x) return cornu_error_take();
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "axis", -1), cornu__rank_of(x), &axis));
    const bool   one = cornu__whole(step, "p", 2) == 1;
    CornuTensor *sum = cornu_op_reduce_sum(one ? cornu_op_absolute(x) : cornu_op_multiply(x, x),
                                           INT64_C(1) << axis, true);
    if (!one) sum = cornu_op_sqrt(sum);
    CornuTensor *none = sum ? cornu_op_compare(sum, CORNU_EQUAL, cornu_op_constant_like(sum, 0.0))
                            : NULL;
    sum = cornu_op_select(none, sum ? cornu_op_constant_like(sum, 1.0) : NULL, sum);
    return cornu__result(step, 0, cornu_op_divide(x, sum));
}

static CornuStatus read_mvn(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int64_t      axes;
    if (!x) return cornu_error_take();
    CORNU__TRY(cornu__axes_of(step, "axes", -1, cornu__rank_of(x), 13, &axes));
    CornuTensor *rest = cornu_op_subtract(x, cornu_op_reduce_mean(x, axes, true));
    CornuTensor *variance = cornu_op_reduce_mean(cornu_op_multiply(rest, rest), axes, true);
    return cornu__result(step, 0, cornu_op_divide(rest, cornu_op_shift(cornu_op_sqrt(variance),
                                                                       1e-9)));
}

/* ---- Softmax: over one axis; up to opset 12 over all axes from it on ---- */

typedef CornuTensor *Last(CornuTensor *x);

static CornuStatus over_axis(CornuReadStep *step, Last *function)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int          axis;
    if (!x) return cornu_error_take();
    const bool       old = step->run->opset < 13;
    const int        rank = cornu__rank_of(x);
    const CornuShape shape = cornu_tensor_shape(x);
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "axis", old ? 1 : -1), rank, &axis));
    if (!old || axis == rank - 1) {
        x = function(cornu__read_moved_axis(x, axis, rank - 1));
        return cornu__result(step, 0, cornu__read_moved_axis(x, rank - 1, axis));
    }
    int64_t flat[2] = { 1, 1 };
    for (int i = 0; i < rank; i++) flat[i >= axis] *= shape.extent[i];
    x = function(cornu__reshaped(x, 2, flat));
    return cornu__result(step, 0, x ? cornu_op_reshape(x, shape) : NULL);
}

/* 1 at the first of the largest elements. */
static CornuTensor *hardmax(CornuTensor *x)
{
    if (!x) return NULL;
    return cornu_op_one_hot(cornu_op_argmax(x, cornu__rank_of(x) - 1),
                            cornu__extent_of(x, cornu__rank_of(x) - 1), cornu__dtype_of(x));
}

static CornuStatus read_softmax(CornuReadStep *step) { return over_axis(step, cornu_op_softmax); }
static CornuStatus read_log_softmax(CornuReadStep *step)
{
    return over_axis(step, cornu_op_log_softmax);
}
static CornuStatus read_hardmax(CornuReadStep *step) { return over_axis(step, hardmax); }

const CornuReadRow cornu__read_norms[] = {
    { "BatchNormalization", read_batch_norm }, { "GroupNormalization", read_group_norm },
    { "Hardmax", read_hardmax }, { "InstanceNormalization", read_instance_norm },
    { "LRN", read_lrn }, { "LayerNormalization", read_layer_norm },
    { "LogSoftmax", read_log_softmax }, { "LpNormalization", read_lp_norm },
    { "MeanVarianceNormalization", read_mvn }, { "RMSNormalization", read_rms_norm },
    { "Softmax", read_softmax },
    { 0 },
};
