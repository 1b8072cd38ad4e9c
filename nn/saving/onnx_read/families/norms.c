/* Normalizations and softmax. Formulas: docs/Operators.md of ONNX. */
#include "../run_internal.h"


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
    for (int i = 1; i < 5; i++) in[i] = per_channel(cornu__operand_of(step, i), cornu__rank_of(x));
    if (cornu__whole(step, "training_mode", 0)) CORNU__TRY(batch_statistics(step, x, in));
    CornuTensor *scale = cornu_op_rsqrt(cornu_op_shift(in[4], cornu__real(step, "epsilon", 1e-5)));
    scale = cornu_op_multiply(scale, in[1]);
    CornuTensor *offset = cornu_op_subtract(in[2], cornu_op_multiply(in[3], scale));
    return cornu__result(step, 0, cornu_op_add(cornu_op_multiply(x, scale), offset));
}

/* y scale + bias, with one number for each channel. */
static CornuStatus per_channel_result(CornuReadStep *step, CornuTensor *y, CornuTensor *scale,
                                      CornuTensor *bias)
{
    const int rank = cornu__rank_of(y);
    y = cornu_op_multiply(y, per_channel(scale, rank));
    return cornu__result(step, 0, cornu_op_add(y, per_channel(bias, rank)));
}

static double epsilon_of(const CornuReadStep *step) { return cornu__real(step, "epsilon", 1e-5); }

static CornuStatus read_instance_norm(CornuReadStep *step)
{
    CornuTensor  *x = cornu__operand_of(step, 0);
    const int64_t axes = ((INT64_C(1) << cornu__rank_of(x)) - 1) & ~INT64_C(3);
    return per_channel_result(step, cornu__layer_norm(x, NULL, NULL, axes, epsilon_of(step)),
                              cornu__operand_of(step, 1), cornu__operand_of(step, 2));
}

/* Axes from `axis` on, by default the last one. */
static CornuStatus trailing(CornuReadStep *step, int64_t *axes)
{
    const int rank = cornu__rank_of(cornu__operand_of(step, 0));
    int       first;
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "axis", -1), rank, &first));
    *axes = ((INT64_C(1) << rank) - 1) & ~((INT64_C(1) << first) - 1);
    return CORNU_OK;
}

static CornuStatus read_layer_norm(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0), *bias = cornu__optional(step, 2);
    int64_t      axes;
    CORNU__TRY(trailing(step, &axes));
    CornuTensor *y = cornu__layer_norm(x, NULL, NULL, axes, epsilon_of(step));
    y = cornu_op_multiply(y, cornu__operand_of(step, 1));
    CORNU__TRY(cornu__result(step, 0, bias ? cornu_op_add(y, bias) : y));
    CornuTensor *mean = cornu_op_reduce_mean(x, axes, true);
    CORNU__TRY(cornu__result(step, 1, mean));
    return cornu__result(step, 2, cornu__inverse_root(cornu_op_subtract(x, mean), axes,
                                                      epsilon_of(step)));
}

static CornuStatus read_rms_norm(CornuReadStep *step)
{
    int64_t axes;
    CORNU__TRY(trailing(step, &axes));
    CornuTensor *y = cornu__rms_norm(cornu__operand_of(step, 0), NULL, axes, epsilon_of(step));
    return cornu__result(step, 0, cornu_op_multiply(y, cornu__operand_of(step, 1)));
}

/* A number for each group, as of files up to opset 20, as one for each channel. */
static CornuTensor *for_channels(CornuTensor *v, int64_t groups, int64_t channels)
{
    if (cornu__extent_of(v, 0) != groups || groups == channels) return v;
    v = cornu_op_broadcast(cornu_op_reshape(v, cornu_shape(groups, 1)),
                           cornu_shape(groups, channels / groups));
    return cornu_op_reshape(v, cornu_shape(channels));
}

static CornuStatus read_group_norm(CornuReadStep *step)
{
    CornuTensor     *x = cornu__operand_of(step, 0);
    const int64_t    groups = cornu__whole(step, "num_groups", 0);
    const CornuShape shape = cornu_tensor_shape(x);
    if (shape.rank < 2 || groups < 1 || shape.extent[1] % groups)
        return cornu__fail(CORNU_ERR_SHAPE, "%lld groups of %lld channels", (long long)groups,
                           (long long)shape.extent[1]);
    return per_channel_result(step, cornu__group_norm(x, NULL, NULL, 1, groups, epsilon_of(step)),
                              for_channels(cornu__operand_of(step, 1), groups, shape.extent[1]),
                              for_channels(cornu__operand_of(step, 2), groups, shape.extent[1]));
}

/* x / (bias + alpha / size * sum over the neighbouring channels of x^2)^beta */
static CornuStatus read_lrn(CornuReadStep *step)
{
    CornuTensor  *x = cornu__operand_of(step, 0);
    const int64_t size = cornu__whole(step, "size", 1);
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
    CornuTensor *beta = cornu_op_constant_like(sum, cornu__real(step, "beta", 0.75));
    return cornu__result(step, 0, cornu_op_divide(x, cornu_op_power(sum, beta)));
}

/* Where the length is 0, so is x. */
static CornuStatus read_lp_norm(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int          axis;
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "axis", -1), cornu__rank_of(x), &axis));
    const bool   one = cornu__whole(step, "p", 2) == 1;
    CornuTensor *sum = cornu_op_reduce_sum(one ? cornu_op_absolute(x) : cornu_op_multiply(x, x),
                                           INT64_C(1) << axis, true);
    if (!one) sum = cornu_op_sqrt(sum);
    CornuTensor *none = cornu_op_compare(sum, CORNU_EQUAL, cornu_op_constant_like(sum, 0.0));
    sum = cornu_op_select(none, cornu_op_constant_like(sum, 1.0), sum);
    return cornu__result(step, 0, cornu_op_divide(x, sum));
}

static CornuStatus read_mvn(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int64_t      axes;
    CORNU__TRY(cornu__axes_of(step, "axes", -1, cornu__rank_of(x), 13, &axes));
    CornuTensor *rest = cornu_op_subtract(x, cornu_op_reduce_mean(x, axes, true));
    CornuTensor *variance = cornu_op_reduce_mean(cornu_op_multiply(rest, rest), axes, true);
    return cornu__result(step, 0, cornu_op_divide(rest, cornu_op_shift(cornu_op_sqrt(variance),
                                                                       1e-9)));
}

/* ---- Softmax: over one axis; up to opset 12 over all axes from it on ---- */

static CornuStatus over_axis(CornuReadStep *step)
{
    CornuTensor     *x = cornu__operand_of(step, 0);
    const bool       old = step->run->opset < 13;
    const int        rank = cornu__rank_of(x);
    const CornuShape shape = cornu_tensor_shape(x);
    int              axis;
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "axis", old ? 1 : -1), rank, &axis));
    if (!old || axis == rank - 1) {
        x = step->row->one(cornu__move_axis(x, axis, rank - 1));
        return cornu__result(step, 0, cornu__move_axis(x, rank - 1, axis));
    }
    int64_t flat[2] = { 1, 1 };
    for (int i = 0; i < rank; i++) flat[i >= axis] *= shape.extent[i];
    return cornu__result(step, 0, cornu_op_reshape(step->row->one(cornu__reshaped(x, 2, flat)),
                                                   shape));
}

/* 1 at the first of the largest elements. */
static CornuTensor *hardmax(CornuTensor *x)
{
    const int last = cornu__rank_of(x) - 1;
    return x ? cornu_op_one_hot(cornu_op_argmax(x, last), cornu__extent_of(x, last),
                                cornu__dtype_of(x)) : NULL;
}

const CornuReadRow cornu__read_norms[] = {
    { "BatchNormalization", read_batch_norm, .operands = 5 },
    { "GroupNormalization", read_group_norm, .operands = 3 },
    { "Hardmax", over_axis, 1, .one = hardmax },
    { "InstanceNormalization", read_instance_norm, .operands = 3 },
    { "LRN", read_lrn, .operands = 1 }, { "LayerNormalization", read_layer_norm, .operands = 2 },
    { "LogSoftmax", over_axis, 1, .one = cornu_op_log_softmax },
    { "LpNormalization", read_lp_norm, .operands = 1 },
    { "MeanVarianceNormalization", read_mvn, .operands = 1 },
    { "RMSNormalization", read_rms_norm, .operands = 2 },
    { "SimplifiedLayerNormalization", read_rms_norm, .operands = 2 },
    { "Softmax", over_axis, 1, .one = cornu_op_softmax },
    { "com.microsoft.SimplifiedLayerNormalization", read_rms_norm, .operands = 2 },
    { 0 },
};
