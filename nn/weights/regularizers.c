/* Source: keras/src/regularizers/regularizers.py. */
#include "regularizers.h"

#include <math.h>

#include "../../device/memory_internal.h"
#include "../config/keywords_internal.h"
#include "weight_rules_internal.h"

const CornuFieldKind cornu_field_orthogonal_mode = {
    .name = "orthogonal_mode", CORNU__FIELD_OF_WORDS(CornuOrthogonalMode),
    .words = { [CORNU_ROWS] = "rows", [CORNU_COLUMNS] = "columns" },
};

#define FIELD(kind, name) { #name, CORNU_FIELD_##kind, offsetof(CornuRegularizer, name) }
static const CornuField l1_fields[] = { FIELD(NUMBER, l1), { 0 } };
static const CornuField l2_fields[] = { FIELD(NUMBER, l2), { 0 } };
static const CornuField l1_l2_fields[] = { FIELD(NUMBER, l1), FIELD(NUMBER, l2), { 0 } };
static const CornuField orthogonal_fields[] = {
    FIELD(NUMBER, factor), FIELD(ORTHOGONAL_MODE, mode), { 0 },
};

static const CornuWeightRuleClass classes[] = {
    { "L1", "l1", l1_fields },
    { "L2", "l2", l2_fields },
    { "L1L2", "l1l2", l1_l2_fields },
    { "OrthogonalRegularizer", "orthogonal_regularizer", orthogonal_fields },
};

static CornuStatus resolve_regularizer(void *rule)
{
    CornuRegularizer *self = rule;
    const char       *name = cornu__weight_rule_class(&cornu__regularizers, rule)->name;
    self->l1 = cornu__number(self->l1, self->kind == CORNU_L1 ? 0.01 : 0.0);
    self->l2 = cornu__number(self->l2, self->kind == CORNU_L2 ? 0.01 : 0.0);
    self->factor = cornu__number(self->factor,
                                 self->kind == CORNU_ORTHOGONAL_REGULARIZER ? 0.01 : 0.0);
    const struct { const char *argument; double value; } numbers[] = {
        { "l1", self->l1 }, { "l2", self->l2 }, { "factor", self->factor },
    };
    for (int i = 0; i < 3; i++)
        if (!(numbers[i].value >= 0.0 && isfinite(numbers[i].value)))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %g, expected 0 or more", name,
                               numbers[i].argument, numbers[i].value);
    if (self->mode == CORNU_ROWS || self->mode == CORNU_COLUMNS) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .mode is %d, expected CORNU_ROWS or CORNU_COLUMNS",
                       name, (int)self->mode);
}

static CornuTensor *missed(const CornuRegularizer *self, CornuTensor *x)
{
    (void)x;
    cornu__weight_rule_missed(&cornu__regularizers, self->record);
    return NULL;
}

static void miss(void *rule) { ((CornuRegularizer *)rule)->call = missed; }

const CornuWeightRuleFamily cornu__regularizers = {
    .word = "regularizer", .classes = classes, .count = sizeof classes / sizeof *classes,
    .size = sizeof(CornuRegularizer), .own = CORNU_OWN_REGULARIZER,
    .call = offsetof(CornuRegularizer, call), .record = offsetof(CornuRegularizer, record),
    .miss = miss, .resolve = resolve_regularizer,
};

/* Invalid arguments give no regularizer and a pending error. */
static CornuRegularizer resolved(CornuRegularizer given)
{
    if (resolve_regularizer(&given) == CORNU_OK) return given;
    cornu__null();
    return (CornuRegularizer){ 0 };
}

CornuRegularizer cornu_l1_from(const CornuL1Config *config)
{
    return resolved((CornuRegularizer){ .kind = CORNU_L1, .l1 = config->l1 });
}

CornuRegularizer cornu_l2_from(const CornuL2Config *config)
{
    return resolved((CornuRegularizer){ .kind = CORNU_L2, .l2 = config->l2 });
}

CornuRegularizer cornu_l1_l2_from(const CornuL1L2Config *config)
{
    return resolved((CornuRegularizer){ .kind = CORNU_L1_L2, .l1 = config->l1,
                                        .l2 = config->l2 });
}

CornuRegularizer cornu_orthogonal_regularizer_from(const CornuOrthogonalRegularizerConfig *config)
{
    return resolved((CornuRegularizer){ .kind = CORNU_ORTHOGONAL_REGULARIZER,
                                        .factor = config->factor, .mode = config->mode });
}

CornuRegularizer cornu_regularizer(const char *name)
{
    CornuRegularizer found;
    if (cornu__weight_rule_find(&cornu__regularizers, name, &found) == CORNU_OK) return found;
    cornu__null();
    return (CornuRegularizer){ 0 };
}

CornuStatus cornu__regularizer_check(const CornuRegularizer *regularizer, CornuShape shape)
{
    CornuText text;
    if (regularizer->kind != CORNU_ORTHOGONAL_REGULARIZER || shape.rank == 2) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "orthogonal_regularizer: the shape is %s, expected 2 axes",
                       cornu_shape_print(&text, shape));
}

/* The mean of |cosine| over unordered pairs: half the sum over ordered pairs / their number. */
static CornuTensor *orthogonal(const CornuRegularizer *self, CornuTensor *x)
{
    CornuText text;
    if (x && cornu_tensor_shape(x).rank != 2)
        return cornu__fail_null(CORNU_ERR_SHAPE, "orthogonal_regularizer: x is %s, expected 2 axes",
                                cornu_shape_print(&text, cornu_tensor_shape(x)));
    if (self->mode == CORNU_COLUMNS) x = cornu_op_transpose(x, (const int[]){ 1, 0 });
    if (!x) return NULL;
    const double n = (double)cornu_tensor_shape(x).extent[0];
    CornuTensor *inverse = cornu_op_rsqrt(cornu_op_reduce_sum(cornu_op_square(x), 2, true));
    if (!inverse) return NULL;
    inverse = cornu_op_minimum(inverse, cornu_op_constant_like(inverse, 1e7));
    CornuTensor *unit = cornu_op_multiply(x, inverse);
    CornuTensor *cosines = cornu_op_matmul_transposed(unit, false, unit, true);
    if (!cosines) return NULL;
    CornuType    index = cornu_tensor_type(cosines);
    CornuGraph  *graph = cornu_tensor_graph(x);
    index.dtype = CORNU_I32;
    CornuTensor *same = cornu_op_compare(cornu_op_iota(graph, index, 0), CORNU_EQUAL,
                                         cornu_op_iota(graph, index, 1));
    CornuTensor *off = cornu_op_select(same, cornu_op_constant_like(cosines, 0.0), cosines);
    return cornu_op_scale(cornu_op_sum(cornu_op_absolute(off)),
                          self->factor * 0.5 / (n * (n - 1.0) / 2.0));
}

CornuTensor *cornu_regularizer_call(const CornuRegularizer *self, CornuTensor *x)
{
    if (!x) return NULL;
    if (self->kind == CORNU_OWN_REGULARIZER) return self->call(self, x);
    if (self->kind == CORNU_ORTHOGONAL_REGULARIZER) return orthogonal(self, x);
    CornuTensor *l1 = self->l1 == 0.0 ? NULL
                    : cornu_op_scale(cornu_op_sum(cornu_op_absolute(x)), self->l1);
    CornuTensor *l2 = self->l2 == 0.0 ? NULL
                    : cornu_op_scale(cornu_op_sum(cornu_op_square(x)), self->l2);
    if (l1 && l2) return cornu_op_add(l1, l2);
    if (l1 || l2) return l1 ? l1 : l2;
    const CornuType scalar = cornu_scalar(cornu_tensor_type(x).dtype);
    return cornu_error_pending() ? NULL : cornu_op_constant(cornu_tensor_graph(x), scalar, 0.0);
}
