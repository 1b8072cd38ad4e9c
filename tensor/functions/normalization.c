/* Normalizations of x, f32, by statistics of its own. Axes are bits. */
#include "../function_internal.h"
#include "functions_internal.h"

/* The shape of x with extents of 1 along other axes. */
static CornuShape along(CornuTensor *x, int64_t axes)
{
    CornuShape shape = cornu_tensor_shape(x);
    for (int i = 0; i < shape.rank; i++)
        if (!(axes >> i & 1)) shape.extent[i] = 1;
    return shape;
}

CornuTensor *cornu__inverse_root(CornuTensor *x, int64_t axes, double epsilon)
{
    CornuTensor *squares = cornu_op_reduce_mean(cornu_op_square(x), axes, true);
    return cornu_op_rsqrt(cornu_op_shift(squares, epsilon));
}

/* y times the scale and plus the offset that the function has, its operands from 1 on. */
static CornuTensor *scaled(CornuTensor *y, CornuTensor *const *in, const double has[2],
                           CornuShape kept)
{
    int next = 1;
    if (has[0] != 0.0) y = cornu_op_multiply(y, cornu_op_reshape(in[next++], kept));
    if (has[1] != 0.0) y = cornu_op_add(y, cornu_op_reshape(in[next], kept));
    return y;
}

/* Calls the function, whose last two numbers say whether there are a scale and an offset. */
static CornuTensor *called(const CornuFunction *function, CornuTensor *x, CornuTensor *scale,
                           CornuTensor *offset, double *numbers, int count)
{
    CornuTensor *in[] = { x, scale ? scale : offset, offset };
    numbers[count - 2] = scale != NULL;
    numbers[count - 1] = offset != NULL;
    if (!x || cornu_error_pending()) return NULL;
    return cornu__function(function, in, 1 + (scale != NULL) + (offset != NULL), numbers, count);
}

/* ---- By mean and variance, or by the mean of squares ---- */

static CornuTensor *layer_norm(CornuTensor *const *in, int count, const double *numbers)
{
    const int64_t axes = (int64_t)numbers[1];
    (void)count;
    CornuTensor *centred = cornu_op_subtract(in[0], cornu_op_reduce_mean(in[0], axes, true));
    CornuTensor *inverse = cornu__inverse_root(centred, axes, numbers[0]);
    return scaled(cornu_op_multiply(centred, inverse), in, numbers + 2, along(in[0], axes));
}

CornuTensor *cornu__layer_norm(CornuTensor *x, CornuTensor *scale, CornuTensor *offset,
                               int64_t axes, double epsilon)
{
    static const CornuFunction function = CORNU__FUNCTION("layer_norm", .formula = layer_norm);
    return called(&function, x, scale, offset, (double[4]){ epsilon, (double)axes }, 4);
}

static CornuTensor *rms_norm(CornuTensor *const *in, int count, const double *numbers)
{
    const int64_t axes = (int64_t)numbers[1];
    (void)count;
    CornuTensor *y = cornu_op_multiply(in[0], cornu__inverse_root(in[0], axes, numbers[0]));
    return scaled(y, in, numbers + 2, along(in[0], axes));
}

CornuTensor *cornu__rms_norm(CornuTensor *x, CornuTensor *scale, int64_t axes, double epsilon)
{
    static const CornuFunction function = CORNU__FUNCTION("rms_norm", .formula = rms_norm);
    return called(&function, x, scale, NULL, (double[4]){ epsilon, (double)axes }, 4);
}

/* ---- By groups of channels ---- */

static CornuTensor *group_norm(CornuTensor *const *in, int count, const double *numbers)
{
    const CornuShape shape = cornu_tensor_shape(in[0]);
    const int        axis = (int)numbers[1];
    CornuShape       split = { .rank = shape.rank + 1 };
    (void)count;
    for (int i = 0; i < shape.rank; i++) split.extent[i + (i > axis)] = shape.extent[i];
    split.extent[axis] = (int64_t)numbers[2];
    split.extent[axis + 1] = shape.extent[axis] / split.extent[axis];
    const int64_t groups = INT64_C(1) << axis, channels = groups << 1;
    const int64_t axes = ((INT64_C(1) << split.rank) - 1) & ~groups & ~INT64_C(1);
    CornuTensor  *x = cornu_op_reshape(in[0], split);
    if (!x) return NULL;
    CornuTensor *centred = cornu_op_subtract(x, cornu_op_reduce_mean(x, axes, true));
    CornuTensor *inverse = cornu__inverse_root(centred, axes, numbers[0]);
    CornuTensor *y = scaled(cornu_op_multiply(centred, inverse), in, numbers + 3,
                            along(x, groups | channels));
    return cornu_op_reshape(y, shape);
}

CornuTensor *cornu__group_norm(CornuTensor *x, CornuTensor *scale, CornuTensor *offset, int axis,
                               int64_t groups, double epsilon)
{
    static const CornuFunction function = CORNU__FUNCTION("group_norm", .formula = group_norm);
    return called(&function, x, scale, offset,
                  (double[5]){ epsilon, (double)axis, (double)groups }, 5);
}

/* ---- By given statistics ---- */

/* y = x scale + shift, where scale and shift are those of channels. */
static CornuTensor *batch_norm(CornuTensor *const *in, int count, const double *numbers)
{
    const bool   has_gamma = numbers[1] != 0.0, has_beta = numbers[2] != 0.0;
    CornuTensor *scale = cornu_op_rsqrt(cornu_op_shift(in[2], numbers[0]));
    (void)count;
    if (has_gamma) scale = cornu_op_multiply(scale, in[3]);
    CornuTensor *beta = has_beta ? in[3 + has_gamma]
                      : scale    ? cornu_op_constant_like(scale, 0.0) : NULL;
    CornuTensor *shift = cornu_op_subtract(beta, cornu_op_multiply(in[1], scale));
    return cornu_op_add(cornu_op_multiply(cornu_op_convert(in[0], CORNU_F32), scale), shift);
}

CornuTensor *cornu__batch_norm(CornuTensor *x, CornuTensor *mean, CornuTensor *variance,
                               CornuTensor *gamma, CornuTensor *beta, double epsilon)
{
    static const CornuFunction function = CORNU__FUNCTION("batch_norm", .formula = batch_norm);
    CornuTensor *const in[] = { x, mean, variance, gamma ? gamma : beta, beta };
    if (cornu_error_pending()) return NULL;
    return cornu__function(&function, in, 3 + (gamma != NULL) + (beta != NULL),
                           (double[]){ epsilon, gamma != NULL, beta != NULL }, 3);
}

/* ---- To length 1 ---- */

static CornuTensor *unit_norm(CornuTensor *const *in, int count, const double *numbers)
{
    CornuTensor *squares = cornu_op_reduce_sum(cornu_op_square(in[0]), (int64_t)numbers[0], true);
    CornuTensor *least = squares ? cornu_op_constant_like(squares, 1e-24) : NULL;
    (void)count;
    return cornu_op_multiply(in[0], cornu_op_rsqrt(cornu_op_maximum(squares, least)));
}

CornuTensor *cornu__unit_norm(CornuTensor *x, int64_t axes)
{
    static const CornuFunction function = CORNU__FUNCTION("unit_norm", .formula = unit_norm);
    return cornu__function(&function, &x, 1, (double[]){ (double)axes }, 1);
}
