#include "steps.h"

#include <stdio.h>

#include "../../../device/memory_internal.h"

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
