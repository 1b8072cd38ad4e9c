/* What the files of operators ask of the graph. */
#include <math.h>

#include "steps.h"

const CornuLiteTensor *cornu__step_in(const CornuLiteStep *step, int i)
{
    return cornu__lite_in(step->graph, step->op, i);
}

CornuStatus cornu__step_affine(const CornuLiteTensor *tensor, CornuAffine *affine)
{
    const CornuLiteQuantization *q = &tensor->quantization;
    if (tensor->dtype != CORNU_LITE_I8)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "tensor %s is %s, expected i8", tensor->name,
                           cornu__lite_dtype_name(tensor->dtype));
    if (tensor->shape.rank > CORNU_INT8_RANK)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "tensor %s has %d axes, at most %d are handled",
                           tensor->name, tensor->shape.rank, CORNU_INT8_RANK);
    if (q->count != 1 || !(q->scales[0] > 0) || !isfinite(q->scales[0]) ||
        q->zero_points[0] < CORNU_INT8_MIN || q->zero_points[0] > CORNU_INT8_MAX)
        return cornu__fail(CORNU_ERR_FORMAT, "tensor %s: expected one scale above 0 and a zero "
                           "point from -128 to 127", tensor->name);
    *affine = (CornuAffine){ q->scales[0], (int32_t)q->zero_points[0] };
    return CORNU_OK;
}

CornuStatus cornu__step_expect_rank(const CornuLiteTensor *tensor, int rank)
{
    if (tensor->shape.rank == rank) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "tensor %s has %d axes, expected %d", tensor->name,
                       tensor->shape.rank, rank);
}

CornuStatus cornu__step_expect_scale(const CornuLiteStep *step, const CornuLiteTensor *tensor)
{
    const CornuAffine y = step->y;
    CornuAffine       x;
    CORNU__TRY(cornu__step_affine(tensor, &x));
    if (x.scale == y.scale && x.zero == y.zero) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "input has scale %g and zero point %d, output %g "
                       "and %d; expected the same", (double)x.scale, (int)x.zero,
                       (double)y.scale, (int)y.zero);
}

const int32_t *cornu__step_integers(const CornuLiteTensor *tensor, int64_t count)
{
    if (tensor && tensor->dtype == CORNU_LITE_I32 && tensor->data &&
        (count < 0 || tensor->bytes == (size_t)count * sizeof(int32_t)))
        return tensor->data;
    cornu__fail(CORNU_ERR_UNSUPPORTED, "tensor %s: expected %lld constant i32",
                tensor ? tensor->name : "(none)", (long long)count);
    return NULL;
}

/* ---- Extents ---- */

void cornu__step_extents(const CornuLiteTensor *tensor, int64_t batch, int64_t *extents)
{
    for (int d = 0; d < tensor->shape.rank; d++)
        extents[d] = tensor->shape.extent[d] == CORNU_NONE ? batch : tensor->shape.extent[d];
}

CornuStatus cornu__step_expect_extents(const CornuLiteTensor *tensor, int rank,
                                       const int64_t *extents)
{
    CornuText        want, got;
    const CornuShape expected = cornu_shape_from(rank, extents);
    if (cornu_shape_equal(tensor->shape, expected)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "tensor %s is %s, expected %s", tensor->name,
                       cornu_shape_print(&got, tensor->shape),
                       cornu_shape_print(&want, expected));
}

CornuStatus cornu__step_fused(CornuLiteStep *step)
{
    const CornuLiteActivation activation = step->op->options.fused_activation;
    if (activation < CORNU_LITE_LINEAR || activation > CORNU_LITE_FUSED_RELU6)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "fused activation %d has no kernel of 8 bits",
                           (int)activation);
    step->bounds = cornu__int8_bounds((CornuFused)activation, step->y);
    if (step->bounds.low <= step->bounds.high) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "the output's scale leaves no value of its activation");
}
