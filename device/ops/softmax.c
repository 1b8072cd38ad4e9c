/*
 * Softmax and its kin for losses, over the last axis. The largest element is subtracted before exp,
 * so that none overflows.
 */
#include <math.h>

#include "rules.h"
#include "build.h"

static int64_t last_extent(CornuType type) { return type.shape.extent[type.shape.rank - 1]; }

static CornuType without_last(CornuType type)
{
    type.shape.extent[--type.shape.rank] = 0;
    return type;
}

/* At least one class along the last axis of operand 0. */
static CornuStatus check_classes(const CornuOpCall *call, const char *names)
{
    CORNU__TRY(cornu__expect_float(call, 0, names));
    if (call->in[0].shape.rank < 1 || last_extent(call->in[0]) < 1)
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "expected at least one class along the last axis");
    return CORNU_OK;
}

static CornuStatus softmax_type(const CornuOpCall *call, CornuType *out)
{
    CORNU__TRY(check_classes(call, "x"));
    return cornu__same_type(call, out);
}

/* Per element: maximum, difference, exp, sum, quotient. */
static int64_t softmax_flops(const CornuOpCall *call)
{
    return cornu__flops(2, (const int64_t[]){ 5, cornu_type_count(call->in[0]) });
}

/* log sum exp(x - largest) of one row. The caller adds the largest: next to a large one the
 * logarithm would lose its digits. */
static double log_sum_exp(const double *x, int64_t classes, double *largest)
{
    double sum = 0.0;
    *largest = -INFINITY;
    for (int64_t k = 0; k < classes; k++)
        if (x[k] > *largest) *largest = x[k];
    for (int64_t k = 0; k < classes; k++) sum += exp(x[k] - *largest);
    return log(sum);
}

/* x minus its largest element along the last axis, exp of that, and the sum of the latter. */
static CornuValue shifted(CornuBuilder *b, const CornuOpCall *call, CornuValue x,
                          CornuValue *exps, CornuValue *sum)
{
    int64_t    last = INT64_C(1) << (call->in[0].shape.rank - 1);
    CornuValue largest = cornu__build_reduce(b, CORNU_OP_REDUCE_MAX, x, last, true);
    CornuValue below = cornu__build2(b, CORNU_OP_SUBTRACT, x, cornu__build_like(b, largest, x));
    *exps = cornu__build1(b, CORNU_OP_EXP, below);
    *sum = cornu__build_reduce(b, CORNU_OP_REDUCE_SUM, *exps, last, true);
    return below;
}

/* softmax: y = exp(x) / sum exp(x). */
static CornuStatus softmax_decompose(CornuProgram *program, const CornuOpCall *call,
                                     const CornuValue *in, CornuValue *out)
{
    CornuBuilder b = { program, CORNU_OK };
    CornuValue   exps, sum;
    shifted(&b, call, in[0], &exps, &sum);
    out[0] = cornu__build2(&b, CORNU_OP_DIVIDE, exps, cornu__build_like(&b, sum, in[0]));
    return b.status;
}

static CornuStatus log_softmax_reference(const CornuReferenceCall *call)
{
    int64_t classes = last_extent(call->op.in[0]);
    for (int64_t first = 0; first < call->count; first += classes) {
        const double *x = call->in[0] + first;
        double       *y = call->out[0] + first, largest;
        double        log_sum = log_sum_exp(x, classes, &largest);
        for (int64_t k = 0; k < classes; k++) y[k] = x[k] - largest - log_sum;
    }
    return CORNU_OK;
}

static CornuStatus softmax_reference(const CornuReferenceCall *call)
{
    CORNU__TRY(log_softmax_reference(call));
    for (int64_t i = 0; i < call->count; i++) call->out[0][i] = exp(call->out[0][i]);
    return CORNU_OK;
}

const CornuOpRules cornu__softmax_rules = {
    softmax_type, softmax_flops, softmax_decompose, softmax_reference,
};

/* log_softmax: y = x - log sum exp(x). */
static CornuStatus log_softmax_decompose(CornuProgram *program, const CornuOpCall *call,
                                         const CornuValue *in, CornuValue *out)
{
    CornuBuilder b = { program, CORNU_OK };
    CornuValue   exps, sum, below = shifted(&b, call, in[0], &exps, &sum);
    CornuValue   log_sum = cornu__build1(&b, CORNU_OP_LOG, sum);
    out[0] = cornu__build2(&b, CORNU_OP_SUBTRACT, below, cornu__build_like(&b, log_sum, in[0]));
    return b.status;
}

const CornuOpRules cornu__log_softmax_rules = {
    softmax_type, softmax_flops, log_softmax_decompose, log_softmax_reference,
};

static CornuStatus check_label(double label, int64_t row, int64_t rows, int64_t classes)
{
    if (label >= 0.0 && label < (double)classes) return CORNU_OK;
    return cornu__fail_element((CornuFault){ .index = row, .count = rows }, "label",
                               cornu__as_integer(label), classes - 1);
}

/* one_hot: labels (..) of an integer dtype give (.., depth): 1 where the index along the new
 * axis is the label, else 0. A label outside [0, depth) is an error. */
static CornuStatus one_hot_type(const CornuOpCall *call, CornuType *out)
{
    const CornuAttributes_ONE_HOT *one_hot = &call->attributes->one_hot;
    CornuShape                     shape = call->in[0].shape;
    if (!cornu__is_integer(call->in[0].dtype))
        return cornu__refuse(call, CORNU_ERR_DTYPE, "labels", "expected integers");
    if (shape.rank == CORNU_MAX_RANK)
        return cornu__refuse(call, CORNU_ERR_SHAPE, "labels", "the result would have rank %d, "
                             "expected at most %d", shape.rank + 1, CORNU_MAX_RANK);
    if (one_hot->depth < 1)
        return cornu__refuse(call, CORNU_ERR_ARGUMENT, "labels", "depth %lld, expected at least 1",
                             (long long)one_hot->depth);
    shape.extent[shape.rank++] = one_hot->depth;
    out[0] = cornu_type_from(one_hot->dtype, shape);
    return CORNU_OK;
}

static CornuStatus one_hot_reference(const CornuReferenceCall *call)
{
    int64_t depth = call->op.attributes->one_hot.depth;
    const int64_t rows = cornu_type_count(call->op.in[0]);
    for (int64_t row = 0; row < rows; row++) {
        double label = call->in[0][row];
        CORNU__TRY(check_label(label, row, rows, depth));
        for (int64_t k = 0; k < depth; k++) call->out[0][row * depth + k] = label == (double)k;
    }
    return CORNU_OK;
}

const CornuOpRules cornu__one_hot_rules = {
    one_hot_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, one_hot_reference,
};

/* sparse_cross_entropy: logits (.., C) and integer labels (..) give -log softmax(logits)[label],
 * shape (..), in nats. A label outside [0, C) is an error. */
static CornuStatus sparse_cross_entropy_type(const CornuOpCall *call, CornuType *out)
{
    static const char names[] = "logits labels";
    CORNU__TRY(check_classes(call, names));
    if (!cornu__is_integer(call->in[1].dtype))
        return cornu__refuse(call, CORNU_ERR_DTYPE, names, "expected integers as labels");
    out[0] = without_last(call->in[0]);
    CornuText text;
    if (!cornu_shape_equal(out[0].shape, call->in[1].shape))
        return cornu__refuse(call, CORNU_ERR_SHAPE, names, "expected labels %s",
                             cornu_shape_print(&text, out[0].shape));
    return CORNU_OK;
}

/* Selects, rather than multiplying by 0 or 1: 0 times -inf would be NaN. */
static CornuStatus sparse_cross_entropy_decompose(CornuProgram *program, const CornuOpCall *call,
                                                  const CornuValue *in, CornuValue *out)
{
    CornuBuilder    b = { program, CORNU_OK };
    CornuType       logits = call->in[0];
    CornuAttributes depth = { .one_hot = { last_extent(logits), CORNU_BOOL } };
    CornuValue      log_p = cornu__build1(&b, CORNU_OP_LOG_SOFTMAX, in[0]);
    CornuValue      chosen = cornu__build(&b, CORNU_OP_ONE_HOT, &depth, &in[1], 1);
    CornuValue      zero = cornu__build_constant(&b, 0.0, log_p);
    CornuValue      terms = cornu__build_select(&b, chosen, log_p, zero);
    CornuValue      sum = cornu__build_reduce(&b, CORNU_OP_REDUCE_SUM, terms,
                                              INT64_C(1) << (logits.shape.rank - 1), false);
    out[0] = cornu__build1(&b, CORNU_OP_NEGATIVE, sum);
    return b.status;
}

static CornuStatus sparse_cross_entropy_reference(const CornuReferenceCall *call)
{
    int64_t classes = last_extent(call->op.in[0]);
    for (int64_t row = 0; row < call->count; row++) {
        const double *x = call->in[0] + row * classes;
        double        label = call->in[1][row], largest;
        CORNU__TRY(check_label(label, row, call->count, classes));
        double log_sum = log_sum_exp(x, classes, &largest);
        call->out[0][row] = log_sum - (x[(int64_t)label] - largest);
    }
    return CORNU_OK;
}

const CornuOpRules cornu__sparse_cross_entropy_rules = {
    sparse_cross_entropy_type, softmax_flops, sparse_cross_entropy_decompose,
    sparse_cross_entropy_reference,
};
