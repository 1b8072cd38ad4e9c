/* Source: keras/src/constraints/constraints.py. */
#include "constraints.h"

#include <math.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../config/keywords_internal.h"
#include "weight_rules_internal.h"

#define FIELD(kind, name) { #name, CORNU_FIELD_##kind, offsetof(CornuConstraint, name) }
static const CornuField max_norm_fields[] = { FIELD(NUMBER, max_value), FIELD(AXES, axis), { 0 } };
static const CornuField non_neg_fields[] = { { 0 } };
static const CornuField unit_norm_fields[] = { FIELD(AXES, axis), { 0 } };
static const CornuField min_max_norm_fields[] = {
    FIELD(NUMBER, min_value), FIELD(NUMBER, max_value), FIELD(NUMBER, rate), FIELD(AXES, axis),
    { 0 },
};

static const CornuWeightRuleClass classes[] = {
    { "MaxNorm", "max_norm", max_norm_fields },
    { "NonNeg", "non_neg", non_neg_fields },
    { "UnitNorm", "unit_norm", unit_norm_fields },
    { "MinMaxNorm", "min_max_norm", min_max_norm_fields },
};

static CornuStatus resolve_constraint(void *rule)
{
    CornuConstraint *self = rule;
    const char      *name = cornu__weight_rule_class(&cornu__constraints, rule)->name;
    self->min_value = cornu__number(self->min_value, 0.0);
    self->max_value = cornu__number(self->max_value, self->kind == CORNU_MAX_NORM ? 2.0 : 1.0);
    self->rate = cornu__number(self->rate, 1.0);
    if (!(self->min_value >= 0.0 && self->min_value <= self->max_value &&
          isfinite(self->max_value)))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .min_value is %g and .max_value %g, expected 0 "
                           "<= .min_value <= .max_value", name, self->min_value,
                           self->max_value);
    if (!(self->rate >= 0.0 && self->rate <= 1.0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .rate is %g, expected 0 to 1", name,
                           self->rate);
    for (int i = 0; i < CORNU_MAX_RANK; i++)
        if (self->axis[i] < -CORNU_MAX_RANK || self->axis[i] >= CORNU_MAX_RANK)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .axis is %lld, expected %d to %d", name,
                               (long long)self->axis[i], -CORNU_MAX_RANK, CORNU_MAX_RANK - 1);
    return CORNU_OK;
}

static CornuTensor *missed(const CornuConstraint *self, CornuTensor *w)
{
    (void)w;
    cornu__weight_rule_missed(&cornu__constraints, self->record);
    return NULL;
}

static void miss(void *rule) { ((CornuConstraint *)rule)->call = missed; }

const CornuWeightRuleFamily cornu__constraints = {
    .word = "constraint", .classes = classes, .count = sizeof classes / sizeof *classes,
    .size = sizeof(CornuConstraint), .own = CORNU_OWN_CONSTRAINT,
    .call = offsetof(CornuConstraint, call), .record = offsetof(CornuConstraint, record),
    .miss = miss, .resolve = resolve_constraint,
};

/* Invalid arguments give no constraint and a pending error. */
static CornuConstraint resolved(CornuConstraint given, const int64_t *axis)
{
    if (axis) memcpy(given.axis, axis, sizeof given.axis);
    if (resolve_constraint(&given) == CORNU_OK) return given;
    cornu__null();
    return (CornuConstraint){ 0 };
}

CornuConstraint cornu_max_norm_from(const CornuMaxNormConfig *config)
{
    return resolved((CornuConstraint){ .kind = CORNU_MAX_NORM, .max_value = config->max_value },
                    config->axis);
}

CornuConstraint cornu_non_neg_from(const CornuNonNegConfig *config)
{
    (void)config;
    return resolved((CornuConstraint){ .kind = CORNU_NON_NEG }, NULL);
}

CornuConstraint cornu_unit_norm_from(const CornuUnitNormConfig *config)
{
    return resolved((CornuConstraint){ .kind = CORNU_UNIT_NORM }, config->axis);
}

CornuConstraint cornu_min_max_norm_from(const CornuMinMaxNormConfig *config)
{
    return resolved((CornuConstraint){ .kind = CORNU_MIN_MAX_NORM,
                                       .min_value = config->min_value,
                                       .max_value = config->max_value, .rate = config->rate },
                    config->axis);
}

CornuConstraint cornu_constraint(const char *name)
{
    CornuConstraint found;
    if (cornu__weight_rule_find(&cornu__constraints, name, &found) == CORNU_OK) return found;
    cornu__null();
    return (CornuConstraint){ 0 };
}

static bool has_norm(const CornuConstraint *self)
{
    return self->kind != CORNU_NO_CONSTRAINT && self->kind != CORNU_NON_NEG &&
           self->kind != CORNU_OWN_CONSTRAINT;
}

/* As a bit mask, which reductions take. */
static int64_t axes_of(const CornuConstraint *self, int rank)
{
    int64_t axes = 0;
    for (int i = 0; i < CORNU_MAX_RANK && (i == 0 || self->axis[i] != 0); i++)
        axes |= INT64_C(1) << (self->axis[i] < 0 ? self->axis[i] + rank : self->axis[i]);
    return axes;
}

CornuStatus cornu__constraint_check(const CornuConstraint *self, CornuShape shape)
{
    CornuText text;
    for (int i = 0; i < CORNU_MAX_RANK && has_norm(self); i++)
        if (self->axis[i] < -shape.rank || self->axis[i] >= shape.rank)
            return cornu__fail(CORNU_ERR_SHAPE, "%s: .axis is %lld, which the shape %s lacks",
                               cornu__weight_rule_class(&cornu__constraints, self)->name,
                               (long long)self->axis[i], cornu_shape_print(&text, shape));
    return CORNU_OK;
}

CornuTensor *cornu_constraint_call(const CornuConstraint *self, CornuTensor *w)
{
    if (!w || self->kind == CORNU_NO_CONSTRAINT) return w;
    if (self->kind == CORNU_OWN_CONSTRAINT) return self->call(self, w);
    if (self->kind == CORNU_NON_NEG) return cornu_op_maximum(w, cornu_op_constant_like(w, 0.0));
    const CornuShape shape = cornu_tensor_shape(w);
    if (cornu__constraint_check(self, shape)) return cornu__null();
    CornuTensor *norm = cornu_op_sqrt(
        cornu_op_reduce_sum(cornu_op_square(w), axes_of(self, shape.rank), true));
    CornuTensor *below = cornu_op_shift(norm, 1e-7);
    if (self->kind == CORNU_UNIT_NORM) return cornu_op_divide(w, below);
    CornuTensor *wanted = cornu_op_clip(norm, self->min_value, self->max_value);
    if (self->rate != 1.0)
        wanted = cornu_op_add(cornu_op_scale(wanted, self->rate),
                              cornu_op_scale(norm, 1.0 - self->rate));
    return cornu_op_multiply(w, cornu_op_divide(wanted, below));
}
