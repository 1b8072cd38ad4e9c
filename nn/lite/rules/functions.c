/* Functions that layers call by name (tensor/functions/README.md) as the operators that LiteRT has
 * for them. A function without a row, or of operands that its row does not take, is written by its
 * ops. */
#include "recorded_internal.h"

#include <string.h>

#include "../../../device/definition_internal.h"
#include "../../saving/onnx/recorded_layer.h"

typedef CornuLiteOp Op;

static const double *numbers_of(const Op *op) { return op->attributes->custom.numbers; }

/* An operator of operand 0, with a result of its shape. */
static CornuStatus of_x(const Op *op, CornuLiteCode code, const CornuLiteOptions *options)
{
    int x, order[CORNU_MAX_RANK];
    CORNU__TRY(cornu__lite_full(op, 0, &x));
    const int lying = cornu__lite_source(op->to, x, order), from = lying < 0 ? x : lying;
    const int y = cornu__lite_node(op->to, code, &from, 1, shape_of(op->to, from), options);
    return cornu__lite_op_give(op, lying < 0 ? y : cornu__lite_turn(op->to, y, order));
}

static CornuStatus leaky_relu(const Op *op)
{
    return of_x(op, CORNU_LITE_LEAKY_RELU,
                &(CornuLiteOptions){ .alpha = (float)numbers_of(op)[0] });
}

static CornuStatus gelu(const Op *op)
{
    return of_x(op, CORNU_LITE_GELU, &(CornuLiteOptions){ .approximate = false });
}

static CornuStatus gelu_tanh(const Op *op)
{
    return of_x(op, CORNU_LITE_GELU, &(CornuLiteOptions){ .approximate = true });
}

static CornuStatus hard_swish(const Op *op) { return of_x(op, CORNU_LITE_HARD_SWISH, NULL); }

static bool is_rectifier(const CornuOpCall *call)
{
    const double *numbers = call->attributes->custom.numbers;
    return (numbers[0] == 0.0 || (numbers[0] == -1.0 && numbers[1] == 1.0)) &&
           call->in[0].dtype == CORNU_F32;
}

/* The operators before them may take rectifiers as their own activations. */
static CornuStatus clip(const Op *op)
{
    const double *numbers = numbers_of(op);
    if (numbers[0] != 0.0) return of_x(op, CORNU_LITE_RELU_N1_TO_1, NULL);
    if (numbers[1] == 6.0) return of_x(op, CORNU_LITE_RELU6, NULL);
    CORNU__TRY(of_x(op, CORNU_LITE_RELU, NULL));
    const int x = op->program->tensors[op->out];
    return cornu__lite_op_give(op, cornu__lite_with(op->to, CORNU_LITE_MINIMUM, x, numbers[1]));
}

static CornuStatus prelu(const Op *op)
{
    int in[2];
    for (int i = 0; i < 2; i++) CORNU__TRY(cornu__lite_full(op, i, &in[i]));
    return cornu__lite_op_give(op, cornu__lite_node(op->to, CORNU_LITE_PRELU, in, 2,
                                                    shape_of(op->to, in[0]), NULL));
}

static CornuStatus mean(const Op *op)
{
    int x;
    CORNU__TRY(cornu__lite_full(op, 0, &x));
    return cornu__lite_op_give(op, cornu__lite_reduce(op->to, CORNU_LITE_MEAN, x,
                                                      (int64_t)numbers_of(op)[0],
                                                      numbers_of(op)[1] != 0.0));
}

/* ---- Images: pixels have their centres at 0.5, 1.5, … Sequences have one column ---- */

static CornuStatus resized(const Op *op, CornuLiteCode code)
{
    const CornuLiteOptions options = { .half_pixel_centers = true };
    const CornuShape       size = cornu__lite_value_shape(op->program, op->out);
    const bool             sequence = size.rank == 3;
    CornuShape             made = size;
    int                    in[2];
    CORNU__TRY(cornu__lite_full(op, 0, &in[0]));
    if (sequence) {
        CornuShape wide = shape_of(op->to, in[0]);
        made = cornu_shape(size.extent[0], size.extent[1], 1, size.extent[2]);
        wide = cornu_shape(wide.extent[0], wide.extent[1], 1, wide.extent[2]);
        in[0] = cornu__lite_reshape(op->to, in[0], wide);
    }
    const int32_t extents[] = { (int32_t)made.extent[1], (int32_t)made.extent[2] };
    in[1] = cornu__lite_add_integers(op->to->graph, extents, 2);
    const int y = cornu__lite_node(op->to, code, in, 2, made, &options);
    return cornu__lite_op_give(op, sequence ? cornu__lite_reshape(op->to, y, size) : y);
}

static bool is_flat(const CornuOpCall *call) { return call->in[0].shape.rank <= 4; }

static CornuStatus repeat(const Op *op)
{
    return resized(op, CORNU_LITE_RESIZE_NEAREST_NEIGHBOR);
}

static CornuStatus resize(const Op *op)
{
    return resized(op, numbers_of(op)[0] == CORNU_NEAREST ? CORNU_LITE_RESIZE_NEAREST_NEIGHBOR
                                                          : CORNU_LITE_RESIZE_BILINEAR);
}

/* ---- All ---- */

static const struct {
    const char      *name;
    CornuLiteWriter *write;
    bool           (*takes)(const CornuOpCall *call);   /* NULL: any call */
} rows[] = {
    { "clip", clip, is_rectifier },
    { "dense", cornu__lite_dense, NULL },
    { "gelu", gelu, NULL },
    { "gelu_tanh", gelu_tanh, NULL },
    { "gru", cornu__lite_recurrence, cornu__lite_takes_recurrence },
    { "hard_swish", hard_swish, NULL },
    { "leaky_relu", leaky_relu, NULL },
    { "lstm", cornu__lite_recurrence, cornu__lite_takes_recurrence },
    { "prelu", prelu, NULL },
    { "reduce_mean", mean, cornu__reduces_some },
    { "repeat", repeat, is_flat },
    { "resize", resize, cornu__resizes_plainly },
    { "simple_rnn", cornu__lite_recurrence, cornu__lite_takes_recurrence },
};

/* -1 if there is none. */
static int row_of(const CornuAttributes *attributes)
{
    const CornuDefinition *definition = attributes->custom.definition;
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows) && definition->by_body; i++)
        if (!strcmp(rows[i].name, definition->name)) return i;
    return -1;
}

bool cornu__lite_has_function(const CornuOpCall *call)
{
    const int row = call->id == CORNU_OP_CUSTOM ? row_of(call->attributes) : -1;
    return row >= 0 && (!rows[row].takes || rows[row].takes(call));
}

static CornuStatus function(const Op *op) { return rows[row_of(op->attributes)].write(op); }

const CornuLiteOpRow cornu__lite_writers_functions[] = { { CORNU_OP_CUSTOM, function }, { 0 } };
