/* Connectionist temporal classification, in logarithms. Two states per row of labels go from step
 * to step: `between` (B, N + 1), log p of all paths that spell the first n labels and are now
 * blank, and `at` (B, N), log p of those now at label n. An impossible path has log p -1e5. */
#include "loss_internal.h"

#define IMPOSSIBLE (-1e5)

/* log(exp(a) + exp(b)). The larger one is factored out; it cancels in the gradient, too. */
static CornuTensor *log_add(CornuTensor *a, CornuTensor *b)
{
    CornuTensor *most = cornu_op_maximum(a, b);
    CornuTensor *sum = cornu_op_add(cornu_op_exp(cornu_op_subtract(a, most)),
                                    cornu_op_exp(cornu_op_subtract(b, most)));
    return cornu_op_add(most, cornu_op_log(sum));
}

/* Columns first, first + 1, … of x (B, …). */
static CornuTensor *columns(CornuTensor *x, int64_t first, int64_t count)
{
    if (!x) return NULL;
    return cornu_op_slice(x, (const int64_t[]){ 0, first },
                          (const int64_t[]){ cornu_tensor_shape(x).extent[0], count });
}

/* `between` with `more` added after each label. */
static CornuTensor *joined(CornuTensor *between, CornuTensor *more)
{
    if (!between || !more) return NULL;
    const int64_t N = cornu_tensor_shape(more).extent[1];
    CornuTensor  *parts[] = { columns(between, 0, 1), log_add(columns(between, 1, N), more) };
    return parts[0] && parts[1] ? cornu_op_concat(parts, 2, 1) : NULL;
}

/* in: between, at, log p of the labels (B, N) and of a blank (B, 1) at this step, and where a label
 * is repeated (B, N), which takes a blank in between. */
static void step(void *context, CornuTensor *const *in, CornuTensor **out)
{
    CornuTensor *between = in[0], *at = in[1], *labels = in[2], *nothing = in[3], *again = in[4];
    const int64_t N = cornu_tensor_shape(at).extent[1];
    (void)context;
    CornuTensor *only_nothing = cornu_op_scale(again, IMPOSSIBLE);
    CornuTensor *no_need = cornu_op_scale(cornu__one_minus(again), IMPOSSIBLE);
    CornuTensor *from = joined(between, cornu_op_add(at, only_nothing));
    out[1] = cornu_op_add(log_add(columns(from, 0, N), at), labels);
    out[0] = joined(cornu_op_add(from, nothing),
                    cornu_op_add(cornu_op_add(at, nothing), no_need));
}

/* 1 where a label is followed by itself; never at the last one. */
static CornuTensor *followed_by_itself(CornuTensor *labels)
{
    const CornuShape shape = cornu_tensor_shape(labels);
    const int64_t    N = shape.extent[1], none[2] = { 0, 0 }, one[2] = { 0, 1 };
    if (N == 1)
        return cornu_op_constant(cornu_tensor_graph(labels), cornu_type_from(CORNU_F32, shape), 0);
    CornuTensor *same = cornu_op_compare(columns(labels, 0, N - 1), CORNU_EQUAL,
                                         columns(labels, 1, N - 1));
    return cornu_op_pad(cornu_op_convert(same, CORNU_F32), none, one, 0.0);
}

static CornuTensor *ctc_call(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred)
{
    if (!y_true || !y_pred) return NULL;
    const CornuShape t = cornu_tensor_shape(y_true), p = cornu_tensor_shape(y_pred);
    const int64_t    B = p.extent[0], N = t.extent[1], C = p.extent[2];
    CornuText        a, b;
    if (t.rank != 2 || p.rank != 3)
        return cornu__fail_null(CORNU_ERR_SHAPE, "%s: y_true is %s, y_pred %s; expected (B, N) and "
                                "(B, T, C)", self->name, cornu_shape_print(&a, t),
                                cornu_shape_print(&b, p));
    CornuGraph  *graph = cornu_tensor_graph(y_pred);
    CornuTensor *labels = cornu_op_indices(y_true);
    CornuTensor *log_p = cornu_op_log_softmax(y_pred);
    CornuTensor *which = cornu_op_one_hot(labels, C, CORNU_F32);
    CornuTensor *slices[] = {
        cornu_op_matmul_transposed(log_p, false, which, true),
        cornu_op_slice(log_p, (const int64_t[]){ 0, 0, 0 },
                       (const int64_t[]){ B, p.extent[1], 1 }),
    };
    CornuTensor *far = cornu_op_constant(graph, cornu_type(CORNU_F32, B, N), IMPOSSIBLE);
    CornuTensor *start[] = { cornu_op_constant(graph, cornu_type(CORNU_F32, B, 1), 0.0), far };
    CornuTensor *carries[] = { start[0] && far ? cornu_op_concat(start, 2, 1) : NULL, far };
    CornuTensor *again = labels ? followed_by_itself(labels) : NULL, *last[2];
    if (!carries[0] || !slices[0] || !slices[1] || !again) return NULL;
    if (!cornu_op_scan(&(CornuScan){ .carries = carries, .carry_count = 2, .slices = slices,
                                     .slice_count = 2, .constants = &again, .constant_count = 1,
                                     .axis = 1 }, step, NULL, last))
        return NULL;
    /* All labels, then a blank or nothing more. */
    CornuTensor *counts = cornu_op_compare(labels, CORNU_NOT_EQUAL,
                                           cornu_op_constant_like(labels, 0.0));
    CornuTensor *length = cornu_op_reduce_sum(cornu_op_convert(counts, CORNU_I32), 1 << 1, false);
    CornuTensor *end = cornu_op_one_hot(length, N + 1, CORNU_F32);
    return cornu_op_negative(cornu_op_reduce_sum(
        cornu_op_multiply(joined(last[0], last[1]), end), 1 << 1, false));
}

CORNU__SERIALIZABLE_CLASS(ctc, "CTC", "ctc", CornuLossConfig, .fields = cornu__loss_fields,
                          .whole_labels = true);

CornuLoss *cornu_ctc_from(const CornuLossConfig *config)
{
    return cornu__loss_create(sizeof(CornuLoss), &(CornuLoss){
        .kind = &cornu__ctc_class, .call = ctc_call, .reduction = config->reduction }, config);
}
