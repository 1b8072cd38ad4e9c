#include "steps.h"

#include <math.h>
#include <stdio.h>

#include "../../device/memory_internal.h"

static const struct {
    CornuLiteCode     code;
    CornuLitePrepare *prepare;
} kernels[] = {
    { CORNU_LITE_CONV_2D,                 cornu__step_prepare_conv2d },
    { CORNU_LITE_DEPTHWISE_CONV_2D,       cornu__step_prepare_depthwise },
    { CORNU_LITE_TRANSPOSE_CONV,          cornu__step_prepare_transpose_conv },
    { CORNU_LITE_FULLY_CONNECTED,         cornu__step_prepare_fully_connected },
    { CORNU_LITE_MAX_POOL_2D,             cornu__step_prepare_pool },
    { CORNU_LITE_AVERAGE_POOL_2D,         cornu__step_prepare_pool },
    { CORNU_LITE_MEAN,                    cornu__step_prepare_mean },
    { CORNU_LITE_REDUCE_MAX,              cornu__step_prepare_mean },
    { CORNU_LITE_RESIZE_NEAREST_NEIGHBOR, cornu__step_prepare_resize },
    { CORNU_LITE_ADD,                     cornu__step_prepare_binary },
    { CORNU_LITE_SUB,                     cornu__step_prepare_binary },
    { CORNU_LITE_MUL,                     cornu__step_prepare_binary },
    { CORNU_LITE_MAXIMUM,                 cornu__step_prepare_binary },
    { CORNU_LITE_MINIMUM,                 cornu__step_prepare_binary },
    { CORNU_LITE_PRELU,                   cornu__step_prepare_binary },
    { CORNU_LITE_EXP,                     cornu__step_prepare_table },
    { CORNU_LITE_ELU,                     cornu__step_prepare_table },
    { CORNU_LITE_GELU,                    cornu__step_prepare_table },
    { CORNU_LITE_RELU,                    cornu__step_prepare_table },
    { CORNU_LITE_RELU_N1_TO_1,            cornu__step_prepare_table },
    { CORNU_LITE_RELU6,                   cornu__step_prepare_table },
    { CORNU_LITE_LEAKY_RELU,              cornu__step_prepare_table },
    { CORNU_LITE_LOGISTIC,                cornu__step_prepare_table },
    { CORNU_LITE_TANH,                    cornu__step_prepare_table },
    { CORNU_LITE_SOFTMAX,                 cornu__step_prepare_softmax },
    { CORNU_LITE_QUANTIZE,                cornu__step_prepare_quantize },
    { CORNU_LITE_DEQUANTIZE,              cornu__step_prepare_dequantize },
    { CORNU_LITE_RESHAPE,                 cornu__step_prepare_reshape },
    { CORNU_LITE_SQUEEZE,                 cornu__step_prepare_reshape },
    { CORNU_LITE_EXPAND_DIMS,             cornu__step_prepare_reshape },
    { CORNU_LITE_PAD,                     cornu__step_prepare_pad },
    { CORNU_LITE_PADV2,                   cornu__step_prepare_pad },
    { CORNU_LITE_TRANSPOSE,               cornu__step_prepare_transpose },
    { CORNU_LITE_CONCATENATION,           cornu__step_prepare_concatenation },
    { CORNU_LITE_STRIDED_SLICE,           cornu__step_prepare_strided_slice },
};

static void run_nothing(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    (void)step;
    (void)bound;
}

/* Shapes that the graph computes, in i32: kernels have those of the tensors, and refuse to read
 * values that are not constants. */
CornuStatus cornu__step_prepare_integers(CornuLiteStep *step)
{
    for (int i = 0; i < step->graph->output_count; i++)
        if (step->graph->outputs[i].tensor == step->op->out[0])
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "its integers are an output");
    step->run = run_nothing;
    return CORNU_OK;
}

static bool makes_integers(const CornuLiteGraph *graph, const CornuLiteOperator *op)
{
    return op->out_count == 1 && graph->tensors[op->out[0]].dtype == CORNU_LITE_I32 &&
           (op->code == CORNU_LITE_SHAPE || op->code == CORNU_LITE_STRIDED_SLICE ||
            op->code == CORNU_LITE_PACK);
}

CornuStatus cornu__step_prepare(const CornuLiteGraph *graph, int op, CornuLiteStep *step)
{
    const CornuLiteOperator *operator = &graph->operators[op];
    const char              *name = cornu__lite_code_name(operator->code);
    char                     prefix[96];
    snprintf(prefix, sizeof prefix, "operator %d, %s", op, name ? name : "unknown");
    *step = (CornuLiteStep){ .graph = graph, .op = operator };
    if (makes_integers(graph, operator))
        return cornu__fail_prefix(cornu__step_prepare_integers(step), prefix);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].code == operator->code)
            return cornu__fail_prefix(kernels[i].prepare(step), prefix);
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: has no kernel of 8 bits", prefix);
}

void cornu__lite_step_free(CornuLiteStep *step)
{
    cornu__int8_pack_free(step->packed);
    cornu__release(step->multipliers);
    cornu__release(step->factors);
}

/* ---- Operands ---- */

static const CornuLiteTensor *tensor_of(const CornuLiteStep *step, int number)
{
    return number == CORNU_LITE_NONE ? NULL : &step->graph->tensors[number];
}

const CornuLiteTensor *cornu__step_in(const CornuLiteStep *step, int i)
{
    return i < step->op->in_count ? tensor_of(step, step->op->in[i]) : NULL;
}

const CornuLiteTensor *cornu__step_out(const CornuLiteStep *step, int i)
{
    return tensor_of(step, step->op->out[i]);
}

const void *cornu__step_in_data(const CornuLiteStep *step, const CornuLiteBound *bound, int i)
{
    return bound->tensors[step->op->in[i]];
}

void *cornu__step_out_data(const CornuLiteStep *step, const CornuLiteBound *bound, int i)
{
    return bound->tensors[step->op->out[i]];
}

CornuStatus cornu__step_expect(const CornuLiteStep *step, int least, int most, int results)
{
    const CornuLiteOperator *op = step->op;
    if (op->in_count < least || op->in_count > most || op->out_count != results)
        return cornu__fail(CORNU_ERR_FORMAT, "has %d inputs and %d outputs, expected %d and %d",
                           op->in_count, op->out_count, least, results);
    for (int i = 0; i < least; i++)
        if (!cornu__step_in(step, i))
            return cornu__fail(CORNU_ERR_FORMAT, "input %d is missing", i);
    for (int i = 0; i < results; i++)
        if (!cornu__step_out(step, i) || cornu__step_out(step, i)->data)
            return cornu__fail(CORNU_ERR_FORMAT, "output %d is not a tensor to write", i);
    return CORNU_OK;
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

CornuStatus cornu__step_expect_same_scale(CornuAffine x, CornuAffine y)
{
    if (x.scale == y.scale && x.zero == y.zero) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "input has scale %g and zero point %d, output %g "
                       "and %d; expected the same", (double)x.scale, (int)x.zero,
                       (double)y.scale, (int)y.zero);
}

const int32_t *cornu__step_integers(const CornuLiteTensor *tensor, int64_t count)
{
    if (!tensor || tensor->dtype != CORNU_LITE_I32 || !tensor->data ||
        (count >= 0 && tensor->bytes != (size_t)count * sizeof(int32_t))) {
        cornu__fail(CORNU_ERR_UNSUPPORTED, "tensor %s: expected %lld constant i32",
                    tensor ? tensor->name : "(none)", (long long)count);
        return NULL;
    }
    return tensor->data;
}

/* ---- Extents ---- */

void cornu__step_extents(const CornuLiteTensor *tensor, int64_t batch, int64_t *extents)
{
    for (int d = 0; d < tensor->shape.rank; d++)
        extents[d] = tensor->shape.extent[d] == CORNU_NONE ? batch : tensor->shape.extent[d];
}

int64_t cornu__step_tensor_count(const CornuLiteTensor *tensor, int64_t batch)
{
    return cornu__lite_count(tensor->shape, batch);
}

CornuStatus cornu__step_expect_extents(const CornuLiteTensor *tensor, int rank,
                                       const int64_t *extents)
{
    CornuText         want, got;
    const CornuShape  expected = cornu_shape_from(rank, extents);
    if (cornu_shape_equal(tensor->shape, expected)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "tensor %s is %s, expected %s", tensor->name,
                       cornu_shape_print(&got, tensor->shape),
                       cornu_shape_print(&want, expected));
}

CornuStatus cornu__step_fused(const CornuLiteStep *step, CornuAffine y, CornuBounds *bounds)
{
    const CornuLiteActivation activation = step->op->options.fused_activation;
    if (activation < CORNU_LITE_LINEAR || activation > CORNU_LITE_FUSED_RELU6)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "fused activation %d has no kernel of 8 bits",
                           (int)activation);
    *bounds = cornu__int8_bounds((CornuFused)activation, y);
    if (bounds->low > bounds->high)
        return cornu__fail(CORNU_ERR_FORMAT, "the output's scale leaves no value of its activation");
    return CORNU_OK;
}
