/* Softmax, its logarithm, one-hot and cross-entropy, over the last axis: recording, gradients. */
#include "../tensor_internal.h"

CornuTensor *cornu_op_softmax(CornuTensor *x)
{
    return cornu__record1(CORNU_OP_SOFTMAX, x);
}

static CornuTensor *sum_last(CornuTensor *x)
{
    return x ? cornu_op_reduce_sum(x, INT64_C(1) << (cornu_tensor_shape(x).rank - 1), true) : NULL;
}

/* d_x = y (d - sum(d y)) */
static void softmax_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuTensor *y = op->out[0], *mean = sum_last(cornu_op_multiply(d[0], y));
    d_x[0] = cornu_op_multiply(y, cornu_op_subtract(d[0], mean));
}
CornuGradient *const cornu__softmax_gradient = softmax_gradient;

CornuTensor *cornu_op_log_softmax(CornuTensor *x)
{
    return cornu__record1(CORNU_OP_LOG_SOFTMAX, x);
}

/* d_x = d - exp(y) sum(d) */
static void log_softmax_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuTensor *share = cornu_op_multiply(cornu_op_exp(op->out[0]), sum_last(d[0]));
    d_x[0] = cornu_op_subtract(d[0], share);
}
CornuGradient *const cornu__log_softmax_gradient = log_softmax_gradient;

CornuTensor *cornu_op_one_hot(CornuTensor *labels, int64_t depth, CornuDtype dtype)
{
    CornuAttributes attributes = { .one_hot = { .depth = depth, .dtype = dtype } };
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_ONE_HOT, &attributes, &labels, 1, out);
}
CornuGradient *const cornu__one_hot_gradient = CORNU_NO_GRADIENT;

CornuTensor *cornu_op_sparse_cross_entropy(CornuTensor *logits, CornuTensor *labels)
{
    return cornu__record2(CORNU_OP_SPARSE_CROSS_ENTROPY, logits, labels);
}

/* d_logits = (softmax(logits) - one_hot(labels)) d */
static void sparse_cross_entropy_gradient(const CornuRecorded *op, CornuTensor *const *d,
                                          CornuTensor **d_x)
{
    CornuTensor *p = cornu_op_softmax(op->in[0]);
    if (!p) return;
    const CornuShape shape = cornu_tensor_shape(p);
    CornuShape       column = shape;
    column.extent[column.rank - 1] = 1;
    CornuTensor *less = cornu_op_subtract(p, cornu_op_constant_like(p, 1.0));
    CornuTensor *label = cornu_op_one_hot(op->in[1], shape.extent[shape.rank - 1], CORNU_BOOL);
    CornuTensor *each = cornu_op_broadcast(cornu_op_reshape(d[0], column), shape);
    d_x[0] = cornu_op_multiply(cornu_op_select(label, less, p), each);
}
CornuGradient *const cornu__sparse_cross_entropy_gradient = sparse_cross_entropy_gradient;
