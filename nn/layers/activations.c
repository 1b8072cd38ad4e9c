#include "activations.h"

#include <math.h>
#include <string.h>

#include "../../device/text/nearest.h"
#include "../../device/status_internal.h"
#include "../../tensor/function_internal.h"
#include "../../tensor/functions/functions_internal.h"
#include "../weights/weight_rules_internal.h"
#include "layer_internal.h"

static const char *const names[CORNU_ACTIVATION_COUNT] = {
#define X(id, name, formula) [CORNU_##id] = name,
    CORNU_ACTIVATION_MAP(X)
#undef X
};

const char *cornu_activation_name(CornuActivation activation)
{
    const CornuLayer *layer = cornu__activation_layer(activation);
    if (layer) return layer->kind->class_name;
    return (unsigned)activation < CORNU_ACTIVATION_COUNT ? names[activation] : NULL;
}

CornuStatus cornu_activation_find(const char *name, CornuActivation *activation)
{
    CORNU__NEED(name);
    CORNU__NEED(activation);
    if (!strcmp(name, "swish")) name = names[CORNU_SILU];
    if (!strcmp(name, "hard_swish")) name = names[CORNU_HARD_SILU];
    for (int i = 0; i < CORNU_ACTIVATION_COUNT; i++)
        if (!strcmp(name, names[i])) {
            *activation = (CornuActivation)i;
            return CORNU_OK;
        }
    const char *near = cornu_nearest(name, names, CORNU_ACTIVATION_COUNT);
    return cornu__fail(CORNU_ERR_ARGUMENT, "activation \"%s\" is not known%s%s%s", name,
                       near ? "; is \"" : "", near ? near : "", near ? "\" meant?" : "");
}

/* min(max(x, 0), 6); the slope at 6 is 0, as at 0 */
static CornuTensor *relu6(CornuTensor *x)
{
    return cornu_op_bounded_relu(x, 6.0);
}

/* Source: Klambauer et al., "Self-Normalizing Neural Networks", arXiv 1706.02515. */
#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_ALPHA 1.6732632423543772848170429916717

static CornuTensor *selu(CornuTensor *x)
{
    return cornu_op_scale(cornu_op_elu(x, SELU_ALPHA), SELU_SCALE);
}

static CornuTensor *hard_sigmoid(CornuTensor *x)
{
    return cornu_op_scale(relu6(cornu_op_shift(x, 3.0)), 1.0 / 6.0);
}

static CornuTensor *keras_2_hard_sigmoid(CornuTensor *x)
{
    return cornu_op_clip(cornu_op_shift(cornu_op_scale(x, 0.2), 0.5), 0.0, 1.0);
}

static CornuTensor *sparse_sigmoid(CornuTensor *x)
{
    return cornu_op_scale(cornu_op_clip(cornu_op_shift(x, 1.0), 0.0, 2.0), 0.5);
}

static CornuTensor *hard_silu(CornuTensor *x)
{
    return cornu_op_multiply(x, cornu_activation_apply(CORNU_HARD_SIGMOID, x));
}

static CornuTensor *softsign(CornuTensor *x)
{
    return cornu_op_divide(x, cornu_op_shift(cornu_op_absolute(x), 1.0));
}

/* comparison(x, bound) ? a : b; the slope at the bound is that of the selected branch. */
static CornuTensor *where(CornuTensor *x, CornuComparison comparison, double bound, CornuTensor *a,
                          CornuTensor *b)
{
    return cornu_op_select(cornu_op_compare(x, comparison, cornu_op_constant_like(x, bound)), a, b);
}

static CornuTensor *hard_tanh(CornuTensor *x)
{
    CornuTensor *one = cornu_op_constant_like(x, 1.0), *low = cornu_op_constant_like(x, -1.0);
    return where(x, CORNU_GREATER, 1.0, one, where(x, CORNU_LESS, -1.0, low, x));
}

static CornuTensor *hard_shrink(CornuTensor *x)
{
    CornuTensor *zero = cornu_op_constant_like(x, 0.0), *half = cornu_op_constant_like(x, 0.5);
    return cornu_op_select(cornu_op_compare(cornu_op_absolute(x), CORNU_GREATER, half), x, zero);
}

static CornuTensor *soft_shrink(CornuTensor *x)
{
    CornuTensor *below = where(x, CORNU_LESS, -0.5, cornu_op_shift(x, 0.5),
                               cornu_op_constant_like(x, 0.0));
    return where(x, CORNU_GREATER, 0.5, cornu_op_shift(x, -0.5), below);
}

static CornuTensor *sparse_plus(CornuTensor *x)
{
    CornuTensor *square = cornu_op_scale(cornu_op_square(cornu_op_shift(x, 1.0)), 0.25);
    CornuTensor *above = where(x, CORNU_GREATER_EQUAL, 1.0, x, square);
    return where(x, CORNU_LESS_EQUAL, -1.0, cornu_op_constant_like(x, 0.0), above);
}

static CornuTensor *squareplus(CornuTensor *x)
{
    CornuTensor *root = cornu_op_sqrt(cornu_op_shift(cornu_op_square(x), 4.0));
    return cornu_op_scale(cornu_op_add(x, root), 0.5);
}

static CornuTensor *glu(CornuTensor *x)
{
    CornuShape shape = cornu_tensor_shape(x);
    int64_t    starts[CORNU_MAX_RANK] = { 0 };
    const int  last = shape.rank - 1;
    CornuText  text;
    if (last < 0 || shape.extent[last] % 2 != 0)
        return cornu__fail_null(CORNU_ERR_SHAPE, "glu: x is %s, expected an even extent along the "
                                "last axis", cornu_shape_print(&text, shape));
    shape.extent[last] /= 2;
    CornuTensor *a = cornu_op_slice(x, starts, shape.extent);
    starts[last] = shape.extent[last];
    return cornu_op_multiply(a, cornu_op_sigmoid(cornu_op_slice(x, starts, shape.extent)));
}

/* max(x - t, 0). Let z_k be the k-th largest of the n values along the last axis and s_k the sum of
 * the k largest. The support is all k with k z_k > s_k - 1; t is the sum of its s_k, minus 1, over
 * its size. All n * n pairs are compared instead of sorting.
 * Source: keras/src/backend/jax/nn.py; in Martins and Astudillo, "From Softmax to Sparsemax", arXiv
 * 1602.02068, algorithm 1, t is of the last s_k alone. */
static CornuTensor *sparsemax(CornuTensor *x)
{
    const CornuType type = cornu_tensor_type(x);
    const int       last = type.shape.rank - 1;
    CornuText       text;
    if (last < 0 || type.shape.rank == CORNU_MAX_RANK)
        return cornu__fail_null(CORNU_ERR_SHAPE, "sparsemax: x is %s, expected 1 to %d axes",
                                cornu_shape_print(&text, type.shape), CORNU_MAX_RANK - 1);
    const int64_t n = type.shape.extent[last];
    const int64_t axis = INT64_C(1) << last, others_axis = axis << 1;
    CornuShape    of_one = type.shape, of_others = type.shape;
    of_one.extent[of_one.rank++] = 1;
    of_others.extent[last] = 1;
    of_others.extent[of_others.rank++] = n;
    CornuTensor *z = cornu_op_convert(x, CORNU_F32);
    CornuTensor *one = cornu_op_reshape(z, of_one), *others = cornu_op_reshape(z, of_others);
    CornuGraph  *graph = cornu_tensor_graph(x);
    /* Ties are broken by position. */
    CornuTensor *before = cornu_op_compare(
        cornu_op_iota(graph, cornu_type(CORNU_I32, 1, n), 1), CORNU_LESS_EQUAL,
        cornu_op_iota(graph, cornu_type(CORNU_I32, n, 1), 0));
    CornuTensor *counted = cornu_op_convert(
        cornu_op_select(cornu_op_compare(others, CORNU_EQUAL, one), before,
                        cornu_op_compare(others, CORNU_GREATER, one)), CORNU_F32);
    CornuTensor *k = cornu_op_reduce_sum(counted, others_axis, false);
    CornuTensor *s = cornu_op_reduce_sum(cornu_op_multiply(counted, others), others_axis, false);
    CornuTensor *stays = cornu_op_convert(
        cornu_op_compare(cornu_op_multiply(k, z), CORNU_GREATER, cornu_op_shift(s, -1.0)),
        CORNU_F32);
    CornuTensor *sum = cornu_op_reduce_sum(cornu_op_multiply(stays, s), axis, true);
    CornuTensor *t = cornu_op_divide(cornu_op_shift(sum, -1.0),
                                     cornu_op_reduce_sum(stays, axis, true));
    return cornu_op_convert(cornu_op_relu(cornu_op_subtract(z, t)), type.dtype);
}

/* Activations that files may have by name. Hard sigmoids are min(max(a x + b, 0), 1). */
static const struct {
    CornuFunction function;
    int           count;
    double        numbers[2];
} functions[CORNU_ACTIVATION_COUNT] = {
#define BY_NAME(called, formula) CORNU__FUNCTION(called, .of_one = formula)
    [CORNU_SELU] = { BY_NAME("selu", selu), 2, { SELU_ALPHA, SELU_SCALE } },
    [CORNU_HARD_SIGMOID] = { BY_NAME("hard_sigmoid", hard_sigmoid), 2, { 1.0 / 6.0, 0.5 } },
    [CORNU_KERAS_2_HARD_SIGMOID] = { BY_NAME("hard_sigmoid", keras_2_hard_sigmoid), 2,
                                     { 0.2, 0.5 } },
    [CORNU_SPARSE_SIGMOID] = { BY_NAME("hard_sigmoid", sparse_sigmoid), 2, { 0.5, 0.5 } },
    [CORNU_HARD_SILU] = { BY_NAME("hard_swish", hard_silu), 0, { 0 } },
    [CORNU_SOFTSIGN] = { BY_NAME("softsign", softsign), 0, { 0 } },
    [CORNU_HARD_TANH] = { BY_NAME("clip", hard_tanh), 2, { -1.0, 1.0 } },
    [CORNU_HARD_SHRINK] = { BY_NAME("shrink", hard_shrink), 2, { 0.5, 0.0 } },
    [CORNU_SOFT_SHRINK] = { BY_NAME("shrink", soft_shrink), 2, { 0.5, 0.5 } },
    [CORNU_SPARSEMAX] = { BY_NAME("sparsemax", sparsemax), 0, { 0 } },
#undef BY_NAME
};

CornuTensor *cornu_activation_apply(CornuActivation activation, CornuTensor *x)
{
    const CornuLayer *layer = cornu__activation_layer(activation);
    if (layer) return cornu__activation_layer_apply(layer, x);
    if ((unsigned)activation < CORNU_ACTIVATION_COUNT && functions[activation].function.of_one)
        return cornu__function(&functions[activation].function, &x, 1,
                               functions[activation].numbers, functions[activation].count);
    switch (activation) {
    case CORNU_LINEAR:       return x;
    case CORNU_RELU:         return cornu_op_relu(x);
    case CORNU_RELU6:        return relu6(x);
    case CORNU_LEAKY_RELU:   return cornu__leaky_relu(x, 0.2);
    case CORNU_ELU:          return cornu_op_elu(x, 1.0);
    case CORNU_GELU:         return cornu__gelu(x);
    case CORNU_SILU:         return cornu_op_multiply(x, cornu_op_sigmoid(x));
    case CORNU_SIGMOID:      return cornu_op_sigmoid(x);
    case CORNU_TANH:         return cornu_op_tanh(x);
    case CORNU_SOFTMAX:      return cornu_op_softmax(x);
    case CORNU_SOFTPLUS:     return cornu_op_softplus(x);
    case CORNU_MISH:
        return cornu_op_multiply(x, cornu_op_tanh(cornu_op_softplus(x)));
    case CORNU_EXPONENTIAL:  return cornu_op_exp(x);
    case CORNU_GELU_APPROXIMATE: return cornu__gelu_approximate(x);
    case CORNU_TANH_SHRINK:  return cornu_op_subtract(x, cornu_op_tanh(x));
    case CORNU_CELU:         return cornu_op_elu(x, 1.0);
    case CORNU_LOG_SIGMOID:
        return cornu_op_negative(cornu_op_softplus(cornu_op_negative(x)));
    case CORNU_LOG_SOFTMAX:  return cornu_op_log_softmax(x);
    case CORNU_SPARSE_PLUS:  return sparse_plus(x);
    case CORNU_SQUAREPLUS:   return squareplus(x);
    case CORNU_GLU:          return glu(x);
    default: break;
    }
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "activation %d, expected %d to %d",
                            (int)activation, CORNU_DEFAULT_ACTIVATION + 1,
                            CORNU_ACTIVATION_COUNT - 1);
}

CornuTensor *cornu__layer_activate(CornuLayer *layer, const CornuCall *call,
                                   CornuActivation activation, CornuTensor *x)
{
    if (!x) return NULL;
    const bool recomputed = CORNU__FULL(
        cornu__remat_mode(layer->remat) == CORNU_REMAT_ACTIVATIONS && !call->shapes_only, false);
    CornuCall own = *call;
    own.mask = NULL;   /* Keras' is attached to the layer's input alone */
    if (recomputed) cornu_graph_remat_begin(call->graph);
    CornuTensor *y = !layer->activation ? cornu_activation_apply(activation, x)
                   : layer->activation->built ? cornu_layer_call(layer->activation, &own, x) : x;
    if (recomputed) cornu_graph_remat_end(call->graph);
    return y;
}

CornuStatus cornu__check_activation(const char *layer, CornuActivation activation)
{
    if (cornu_activation_name(activation)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .activation is %d, expected 0 to %d", layer,
                       (int)activation, CORNU_ACTIVATION_COUNT - 1);
}

CornuStatus cornu__check_initializer(const char *layer, const CornuInitializer *initializer)
{
    if (cornu__initializer_valid(initializer)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: an initializer is of kind %u, expected 0 to %d",
                       layer, initializer->kind, cornu__initializers.count);
}
