/* Entropies of predictions, without a mean, and what else compares tensors: psnr, ctc_loss. */
#include "operation_internal.h"

#include "../../../tensor/functions/functions_internal.h"

#include <math.h>

static const double epsilon = 1e-7;   /* keras.config.epsilon() */

static CornuTensor *clipped(CornuTensor *p) { return cornu_op_clip(p, epsilon, 1.0 - epsilon); }

/* Target and output, in f32, or f64, of one shape unless `sparse`; false with a pending error. */
static bool compared(const CornuOperands *o, bool sparse, CornuTensor **target,
                     CornuTensor **output)
{
    CornuText a, b;
    *target = cornu__operand_tensor(o, "target", 0);
    *output = *target ? cornu__operand_tensor(o, "output", 1) : NULL;
    if (!*output) return false;
    if (cornu_tensor_type(*output).dtype != CORNU_F64)
        *output = cornu_op_convert(*output, CORNU_F32);
    const CornuShape x = cornu_tensor_shape(*target), y = cornu_tensor_shape(*output);
    if (sparse) return true;
    *target = cornu_op_convert(*target, cornu_tensor_type(*output).dtype);
    if (cornu_shape_equal(x, y) && y.rank > 0) return *target != NULL;
    cornu__fail_null(CORNU_ERR_SHAPE, "%s: target is %s, output %s, expected one shape",
                     cornu_layer_name(o->layer), cornu_shape_print(&a, x),
                     cornu_shape_print(&b, y));
    return false;
}

/* Source: keras/src/backend/jax/nn.py, binary_crossentropy. */
CornuTensor *cornu__operation_binary_crossentropy(const CornuOperands *o)
{
    CornuTensor *t, *y;
    const bool   logits = cornu__argument_flag(o, "from_logits");
    if (!compared(o, false, &t, &y)) return NULL;
    CornuTensor *other = cornu_op_shift(cornu_op_negative(t), 1.0);
    if (logits) {
        /* log sigmoid(x) = -softplus(-x) */
        return cornu_op_add(cornu_op_multiply(t, cornu_op_softplus(cornu_op_negative(y))),
                            cornu_op_multiply(other, cornu_op_softplus(y)));
    }
    y = clipped(y);
    CornuTensor *rest = cornu_op_log(cornu_op_shift(cornu_op_negative(y), 1.0));
    return cornu_op_negative(cornu_op_add(cornu_op_multiply(t, cornu_op_log(y)),
                                          cornu_op_multiply(other, rest)));
}

/* log p along the axis. */
static CornuTensor *log_probabilities(CornuTensor *y, int axis, bool logits)
{
    const int64_t bit = INT64_C(1) << axis;
    if (!logits)
        return cornu_op_log(clipped(cornu_op_divide(y, cornu_op_reduce_sum(y, bit, true))));
    const int last = cornu_tensor_shape(y).rank - 1;
    if (axis == last) return cornu_op_log_softmax(y);
    return cornu__move_axis(cornu_op_log_softmax(cornu__move_axis(y, axis, last)), last, axis);
}

CornuTensor *cornu__operation_categorical_crossentropy(const CornuOperands *o)
{
    CornuTensor *t, *y;
    const bool   logits = cornu__argument_flag(o, "from_logits");
    if (!compared(o, false, &t, &y)) return NULL;
    const int axis = cornu__argument_axis(o, "axis", cornu_tensor_shape(y).rank, -1);
    if (axis < 0) return NULL;
    CornuTensor *product = cornu_op_multiply(t, log_probabilities(y, axis, logits));
    return cornu_op_negative(cornu_op_reduce_sum(product, INT64_C(1) << axis, false));
}

/* A target out of range gives 0. */
CornuTensor *cornu__operation_sparse_categorical_crossentropy(const CornuOperands *o)
{
    CornuTensor *t, *y;
    CornuText    a, b;
    const bool   logits = cornu__argument_flag(o, "from_logits");
    if (!compared(o, true, &t, &y)) return NULL;
    CornuShape target = cornu_tensor_shape(t), output = cornu_tensor_shape(y);
    const int  axis = output.rank ? cornu__argument_axis(o, "axis", output.rank, -1) : 0;
    if (axis < 0) return NULL;
    if (target.rank == output.rank && target.rank && target.extent[target.rank - 1] == 1) {
        t = cornu__drop_axis(t, target.rank - 1);
        if (!t) return NULL;
        target = cornu_tensor_shape(t);
    }
    CornuShape expected = output;
    for (int i = axis; i + 1 < output.rank; i++) expected.extent[i] = output.extent[i + 1];
    expected.extent[--expected.rank] = 0;
    if (!cornu_shape_equal(target, expected))
        return cornu__fail_null(CORNU_ERR_SHAPE, "%s: target is %s for output %s, expected its "
                                "shape without the axis", cornu_layer_name(o->layer),
                                cornu_shape_print(&a, target), cornu_shape_print(&b, output));
    CornuShape counts = { .rank = output.rank };
    for (int i = 0; i < output.rank; i++) counts.extent[i] = i == axis ? output.extent[i] : 1;
    t = cornu__add_axis(cornu_op_convert(cornu__refuse_nan(o->call, t), CORNU_I32), axis);
    CornuTensor *own = cornu_op_compare(
        t, CORNU_EQUAL, cornu_op_iota(o->graph, cornu_type_from(CORNU_I32, counts), axis));
    CornuTensor *log_p = log_probabilities(y, axis, logits);
    CornuTensor *taken = log_p ? cornu_op_select(own, log_p, cornu__like(log_p, 0.0)) : NULL;
    return taken ? cornu_op_negative(cornu_op_reduce_sum(taken, INT64_C(1) << axis, false)) : NULL;
}

/* 20 log10(max_val) - 10 log10(mean square of the difference), over all elements. */
CornuTensor *cornu__operation_psnr(const CornuOperands *o)
{
    CornuTensor *a, *b;
    const double most = cornu__argument_number(o, "max_val", 1.0);
    if (!cornu__operand_pair(o, true, &a, &b)) return NULL;
    CornuTensor *error = cornu_op_mean(cornu_op_square(cornu_op_subtract(a, b)));
    return cornu_op_shift(cornu_op_scale(cornu_op_log(error), -10.0 / log(10.0)),
                          20.0 * log10(most));
}

/* ---- ctc_loss: in logarithms, an impossible path has log p -1e5. Two states per row of labels go
 * from step to step: `between` (B, N + 1), all paths that spell the first n labels and are now
 * blank, and `at` (B, N), those now at label n. Source: keras/src/backend/jax/nn.py, ctc_loss.
 * ---- */

#define IMPOSSIBLE (-1e5)

static CornuTensor *columns(CornuTensor *x, int64_t begin, int64_t end)
{
    return cornu__slice_axis(x, 1, begin, end);
}

/* `between` with `more` added after each label. */
static CornuTensor *joined(CornuTensor *between, CornuTensor *more)
{
    if (!between || !more) return NULL;
    const int64_t N = cornu_tensor_shape(more).extent[1];
    CornuTensor  *parts[] = { columns(between, 0, 1),
                              cornu__log_add_exp(columns(between, 1, N + 1), more) };
    return cornu_op_concat(parts, 2, 1);
}

/* in: between, at, log p of the labels (B, N) and of a blank (B, 1) at this step, whether the step
 * counts (B, 1), and where a label is repeated (B, N), which takes a blank in between. */
static void step(void *context, CornuTensor *const *in, CornuTensor **out)
{
    CornuTensor  *labels = in[2], *blank = in[3], *again = in[5];
    const int64_t N = cornu_tensor_shape(in[1]).extent[1];
    (void)context;
    CornuTensor *counts = cornu_op_compare(in[4], CORNU_GREATER, cornu__like(in[4], 0.0));
    CornuTensor *only_blank = cornu_op_scale(again, IMPOSSIBLE);
    CornuTensor *no_need = cornu_op_scale(cornu_op_shift(cornu_op_negative(again), 1.0),
                                          IMPOSSIBLE);
    CornuTensor *from = joined(in[0], cornu_op_add(in[1], only_blank));
    CornuTensor *at = cornu__log_add_exp(cornu_op_add(columns(from, 0, N), labels),
                                         cornu_op_add(in[1], labels));
    CornuTensor *between = joined(cornu_op_add(from, blank),
                                  cornu_op_add(cornu_op_add(in[1], blank), no_need));
    out[0] = cornu_op_select(counts, between, in[0]);
    out[1] = cornu_op_select(counts, at, in[1]);
}

/* 1 where a label is followed by itself; never at the last one. */
static CornuTensor *followed_by_itself(CornuTensor *labels, int64_t N)
{
    CornuTensor *none = cornu_op_convert(cornu__like(columns(labels, 0, 1), 0.0), CORNU_F32);
    if (N == 1) return none;
    CornuTensor *same = cornu_op_compare(columns(labels, 0, N - 1), CORNU_EQUAL,
                                         columns(labels, 1, N));
    return cornu_op_concat((CornuTensor *[]){ cornu_op_convert(same, CORNU_F32), none }, 2, 1);
}

/* The states after the last step, of log p (B, T, C). */
static bool walked(CornuTensor *log_p, CornuTensor *labels, CornuTensor *length, int64_t blank,
                   CornuTensor **last)
{
    const CornuShape p = cornu_tensor_shape(log_p);
    const int64_t    B = p.extent[0], T = p.extent[1], N = cornu_tensor_shape(labels).extent[1];
    CornuGraph      *graph = cornu_tensor_graph(log_p);
    CornuTensor     *classes = cornu_op_iota(graph, cornu_type(CORNU_I32, 1, 1, p.extent[2]), 2);
    CornuTensor     *which = cornu_op_convert(cornu_op_compare(cornu__add_axis(labels, 2),
                                                               CORNU_EQUAL, classes), CORNU_F32);
    CornuTensor *times = cornu_op_iota(graph, cornu_type(CORNU_I32, 1, T, 1), 1);
    CornuTensor *counts = cornu_op_compare(times, CORNU_LESS,
                                           cornu_op_reshape(length, cornu_shape(B, 1, 1)));
    CornuTensor *slices[] = { cornu_op_matmul_transposed(log_p, false, which, true),
                              cornu__slice_axis(log_p, 2, blank, blank + 1),
                              cornu_op_convert(counts, CORNU_F32) };
    CornuTensor *far = cornu_op_constant(graph, cornu_type(CORNU_F32, B, N), IMPOSSIBLE);
    CornuTensor *start = cornu_op_constant(graph, cornu_type(CORNU_F32, B, 1), 0.0);
    CornuTensor *again = followed_by_itself(labels, N);
    CornuTensor *carries[] = { cornu_op_concat((CornuTensor *[]){ start, far }, 2, 1), far };
    if (!carries[0] || !slices[0] || !slices[1] || !slices[2] || !again) return false;
    return cornu_op_scan(&(CornuScan){ .carries = carries, .carry_count = 2, .slices = slices,
                                       .slice_count = 3, .constants = &again, .constant_count = 1,
                                       .axis = 1 }, step, NULL, last);
}

CornuTensor *cornu__operation_ctc_loss(const CornuOperands *o)
{
    CornuTensor  *target = cornu_op_convert(cornu__operand_tensor(o, "target", 0), CORNU_I32);
    CornuTensor  *output = target ? cornu__operand_tensor(o, "output", 1) : NULL;
    CornuTensor  *length = output ? cornu__operand_tensor(o, "target_length", 2) : NULL;
    CornuTensor  *steps = length ? cornu__operand_tensor(o, "output_length", 3) : NULL, *last[2];
    const int64_t blank = cornu__argument_integer(o, "mask_index", 0);
    if (!steps) return NULL;
    const CornuShape t = cornu_tensor_shape(target), p = cornu_tensor_shape(output);
    if (t.rank != 2 || p.rank != 3 || cornu_tensor_shape(length).rank != 1 ||
        cornu_tensor_shape(steps).rank != 1 || blank < 0 || blank >= p.extent[2])
        return cornu__operation_refuse(o, "expected a target (B, N), an output (B, T, C), two "
                                       "lengths (B), and mask_index among the classes");
    CornuTensor *log_p = cornu_op_log_softmax(cornu_op_convert(output, CORNU_F32));
    steps = cornu_op_convert(steps, CORNU_I32);
    if (!log_p || !steps || !walked(log_p, target, steps, blank, last)) return NULL;
    CornuTensor *ends = cornu_op_iota(o->graph, cornu_type(CORNU_I32, 1, t.extent[1] + 1), 1);
    length = cornu__add_axis(cornu_op_convert(length, CORNU_I32), 1);
    length = length ? cornu_op_minimum(length, cornu__like(length, (double)t.extent[1])) : NULL;
    CornuTensor *end = cornu_op_convert(cornu_op_compare(length, CORNU_EQUAL, ends), CORNU_F32);
    return cornu_op_negative(cornu_op_reduce_sum(
        cornu_op_multiply(joined(last[0], last[1]), end), 1 << 1, false));
}
