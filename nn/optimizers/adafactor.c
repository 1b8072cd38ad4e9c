/* Source: keras/src/optimizers/adafactor.py. */
#include <float.h>

#include "optimizer_internal.h"

typedef struct {
    CornuOptimizer base;
    double         beta_2_decay, epsilon_1, epsilon_2, clip_threshold;
    bool           no_relative_step;
} Adafactor;

enum { ROWS, COLUMNS, VELOCITY };

static int adafactor_slots(const CornuOptimizer *self, const char *name[CORNU_MAX_SLOTS],
                           int group[CORNU_MAX_SLOTS])
{
    (void)self;
    name[ROWS] = "rows", name[COLUMNS] = "columns", name[VELOCITY] = "velocity";
    group[ROWS] = group[COLUMNS] = group[VELOCITY] = 0;
    return 3;
}

static void drop_axis(CornuShape *shape, int axis)
{
    shape->rank--;
    for (int i = axis; i < shape->rank; i++) shape->extent[i] = shape->extent[i + 1];
    shape->extent[shape->rank] = 0;
}

/* The means over the last axis, and over the one before it, of weights that have both; Keras has a
 * number, 0, in place of either for the others, which its LossScaleOptimizer does not list. */
static bool slot_type(const CornuOptimizer *self, const CornuVariable *w, int slot,
                      CornuType *type)
{
    const int rank = cornu_variable_type(w).shape.rank;
    if (slot == VELOCITY) return true;
    if (rank < 2 && self->scales_loss) return false;
    if (rank >= 2) drop_axis(&type->shape, slot == ROWS ? rank - 1 : rank - 2);
    else *type = cornu_scalar(CORNU_I32);
    return true;
}

static CornuTensor *rms(CornuTensor *x)
{
    return cornu_op_sqrt(cornu_op_mean(cornu_op_square(x)));
}

/* beta old + (1 - beta) x */
static CornuTensor *averaged(CornuTensor *old, CornuTensor *x, CornuTensor *beta)
{
    CornuTensor *rest = cornu_op_shift(cornu_op_negative(beta), 1.0);
    return cornu_op_add(cornu_op_multiply(beta, old), cornu_op_multiply(rest, x));
}

/* x with an axis of extent 1 at `axis`. */
static CornuTensor *with_axis(CornuTensor *x, int axis)
{
    if (!x) return NULL;
    CornuShape shape = cornu_tensor_shape(x);
    for (int i = shape.rank++; i > axis; i--) shape.extent[i] = shape.extent[i - 1];
    shape.extent[axis] = 1;
    return cornu_op_reshape(x, shape);
}

/* The means of the squares, and what they say of each element. */
static void factor(const CornuUpdate *u, CornuTensor *squares, CornuTensor *beta,
                   CornuTensor **new_slot)
{
    const int     rank = cornu_tensor_shape(u->w).rank;
    const int64_t last = INT64_C(1) << (rank - 1), before = INT64_C(1) << (rank - 2);
    CornuTensor  *r = averaged(u->slot[ROWS], cornu_op_reduce_mean(squares, last, false), beta);
    CornuTensor  *c = averaged(u->slot[COLUMNS], cornu_op_reduce_mean(squares, before, false),
                               beta);
    CornuTensor  *share = cornu_op_divide(r, cornu_op_reduce_mean(r, before, true));
    new_slot[ROWS] = r;
    new_slot[COLUMNS] = c;
    new_slot[VELOCITY] = cornu_op_multiply(with_axis(share, rank - 1), with_axis(c, rank - 2));
}

static CornuTensor *adafactor_update(const CornuOptimizer *self, int i, const CornuUpdate *u,
                                     CornuTensor **new_slot)
{
    const Adafactor *adafactor = (const Adafactor *)self;
    CornuTensor     *t = u->iteration, *one = t ? cornu_op_constant_like(t, 1.0) : NULL;
    (void)i;
    if (!one || !u->w) return NULL;
    CornuTensor *beta = cornu_op_subtract(
        one, cornu_op_power(t, cornu_op_constant_like(t, adafactor->beta_2_decay)));
    CornuTensor *squares = cornu_op_shift(cornu_op_square(u->gradient), adafactor->epsilon_1);
    if (cornu_tensor_shape(u->w).rank >= 2) factor(u, squares, beta, new_slot);
    else new_slot[VELOCITY] = averaged(u->slot[VELOCITY], squares, beta);
    CornuTensor *least = cornu_op_constant_like(t, adafactor->epsilon_2);
    CornuTensor *rho = cornu_op_minimum(u->learning_rate, cornu_op_divide(one, cornu_op_sqrt(t)));
    CornuTensor *alpha = cornu_op_multiply(cornu_op_maximum(least, rms(u->w)), rho);
    CornuTensor *step = cornu_op_divide(u->gradient, cornu_op_sqrt(new_slot[VELOCITY]));
    CornuTensor *excess = cornu_op_divide(rms(step),
                                          cornu_op_constant_like(t, adafactor->clip_threshold));
    step = cornu_op_divide(step, cornu_op_maximum(one, excess));
    return cornu_op_subtract(u->w, cornu_op_multiply(alpha, step));
}

static CornuOptimizer *adafactor_from(const void *config) { return cornu_adafactor_from(config); }

static const CornuOptimizerField fields[] = {
    CORNU__OPTIMIZER_NUMBER(CornuAdafactorConfig, Adafactor, beta_2_decay),
    CORNU__OPTIMIZER_NUMBER(CornuAdafactorConfig, Adafactor, epsilon_1),
    CORNU__OPTIMIZER_NUMBER(CornuAdafactorConfig, Adafactor, epsilon_2),
    CORNU__OPTIMIZER_NUMBER(CornuAdafactorConfig, Adafactor, clip_threshold),
    { "relative_step", CORNU_ARGUMENT_NOT, offsetof(CornuAdafactorConfig, no_relative_step),
      offsetof(Adafactor, no_relative_step) },
    { 0 },
};

const CornuOptimizerClass cornu__adafactor_class = {
    .class_name = "Adafactor", .size = sizeof(Adafactor), .slots = adafactor_slots,
    .slot_type = slot_type, .update_weight = adafactor_update, .fields = fields,
    .config_size = sizeof(CornuAdafactorConfig), .from = adafactor_from,
};

CornuOptimizer *cornu_adafactor_from(const CornuAdafactorConfig *config)
{
    CornuOptimizer *optimizer = cornu__optimizer_create(
        &cornu__adafactor_class, config->learning_rate != 0.0,
        CORNU__OPTIMIZER_ARGUMENTS(config, 0.001));
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Adafactor, config, beta_2_decay, 1, -0.8, -FLT_MAX,
                                     0.0);
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Adafactor, config, epsilon_1, 2, 1e-30, 0.0,
                                     FLT_MAX);
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Adafactor, config, epsilon_2, 3, 1e-3, 0.0,
                                     FLT_MAX);
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Adafactor, config, clip_threshold, 4, 1.0, FLT_MIN,
                                     FLT_MAX);
    if (optimizer) ((Adafactor *)optimizer)->no_relative_step = config->no_relative_step;
    return optimizer;
}
