/*
 * Versions of operators, which runtimes check, and of runtimes, which files name for users.
 * Source: github.com/google-ai-edge/LiteRT, tflite/converter/tools/versioning/op_version.cc,
 * runtime_version.cc.
 */
#include "options_internal.h"

#include <stdio.h>
#include <string.h>

static int int8_version(CornuLiteCode code)
{
    switch (code) {
#define OPERATOR(number, name, options, int8) case number: return int8;
#include "../graph/operators.def"
#undef OPERATOR
    }
    return 1;
}

static bool any_int8(const CornuLiteGraph *graph, const CornuLiteOperator *op)
{
    for (int i = 0; i < op->in_count; i++) {
        const CornuLiteTensor *in = cornu__lite_in(graph, op, i);
        if (in && in->dtype == CORNU_LITE_I8) return true;
    }
    return false;
}

static int most_rank(const CornuLiteGraph *graph, const CornuLiteOperator *op)
{
    int rank = 0;
    for (int i = 0; i < op->in_count; i++) {
        const CornuLiteTensor *in = cornu__lite_in(graph, op, i);
        if (in && in->shape.rank > rank) rank = in->shape.rank;
    }
    return rank;
}

/* A product of int8 whose scales give a factor of 1 or more. */
static bool scales_up(const CornuLiteGraph *graph, const CornuLiteOperator *op)
{
    const CornuLiteQuantization *a = &graph->tensors[op->in[0]].quantization;
    const CornuLiteQuantization *b = &graph->tensors[op->in[1]].quantization;
    const CornuLiteQuantization *y = &graph->tensors[op->out[0]].quantization;
    return a->count && b->count && y->count && a->scales[0] * b->scales[0] / y->scales[0] >= 1.0f;
}

/* A convolution whose filters see some of the channels only. */
static bool is_grouped(const CornuLiteGraph *graph, const CornuLiteOperator *op)
{
    const CornuShape x = graph->tensors[op->in[0]].shape, w = graph->tensors[op->in[1]].shape;
    return x.rank == 4 && w.rank == 4 && x.extent[3] != w.extent[3];
}

int cornu__lite_version(const CornuLiteGraph *graph, const CornuLiteOperator *op)
{
    const CornuLiteOptions *options = &op->options;
    const bool              int8 = any_int8(graph, op);
    const int               usual = int8 ? int8_version(op->code) : 1;
    const int               rank = most_rank(graph, op);
    switch (op->code) {
    case CORNU_LITE_CONV_2D: return is_grouped(graph, op) ? 6 : usual;
    case CORNU_LITE_DEPTHWISE_CONV_2D:
        return !int8 && (options->dilation_h > 1 || options->dilation_w > 1) ? 2 : usual;
    case CORNU_LITE_FULLY_CONNECTED:
        return op->in_count == 2 ? 6 : options->keep_dims ? 5 : usual;
    case CORNU_LITE_TRANSPOSE_CONV:
        return options->fused_activation ? 4 : cornu__lite_in(graph, op, 3) ? 3 : usual;
    case CORNU_LITE_MUL: return int8 && scales_up(graph, op) ? 3 : usual;
    case CORNU_LITE_RESIZE_BILINEAR: return options->half_pixel_centers ? 3 : usual;
    case CORNU_LITE_RESIZE_NEAREST_NEIGHBOR:
        return options->half_pixel_centers || options->align_corners ? 3 : usual;
    case CORNU_LITE_STRIDED_SLICE:
        return options->ellipsis_mask || options->new_axis_mask ? 6 : rank > 4 ? 4 : usual;
    case CORNU_LITE_GATHER: return options->batch_dims ? 5 : usual;
    case CORNU_LITE_BROADCAST_TO: return int8 ? usual : 2;
    case CORNU_LITE_PAD:
    case CORNU_LITE_PADV2: return rank > 4 ? 4 : usual;
    case CORNU_LITE_TRANSPOSE: return rank > 6 ? 8 : rank > 5 ? 6 : rank > 4 ? 4 : usual;
    case CORNU_LITE_SLICE: return rank > 4 ? 5 : usual;
    case CORNU_LITE_MAXIMUM:
    case CORNU_LITE_MINIMUM:
    case CORNU_LITE_SUB: return rank > 4 ? 3 : usual;
    case CORNU_LITE_DIV: return rank > 4 ? 2 : usual;
    default: return usual;
    }
}

/* 203 is 2.3.0. Those after 1.14.0, which has the first versions for int8. */
static int runtime_of(CornuLiteCode code, int version)
{
    static const struct { CornuLiteCode code; int version; int runtime; } rows[] = {
        { CORNU_LITE_CONV_2D, 6, 209 },
        { CORNU_LITE_FULLY_CONNECTED, 5, 200 },
        { CORNU_LITE_FULLY_CONNECTED, 6, 201 },
        { CORNU_LITE_TRANSPOSE_CONV, 2, 202 },
        { CORNU_LITE_TRANSPOSE_CONV, 3, 203 },
        { CORNU_LITE_TRANSPOSE_CONV, 4, 213 },
        { CORNU_LITE_MUL, 3, 115 },
        { CORNU_LITE_RESIZE_BILINEAR, 3, 202 },
        { CORNU_LITE_RESIZE_NEAREST_NEIGHBOR, 3, 203 },
        { CORNU_LITE_STRIDED_SLICE, 4, 202 },
        { CORNU_LITE_STRIDED_SLICE, 6, 206 },
        { CORNU_LITE_GATHER, 5, 205 },
        { CORNU_LITE_PAD, 4, 206 },
        { CORNU_LITE_PADV2, 4, 206 },
        { CORNU_LITE_TRANSPOSE, 4, 203 },
        { CORNU_LITE_TRANSPOSE, 6, 212 },
        { CORNU_LITE_TRANSPOSE, 8, 222 },
        { CORNU_LITE_SLICE, 5, 205 },
        { CORNU_LITE_MAXIMUM, 3, 203 },
        { CORNU_LITE_MINIMUM, 3, 203 },
        { CORNU_LITE_SUB, 3, 203 },
        { CORNU_LITE_DIV, 2, 203 },
        { CORNU_LITE_SUM, 2, 115 },
        { CORNU_LITE_RELU, 2, 201 },
        { CORNU_LITE_EXP, 2, 212 },
        { CORNU_LITE_LOG, 2, 215 },
        { CORNU_LITE_SQRT, 2, 221 },
        { CORNU_LITE_RSQRT, 2, 205 },
        { CORNU_LITE_SQUARED_DIFFERENCE, 2, 205 },
        { CORNU_LITE_ABS, 2, 204 },
        { CORNU_LITE_FILL, 3, 205 },
        { CORNU_LITE_BROADCAST_TO, 2, 205 },
        { CORNU_LITE_BROADCAST_TO, 3, 205 },
        { CORNU_LITE_SIGN, 1, 212 },
        { CORNU_LITE_REVERSE_V2, 3, 205 },
        { CORNU_LITE_HARD_SWISH, 1, 115 },
        { CORNU_LITE_BATCH_MATMUL, 1, 203 },
        { CORNU_LITE_BATCH_MATMUL, 2, 203 },
        { CORNU_LITE_GELU, 1, 209 },
        { CORNU_LITE_GELU, 2, 209 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code && rows[i].version == version) return rows[i].runtime;
    return 114;
}

void cornu__lite_runtime(const CornuLiteGraph *graph, char text[16])
{
    int most = runtime_of(CORNU_LITE_ADD, 1);
    for (int i = 0; i < graph->operator_count; i++) {
        const CornuLiteOperator *op = &graph->operators[i];
        const int runtime = runtime_of(op->code, cornu__lite_version(graph, op));
        if (runtime > most) most = runtime;
    }
    memset(text, 0, 16);
    snprintf(text, 16, "%d.%d.0", most / 100, most % 100);
}
