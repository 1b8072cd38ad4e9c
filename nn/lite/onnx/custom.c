/* Custom operators: those that LiteRT's own packages have, and others, which a registration knows
 * (saving/operators.h). */
#include "onnx_internal.h"

#include "../../saving/operators.h"

#include <stdio.h>
#include <string.h>

#include "../../../device/memory_internal.h"

/* A transposed convolution with a bias, in the options TfLiteTransposeConvParams: i32 padding, 1
 * SAME and 2 VALID, and the strides of width and height. Operands: x, the filters, the bias.
 * Source: github.com/google-ai-edge/mediapipe, mediapipe/util/tflite/operations. */
static CornuStatus transpose_conv_bias(const Step *step)
{
    CornuLiteOperator op = *step->op;
    Step              own = *step;
    int32_t           given[3];
    CORNU__TRY(cornu__lite_expect(step, 2));
    if (op.custom_bytes < sizeof given)
        return cornu__fail(CORNU_ERR_FORMAT, "its options have %zu bytes, expected at least %zu",
                           op.custom_bytes, sizeof given);
    memcpy(given, op.custom_options, sizeof given);
    if (given[0] < 1 || given[0] > 2 || given[1] < 1 || given[2] < 1)
        return cornu__fail(CORNU_ERR_FORMAT, "the padding %d and the strides %d and %d",
                           (int)given[0], (int)given[1], (int)given[2]);
    op.options.padding = given[0] == 1 ? CORNU_LITE_SAME : CORNU_LITE_VALID;
    op.options.stride_w = given[1];
    op.options.stride_h = given[2];
    own.op = &op;
    return cornu__lite_transposed(&own, 0, 2);
}

/* As a node of the type "tflite:NAME", whose options are the bytes one by one. */
static CornuStatus registered(const Step *step)
{
    const CornuLiteOperator *op = step->op;
    CornuOnnxAttribute       options = { .name = "options", .count = (int)op->custom_bytes };
    char                     type[220];
    snprintf(type, sizeof type, "tflite:%.200s", op->custom);
    int64_t *bytes = cornu__allocate(op->custom_bytes, sizeof *bytes);
    int     *in = cornu__allocate((size_t)op->in_count, sizeof *in);
    if (bytes && in) {
        for (size_t i = 0; i < op->custom_bytes; i++) bytes[i] = op->custom_options[i];
        for (int i = 0; i < op->in_count; i++) in[i] = cornu__lite_value(step, i);
        options.integers = bytes;
        const int y = cornu__onnx_node(step->to, type, in, op->in_count, &options,
                                       op->custom_bytes > 0, op->out_count);
        for (int i = 0; i < op->out_count; i++) cornu__lite_give_at(step, i, y + i);
    }
    const bool made = bytes && in;
    cornu__release(bytes);
    cornu__release(in);
    return made ? CORNU_OK : CORNU_ERR_MEMORY;
}

static CornuStatus custom(const Step *step)
{
    if (!strcmp(step->op->custom, "Convolution2DTransposeBias")) return transpose_conv_bias(step);
    if (!step->of->loads)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "a custom operator has no ONNX nodes");
    if (cornu_operator_registered("tflite", step->op->custom)) return registered(step);
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "a custom operator that is not registered: "
                       "cornu_register_operator (saving/operators.h) with the domain \"tflite\"");
}

const CornuLiteOnnxRow cornu__lite_onnx_custom[] = {
    { CORNU_LITE_CUSTOM, 0, .rule = custom },
    { 0 },
};
