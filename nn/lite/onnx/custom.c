/* Custom operators: those that LiteRT's own packages have, and others, which a registration knows
 * (saving/operators.h). */
#include "onnx_internal.h"

#include <string.h>

typedef CornuLiteStepOnnx Step;

/* A transposed convolution with a bias, in the options TfLiteTransposeConvParams: i32 padding, 1
 * SAME and 2 VALID, and the strides of width and height. Operands: x, the filters, the bias.
 * Source: github.com/google-ai-edge/mediapipe, mediapipe/util/tflite/operations. */
static CornuStatus transpose_conv_bias(const Step *step)
{
    CornuLiteOperator op = *step->op;
    Step              own = *step;
    int32_t           given[3];
    CORNU__TRY(cornu__lite_expect(step, 2, 4));
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

static CornuStatus custom(const Step *step)
{
    if (!strcmp(step->op->custom, "Convolution2DTransposeBias")) return transpose_conv_bias(step);
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "a custom operator that is not registered");
}

const CornuLiteOnnxRow cornu__lite_onnx_custom[] = {
    { CORNU_LITE_CUSTOM, custom },
    { 0 },
};
