#include "steps.h"

#include <limits.h>
#include <stdio.h>

#include "../../../device/memory_internal.h"

/* What is checked before an operator's own preparation: its operands, that operand and result are
 * int8, unless it converts, and that they have the same shape. */
typedef enum { INT8, ELEMENTWISE, CONVERTS } Form;

static const struct {
    CornuLiteCode     code;
    int               least, most;     /* operands */
    Form              form;
    CornuLitePrepare *prepare;
} kernels[] = {
    { CORNU_LITE_CONV_2D,                 2, 3, INT8, cornu__step_prepare_conv2d },
    { CORNU_LITE_DEPTHWISE_CONV_2D,       2, 3, INT8, cornu__step_prepare_depthwise },
    { CORNU_LITE_TRANSPOSE_CONV,          3, 4, INT8, cornu__step_prepare_transpose_conv },
    { CORNU_LITE_FULLY_CONNECTED,         2, 3, INT8, cornu__step_prepare_fully_connected },
    { CORNU_LITE_MAX_POOL_2D,             1, 1, INT8, cornu__step_prepare_pool },
    { CORNU_LITE_AVERAGE_POOL_2D,         1, 1, INT8, cornu__step_prepare_pool },
    { CORNU_LITE_MEAN,                    2, 2, INT8, cornu__step_prepare_mean },
    { CORNU_LITE_REDUCE_MAX,              2, 2, INT8, cornu__step_prepare_mean },
    { CORNU_LITE_RESIZE_NEAREST_NEIGHBOR, 2, 2, INT8, cornu__step_prepare_resize },
    { CORNU_LITE_ADD,                     2, 2, INT8, cornu__step_prepare_binary },
    { CORNU_LITE_SUB,                     2, 2, INT8, cornu__step_prepare_binary },
    { CORNU_LITE_MUL,                     2, 2, INT8, cornu__step_prepare_binary },
    { CORNU_LITE_MAXIMUM,                 2, 2, INT8, cornu__step_prepare_binary },
    { CORNU_LITE_MINIMUM,                 2, 2, INT8, cornu__step_prepare_binary },
    { CORNU_LITE_PRELU,                   2, 2, INT8, cornu__step_prepare_binary },
    { CORNU_LITE_EXP,                     1, 1, ELEMENTWISE, cornu__step_prepare_table },
    { CORNU_LITE_ELU,                     1, 1, ELEMENTWISE, cornu__step_prepare_table },
    { CORNU_LITE_GELU,                    1, 1, ELEMENTWISE, cornu__step_prepare_table },
    { CORNU_LITE_RELU,                    1, 1, ELEMENTWISE, cornu__step_prepare_table },
    { CORNU_LITE_RELU_N1_TO_1,            1, 1, ELEMENTWISE, cornu__step_prepare_table },
    { CORNU_LITE_RELU6,                   1, 1, ELEMENTWISE, cornu__step_prepare_table },
    { CORNU_LITE_LEAKY_RELU,              1, 1, ELEMENTWISE, cornu__step_prepare_table },
    { CORNU_LITE_LOGISTIC,                1, 1, ELEMENTWISE, cornu__step_prepare_table },
    { CORNU_LITE_TANH,                    1, 1, ELEMENTWISE, cornu__step_prepare_table },
    { CORNU_LITE_SOFTMAX,                 1, 1, ELEMENTWISE, cornu__step_prepare_softmax },
    { CORNU_LITE_QUANTIZE,                1, 1, CONVERTS, cornu__step_prepare_quantize },
    { CORNU_LITE_DEQUANTIZE,              1, 1, CONVERTS, cornu__step_prepare_dequantize },
    { CORNU_LITE_RESHAPE,                 1, 2, INT8, cornu__step_prepare_reshape },
    { CORNU_LITE_SQUEEZE,                 1, 2, INT8, cornu__step_prepare_reshape },
    { CORNU_LITE_EXPAND_DIMS,             1, 2, INT8, cornu__step_prepare_reshape },
    { CORNU_LITE_PAD,                     2, 2, INT8, cornu__step_prepare_pad },
    { CORNU_LITE_PADV2,                   3, 3, INT8, cornu__step_prepare_pad },
    { CORNU_LITE_TRANSPOSE,               2, 2, INT8, cornu__step_prepare_transpose },
    { CORNU_LITE_CONCATENATION,     1, INT_MAX, INT8, cornu__step_prepare_concatenation },
    { CORNU_LITE_STRIDED_SLICE,           4, 4, INT8, cornu__step_prepare_strided_slice },
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* ---- Shapes that the graph computes ---- */

static void run_nothing(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    (void)step;
    (void)bound;
}

/* In i32: kernels have those of the tensors, and refuse to read values that are not constants. */
static CornuStatus prepare_integers(CornuLiteStep *step)
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

/* ---- Others ---- */

static CornuStatus check_operands(const CornuLiteStep *step, int least, int most)
{
    const CornuLiteOperator *op = step->op;
    if (op->in_count < least || op->in_count > most || op->out_count != 1)
        return cornu__fail(CORNU_ERR_FORMAT, "has %d inputs and %d outputs, expected %d and 1",
                           op->in_count, op->out_count, least);
    for (int i = 0; i < least; i++)
        if (!cornu__step_in(step, i))
            return cornu__fail(CORNU_ERR_FORMAT, "input %d is missing", i);
    if (op->out[0] == CORNU_LITE_NONE || step->graph->tensors[op->out[0]].data)
        return cornu__fail(CORNU_ERR_FORMAT, "output 0 is not a tensor to write");
    return CORNU_OK;
}

/* That operands and result have one scale where the specification demands it: scales.h. */
static CornuStatus check_shared_scale(const CornuLiteStep *step)
{
    const CornuLiteCode code = step->op->code;
    const int sharing = cornu__lite_shares_scale(code) ? step->op->in_count
                                                       : cornu__lite_keeps_scale(code);
    for (int i = 0; i < sharing; i++) {
        const CornuLiteTensor *in = cornu__step_in(step, i);
        if (!in) return cornu__fail(CORNU_ERR_FORMAT, "input %d is missing", i);
        CORNU__TRY(cornu__step_expect_scale(step, in));
    }
    return CORNU_OK;
}

static CornuStatus check_fixed_scale(const CornuLiteStep *step)
{
    const CornuAffine y = step->y;
    CornuAffine       fixed;
    if (!cornu__lite_fixed_scale(step->op->code, &fixed) ||
        (y.scale == fixed.scale && y.zero == fixed.zero))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "output has scale %g and zero point %d, expected "
                       "%g and %d", (double)y.scale, (int)y.zero, (double)fixed.scale,
                       (int)fixed.zero);
}

static CornuStatus prepare(CornuLiteStep *step, int kernel)
{
    CORNU__TRY(check_operands(step, kernels[kernel].least, kernels[kernel].most));
    cornu__lite_product(step->op->code, &step->product);
    step->in = cornu__step_in(step, step->product.x);
    step->out = &step->graph->tensors[step->op->out[0]];
    if (kernels[kernel].form != INT8)
        CORNU__TRY(cornu__step_expect_extents(step->out, step->in->shape.rank,
                                              step->in->shape.extent));
    if (kernels[kernel].form != CONVERTS) {
        CORNU__TRY(cornu__step_affine(step->in, &step->x));
        CORNU__TRY(cornu__step_affine(step->out, &step->y));
        CORNU__TRY(check_shared_scale(step));
    }
    CORNU__TRY(kernels[kernel].prepare(step));
    return check_fixed_scale(step);
}

CornuStatus cornu__step_find(const CornuLiteGraph *graph, int op, int *kernel)
{
    CornuLitePlace place;
    *kernel = 0;
    if (makes_integers(graph, &graph->operators[op])) return CORNU_OK;
    while (*kernel < KERNELS && kernels[*kernel].code != graph->operators[op].code) ++*kernel;
    if (*kernel < KERNELS) return CORNU_OK;
    cornu__lite_place(graph, op, &place);
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: has no kernel of 8 bits", place.text);
}

CornuStatus cornu__step_prepare(const CornuLiteGraph *graph, int op, CornuLiteStep *step)
{
    CornuLitePlace place;
    int            kernel;
    *step = (CornuLiteStep){ .graph = graph, .op = &graph->operators[op] };
    CORNU__TRY(cornu__step_find(graph, op, &kernel));
    cornu__lite_place(graph, op, &place);
    CORNU__TRY(cornu__fail_prefix(makes_integers(graph, step->op) ? prepare_integers(step)
                                                                  : prepare(step, kernel),
                                  place.text));
    step->to = step->op->out[0];
    return CORNU_OK;
}

void cornu__lite_step_run(const CornuLiteStep *step, CornuLiteBound *bound)
{
    if (step->to == CORNU_LITE_NONE) return;
    if (step->in) {
        bound->x = bound->tensors[step->op->in[step->product.x]];
        bound->y = bound->tensors[step->to];
        bound->count = cornu__lite_count(step->out->shape, bound->batch);
        cornu__step_extents(step->in, bound->batch, bound->x_extents);
        cornu__step_extents(step->out, bound->batch, bound->y_extents);
    }
    step->run(step, bound);
}

void cornu__lite_step_free(CornuLiteStep *step)
{
    cornu__int8_pack_free(step->packed);
    cornu__int8_channels_free(step->channels);
    cornu__release(step->multipliers);
    cornu__release(step->factors);
}
