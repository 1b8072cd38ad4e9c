/* Source: keras/src/losses/losses.py, circle. */
#include "loss_internal.h"

typedef struct {
    CornuLoss base;
    double    gamma, margin;
    bool      keep_diagonal;
} Circle;

/* Stands for -infinity: finite, so that gradients are not NaN. */
#define NOTHING (-1e30)

static CornuTensor *negated(CornuTensor *condition)
{
    return condition ? cornu_op_compare(condition, CORNU_EQUAL,
                                        cornu_op_constant_like(condition, 0.0)) : NULL;
}

static CornuTensor *where_both(CornuTensor *a, CornuTensor *b)
{
    return b ? cornu_op_select(a, b, cornu_op_constant_like(b, 0.0)) : NULL;
}

static bool is_alone(CornuTensor *x)
{
    return cornu_graph_shards(cornu_tensor_graph(x)) == 1;
}

/* The rows of x on all shards, in order. */
static CornuTensor *gathered(CornuTensor *x)
{
    return !x || is_alone(x) ? x : cornu_op_all_gather(x, NULL);
}

/* The rows of all shards, (1, R); x is (B). */
static CornuTensor *all_rows(CornuTensor *x)
{
    CornuTensor *all = gathered(x);
    return all ? cornu_op_reshape(all, cornu_shape(1, cornu_tensor_shape(all).extent[0])) : NULL;
}

static CornuTensor *column(CornuTensor *x)
{
    return x ? cornu_op_reshape(x, cornu_shape(cornu_tensor_shape(x).extent[0], 1)) : NULL;
}

/* Which pairs of a row here and a row of any shard are the same one: bool (B, R). */
static CornuTensor *diagonal(CornuTensor *x, int64_t all)
{
    CornuGraph   *graph = cornu_tensor_graph(x);
    const int64_t rows = cornu_tensor_shape(x).extent[0];
    CornuTensor  *here = cornu_op_iota(graph, cornu_type(CORNU_I64, rows, 1), 0);
    CornuTensor  *other = cornu_op_iota(graph, cornu_type(CORNU_I64, 1, all), 1);
    if (!is_alone(x))
        here = cornu_op_add(here, cornu_op_multiply(
            cornu_op_replica_id(graph),
            cornu_op_constant(graph, cornu_scalar(CORNU_I64), (double)rows)));
    return cornu_op_compare(here, CORNU_EQUAL, other);
}

/* log sum exp over axis 1 of the values where `counts`. */
static CornuTensor *log_sum_exp(CornuTensor *x, CornuTensor *counts)
{
    if (!x || !counts) return NULL;
    x = cornu_op_select(counts, x, cornu_op_constant_like(x, NOTHING));
    CornuTensor *most = cornu_op_reduce_max(x, 2, true);
    CornuTensor *sum = cornu_op_reduce_sum(cornu_op_exp(cornu_op_subtract(x, most)), 2, true);
    return cornu_op_add(cornu_op_log(sum), most);
}

/* log(1 + e^x) */
static CornuTensor *softplus(CornuTensor *x)
{
    if (!x) return NULL;
    CornuTensor *least = cornu_op_constant_like(x, 0.0);
    CornuTensor *small = cornu_op_exp(cornu_op_negative(cornu_op_absolute(x)));
    return cornu_op_add(cornu_op_maximum(x, least), cornu_op_log(cornu_op_shift(small, 1.0)));
}

/* gamma max(weight, 0) (x - other) where weight = low + sign x; the weight of a pair that does not
 * count does not matter. */
static CornuTensor *scaled(CornuTensor *weight, CornuTensor *distance, double gamma)
{
    if (!weight) return NULL;
    weight = cornu_op_maximum(weight, cornu_op_constant_like(weight, 0.0));
    return cornu_op_scale(cornu_op_multiply(weight, distance), gamma);
}

static CornuTensor *call_rows(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred,
                              CornuTensor *valid)
{
    const Circle *circle = (const Circle *)self;
    if (!y_true || !y_pred) return NULL;
    const CornuShape shape = cornu_tensor_shape(y_pred), labels = cornu_tensor_shape(y_true);
    const int64_t    rows = shape.extent[0];
    CornuText        a, b;
    if (shape.rank != 2 || cornu_shape_count(labels) != rows)
        return cornu__fail_null(CORNU_ERR_SHAPE, "%s: y_true is %s, y_pred %s; expected (B) "
                                "classes and (B, N) embeddings", self->name,
                                cornu_shape_print(&a, labels), cornu_shape_print(&b, shape));
    CornuTensor *label = cornu_op_reshape(cornu_op_convert(y_true, CORNU_I32), cornu_shape(rows));
    CornuTensor *others = gathered(y_pred);
    if (!others) return NULL;
    const int64_t all = cornu_tensor_shape(others).extent[0];
    CornuTensor *distance = cornu__one_minus(
        cornu_op_matmul(y_pred, cornu_op_transpose(others, (const int[]){ 1, 0 })));
    if (!distance) return NULL;
    distance = cornu_op_maximum(distance, cornu_op_constant_like(distance, 0.0));
    CornuTensor *same = cornu_op_compare(column(label), CORNU_EQUAL, all_rows(label));
    CornuTensor *differ = negated(same);
    if (!circle->keep_diagonal) same = where_both(same, negated(diagonal(y_pred, all)));
    if (valid) {
        CornuTensor *counts = cornu_op_broadcast(all_rows(valid), cornu_shape(rows, all));
        same = where_both(same, counts);
        differ = where_both(differ, counts);
    }
    const double m = circle->margin;
    CornuTensor *near = scaled(cornu_op_shift(distance, m), cornu_op_shift(distance, -m),
                               circle->gamma);
    CornuTensor *negative = cornu_op_negative(distance);
    CornuTensor *far = scaled(cornu_op_shift(negative, 1.0 + m), cornu_op_shift(negative, 1.0 - m),
                              circle->gamma);
    CornuTensor *loss = softplus(cornu_op_add(log_sum_exp(near, same), log_sum_exp(far, differ)));
    return loss ? cornu_op_reshape(loss, cornu_shape(rows)) : NULL;
}

static CornuTensor *circle_call(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred)
{
    return call_rows(self, y_true, y_pred, NULL);
}

#define FIELD(name, kind) { #name, CORNU_FIELD_##kind, offsetof(CornuCircleConfig, name) }
static const CornuField fields[] = {
    FIELD(gamma, NUMBER_OR_DEFAULT), FIELD(margin, NUMBER_OR_DEFAULT),
    { "remove_diagonal", CORNU_FIELD_NOT, offsetof(CornuCircleConfig, keep_diagonal) },
    FIELD(reduction, REDUCTION), { 0 },
};
CORNU__SERIALIZABLE_CLASS(circle, "Circle", "circle", CornuCircleConfig, .fields = fields);

CornuLoss *cornu_circle_from(const CornuCircleConfig *config)
{
    Circle *circle = cornu__loss_create(sizeof *circle, &(CornuLoss){
        .kind = &cornu__circle_class, .call = circle_call, .call_rows = call_rows,
        .across_rows = true, .positive_alone = true, .reduction = config->reduction }, config);
    if (!circle) return NULL;
    circle->gamma = cornu__number(config->gamma, 80.0);
    circle->margin = cornu__number(config->margin, 0.4);
    circle->keep_diagonal = config->keep_diagonal;
    return &circle->base;
}
