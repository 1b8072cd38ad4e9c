/* Folding constants and activations into the operators before them: from_model.h. */
#include "from_model.h"

#include "../../../device/memory_internal.h"

#include <string.h>

enum { NOTHING = -1, SEVERAL = -2 };

/* Of each tensor: the operator that computes it, and the one that reads it. */
typedef struct {
    CornuLiteGraph *graph;
    int            *maker, *reader;
    bool           *removed;   /* of each operator */
} Fold;

static CornuStatus list_uses(Fold *fold)
{
    const CornuLiteGraph *graph = fold->graph;
    const size_t          count = (size_t)graph->tensor_count;
    fold->maker = cornu__allocate(count, sizeof *fold->maker);
    fold->reader = cornu__allocate(count, sizeof *fold->reader);
    fold->removed = cornu__allocate((size_t)graph->operator_count, sizeof *fold->removed);
    if (!fold->maker || !fold->reader || !fold->removed) return CORNU_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) fold->maker[i] = fold->reader[i] = NOTHING;
    for (int i = 0; i < graph->operator_count; i++) {
        const CornuLiteOperator *op = &graph->operators[i];
        for (int k = 0; k < op->out_count; k++) fold->maker[op->out[k]] = i;
        for (int k = 0; k < op->in_count; k++)
            if (op->in[k] >= 0)
                fold->reader[op->in[k]] = fold->reader[op->in[k]] == NOTHING ? i : SEVERAL;
    }
    for (int i = 0; i < graph->output_count; i++)
        fold->reader[graph->outputs[i].tensor] = SEVERAL;
    return CORNU_OK;
}

/* The operator whose result is x, possibly in another shape with the same last extent, if nothing
 * else reads that; or NULL. */
static CornuLiteOperator *maker_of(const Fold *fold, int x)
{
    CornuLiteGraph  *graph = fold->graph;
    const CornuShape shape = graph->tensors[x].shape;
    for (;;) {
        const CornuShape here = graph->tensors[x].shape;
        if (fold->maker[x] < 0 || fold->reader[x] < 0 || here.rank < 1 ||
            here.extent[here.rank - 1] != shape.extent[shape.rank - 1])
            return NULL;
        CornuLiteOperator *op = &graph->operators[fold->maker[x]];
        if (op->code != CORNU_LITE_RESHAPE) return op;
        x = op->in[0];
    }
}

/* Removes an operator: what it computes is what computed x. */
static void remove_operator(Fold *fold, int i, int x)
{
    const int out = fold->graph->operators[i].out[0], maker = fold->maker[x];
    fold->graph->operators[maker].out[0] = out;
    fold->maker[out] = maker;
    fold->maker[x] = NOTHING;
    fold->removed[i] = true;
}

/* ---- Constants ---- */

/* The operand of weights and that of the bias, and whether channels are the last axis of the
 * weights, else the first; NULL for other operators. */
typedef struct { CornuLiteCode code; int weights, bias; bool last; } Product;
static const Product *product_of(CornuLiteCode code)
{
    static const Product products[] = {
        { CORNU_LITE_CONV_2D, 1, 2, false },
        { CORNU_LITE_DEPTHWISE_CONV_2D, 1, 2, true },
        { CORNU_LITE_FULLY_CONNECTED, 1, 2, false },
        { CORNU_LITE_TRANSPOSE_CONV, 1, 3, false },
    };
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (products[i].code == code) return &products[i];
    return NULL;
}

/* Whether operand i is a constant that only this operator reads; true for an omitted one. */
static bool is_own(const Fold *fold, const CornuLiteOperator *op, int i)
{
    if (i >= op->in_count || op->in[i] < 0) return true;
    return fold->graph->tensors[op->in[i]].data && fold->reader[op->in[i]] >= 0;
}

/* A bias of zeros for an operator without one. */
static CornuStatus need_bias(CornuLiteGraph *graph, CornuLiteOperator *op, const Product *product,
                             int64_t channels)
{
    if (op->in_count > product->bias && op->in[product->bias] >= 0) return CORNU_OK;
    int *in = cornu__allocate((size_t)product->bias + 1, sizeof *in);
    if (!in) return CORNU_ERR_MEMORY;
    memcpy(in, op->in, (size_t)product->bias * sizeof *in);
    in[product->bias] = cornu__lite_add_constant(graph, "bias", CORNU_LITE_F32,
                                                 cornu_shape(channels), NULL);
    cornu__release(op->in);
    op->in = in;
    op->in_count = product->bias + 1;
    return graph->status;
}

/* Whether a constant is a number, or one for each channel of the last axis. */
static bool is_by_channel(const CornuLiteTensor *constant, int64_t channels)
{
    if (!constant->data || constant->dtype != CORNU_LITE_F32) return false;
    const int64_t count = cornu_shape_count(constant->shape);
    const int     last = constant->shape.rank - 1;
    return count == 1 || (count == channels && constant->shape.extent[last] == channels);
}

static CornuStatus fold_constant(Fold *fold, int i)
{
    CornuLiteGraph          *graph = fold->graph;
    const CornuLiteOperator *own = &graph->operators[i];
    const bool               times = own->code == CORNU_LITE_MUL;
    const int                turned = graph->tensors[own->in[0]].data != NULL;
    const int                x = own->in[turned], number = own->in[!turned];
    CornuLiteOperator       *op = maker_of(fold, x);
    const Product           *product = op ? product_of(op->code) : NULL;
    if (!product || op->options.fused_activation) return CORNU_OK;
    const CornuShape shape = graph->tensors[x].shape;
    const int64_t    channels = shape.extent[shape.rank - 1];
    if (!is_by_channel(&graph->tensors[number], channels) ||
        !is_own(fold, op, product->weights) || !is_own(fold, op, product->bias))
        return CORNU_OK;
    if (!times) CORNU__TRY(need_bias(graph, op, product, channels));
    const CornuLiteTensor *weights = &graph->tensors[op->in[product->weights]];
    const CornuLiteTensor *constant = &graph->tensors[number];
    const int64_t          count = cornu_shape_count(weights->shape), run = count / channels;
    const int64_t          step = cornu_shape_count(constant->shape) > 1;
    const float           *values = constant->data;
    float                 *w = weights->data, *bias = NULL;
    if (op->in_count > product->bias && op->in[product->bias] >= 0)
        bias = graph->tensors[op->in[product->bias]].data;
    for (int64_t k = 0; times && k < count; k++)
        w[k] *= values[step * (product->last ? k % channels : k / run)];
    for (int64_t c = 0; bias && c < channels; c++)
        bias[c] = times ? bias[c] * values[step * c] : bias[c] + values[step * c];
    remove_operator(fold, i, x);
    return CORNU_OK;
}

/* ---- Activations ---- */

static CornuLiteActivation fused_of(CornuLiteCode code)
{
    return code == CORNU_LITE_RELU           ? CORNU_LITE_FUSED_RELU
         : code == CORNU_LITE_RELU6          ? CORNU_LITE_FUSED_RELU6
         : code == CORNU_LITE_RELU_N1_TO_1   ? CORNU_LITE_FUSED_RELU_N1_TO_1
                                             : CORNU_LITE_LINEAR;
}

static void fold_activation(Fold *fold, int i, CornuLiteActivation activation)
{
    const int          x = fold->graph->operators[i].in[0];
    CornuLiteOperator *op = maker_of(fold, x);
    if (!op || op->options.fused_activation) return;
    switch (op->code) {
    case CORNU_LITE_CONV_2D:
    case CORNU_LITE_DEPTHWISE_CONV_2D:
    case CORNU_LITE_FULLY_CONNECTED:
    case CORNU_LITE_ADD:
    case CORNU_LITE_SUB:
    case CORNU_LITE_MUL:
    case CORNU_LITE_MAX_POOL_2D:
    case CORNU_LITE_AVERAGE_POOL_2D:
        op->options.fused_activation = activation;
        remove_operator(fold, i, x);
        break;
    default: break;   /* it has no activation in files, or only in late versions */
    }
}

/* ---- What is left ---- */

static void free_tensor(CornuLiteTensor *tensor)
{
    cornu__release(tensor->name);
    cornu__release(tensor->data);
    cornu__release(tensor->quantization.scales);
    cornu__release(tensor->quantization.zero_points);
}

/* Removes operators whose results nothing reads, as masks that no layer needs. */
static CornuStatus remove_unread(const CornuLiteGraph *graph, bool *removed)
{
    bool *read = cornu__allocate((size_t)graph->tensor_count, sizeof *read);
    if (!read) return CORNU_ERR_MEMORY;
    for (int i = 0; i < graph->output_count; i++) read[graph->outputs[i].tensor] = true;
    for (int i = graph->operator_count - 1; i >= 0; i--) {
        const CornuLiteOperator *op = &graph->operators[i];
        bool                     needed = op->out_count == 0;
        for (int k = 0; k < op->out_count; k++) needed |= read[op->out[k]];
        removed[i] |= !needed;
        for (int k = 0; k < op->in_count && !removed[i]; k++)
            if (op->in[k] >= 0) read[op->in[k]] = true;
    }
    cornu__release(read);
    return CORNU_OK;
}

/* Moves operators and tensors that are used to the front. */
static CornuStatus compact(CornuLiteGraph *graph, const bool *removed)
{
    int *number = cornu__allocate((size_t)graph->tensor_count, sizeof *number);
    int  operators = 0, tensors = 0;
    if (!number) return CORNU_ERR_MEMORY;
    for (int i = 0; i < graph->operator_count; i++) {
        if (removed[i]) {
            cornu__release(graph->operators[i].in);
            cornu__release(graph->operators[i].out);
        } else {
            graph->operators[operators++] = graph->operators[i];
        }
    }
    graph->operator_count = operators;
    for (int i = 0; i < operators; i++) {
        const CornuLiteOperator *op = &graph->operators[i];
        for (int k = 0; k < op->in_count; k++)
            if (op->in[k] >= 0) number[op->in[k]] = 1;
        for (int k = 0; k < op->out_count; k++) number[op->out[k]] = 1;
    }
    for (int i = 0; i < graph->input_count; i++) number[graph->inputs[i].tensor] = 1;
    for (int i = 0; i < graph->output_count; i++) number[graph->outputs[i].tensor] = 1;
    for (int i = 0; i < graph->tensor_count; i++) {
        if (!number[i]) {
            free_tensor(&graph->tensors[i]);
            continue;
        }
        graph->tensors[tensors] = graph->tensors[i];
        number[i] = tensors++;
    }
    graph->tensor_count = tensors;
    for (int i = 0; i < operators; i++) {
        const CornuLiteOperator *op = &graph->operators[i];
        for (int k = 0; k < op->in_count; k++)
            if (op->in[k] >= 0) op->in[k] = number[op->in[k]];
        for (int k = 0; k < op->out_count; k++) op->out[k] = number[op->out[k]];
    }
    for (int i = 0; i < graph->input_count; i++)
        graph->inputs[i].tensor = number[graph->inputs[i].tensor];
    for (int i = 0; i < graph->output_count; i++)
        graph->outputs[i].tensor = number[graph->outputs[i].tensor];
    cornu__release(number);
    return CORNU_OK;
}

CornuStatus cornu__lite_fold(CornuLiteGraph *graph)
{
    Fold        fold = { .graph = graph };
    CornuStatus status = list_uses(&fold);
    for (int i = 0; i < graph->operator_count && !status; i++) {
        const CornuLiteOperator *op = &graph->operators[i];
        if ((op->code == CORNU_LITE_MUL || op->code == CORNU_LITE_ADD) &&
            !op->options.fused_activation)
            status = fold_constant(&fold, i);
        else if (fused_of(op->code))
            fold_activation(&fold, i, fused_of(op->code));
    }
    if (!status) status = remove_unread(graph, fold.removed);
    if (!status) status = compact(graph, fold.removed);
    cornu__release(fold.maker);
    cornu__release(fold.reader);
    cornu__release(fold.removed);
    return status;
}
