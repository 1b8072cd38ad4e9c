/*
 * Optimizer updates: weight, slots and gradient of the same shape in f32; `rate` is an f32 scalar,
 * since it changes between steps. The other numbers are constant and thus attributes.
 */
#include <math.h>

#include "rules.h"
#include "build.h"

/* Operands: weight, slots, gradient, rate; results: the new weight and slots. */
static CornuStatus update_type(const CornuOpCall *call, CornuType *out, const char *names)
{
    int rate = call->in_count - 1;
    CORNU__TRY(cornu__expect_dtype(call, 0, CORNU_F32, names));
    for (int i = 1; i < rate; i++) CORNU__TRY(cornu__expect_alike(call, 0, i, names));
    CORNU__TRY(cornu__expect_dtype(call, rate, CORNU_F32, names));
    CORNU__TRY(cornu__expect_rank(call, rate, 0, names));
    return cornu__same_type(call, out);
}

static int64_t flops_each(const CornuOpCall *call, int64_t per_element)
{
    return cornu__flops(2, (const int64_t[]){ per_element, cornu_type_count(call->in[0]) });
}

static CornuValue add(CornuBuilder *b, CornuValue x, CornuValue y)
{
    return cornu__build2(b, CORNU_OP_ADD, x, y);
}

static CornuValue subtract(CornuBuilder *b, CornuValue x, CornuValue y)
{
    return cornu__build2(b, CORNU_OP_SUBTRACT, x, y);
}

static CornuValue multiply(CornuBuilder *b, CornuValue x, CornuValue y)
{
    return cornu__build2(b, CORNU_OP_MULTIPLY, x, y);
}

static CornuValue divide(CornuBuilder *b, CornuValue x, CornuValue y)
{
    return cornu__build2(b, CORNU_OP_DIVIDE, x, y);
}

/*
 * momentum_update(w, m, g, rate): m' = momentum m - rate g;  w' = w + m', with nesterov
 * w' = w + momentum m' - rate g.
 * Source: keras/src/optimizers/sgd.py.
 */
static CornuStatus momentum_update_type(const CornuOpCall *call, CornuType *out)
{
    return update_type(call, out, "w m g rate");
}

static int64_t momentum_update_flops(const CornuOpCall *call)
{
    return flops_each(call, call->attributes->momentum.nesterov ? 6 : 4);
}

static CornuStatus momentum_update_decompose(CornuProgram *program, const CornuOpCall *call,
                                             const CornuValue *in, CornuValue *out)
{
    const CornuAttributes_MOMENTUM *a = &call->attributes->momentum;
    CornuBuilder b = { program, CORNU_OK };
    CornuValue   w = in[0], m = in[1], g = in[2];
    CornuValue   step = multiply(&b, g, cornu__build_like(&b, in[3], g));
    CornuValue   new_m = subtract(&b, cornu__build_scale(&b, m, a->momentum), step);
    CornuValue   ahead = new_m;
    if (a->nesterov) ahead = subtract(&b, cornu__build_scale(&b, new_m, a->momentum), step);
    out[0] = add(&b, w, ahead);
    out[1] = new_m;
    return b.status;
}

static CornuStatus momentum_update_reference(const CornuReferenceCall *call)
{
    const CornuAttributes_MOMENTUM *a = &call->op.attributes->momentum;
    const double *w = call->in[0], *m = call->in[1], *g = call->in[2], rate = call->in[3][0];
    for (int64_t i = 0; i < call->count; i++) {
        double new_m = a->momentum * m[i] - rate * g[i];
        call->out[1][i] = new_m;
        call->out[0][i] = w[i] + (a->nesterov ? a->momentum * new_m - rate * g[i] : new_m);
    }
    return CORNU_OK;
}

const CornuOpRules cornu__momentum_update_rules = {
    momentum_update_type, momentum_update_flops, momentum_update_decompose,
    momentum_update_reference,
};

/*
 * rmsprop_update(w, v, g, rate): v' = rho v + (1 - rho) g^2;  w' = w - rate g / sqrt(v' + epsilon).
 * Source: keras/src/optimizers/rmsprop.py.
 */
static CornuStatus rmsprop_update_type(const CornuOpCall *call, CornuType *out)
{
    return update_type(call, out, "w v g rate");
}

static int64_t rmsprop_update_flops(const CornuOpCall *call) { return flops_each(call, 9); }

static CornuStatus rmsprop_update_decompose(CornuProgram *program, const CornuOpCall *call,
                                            const CornuValue *in, CornuValue *out)
{
    const CornuAttributes_RMSPROP *a = &call->attributes->rmsprop;
    CornuBuilder b = { program, CORNU_OK };
    CornuValue   w = in[0], v = in[1], g = in[2];
    CornuValue   square = multiply(&b, g, g);
    CornuValue   new_v = add(&b, cornu__build_scale(&b, v, a->rho),
                             cornu__build_scale(&b, square, 1.0 - a->rho));
    CornuValue   root = cornu__build1(&b, CORNU_OP_SQRT,
                                      add(&b, new_v, cornu__build_constant(&b, a->epsilon, v)));
    CornuValue   step = multiply(&b, g, cornu__build_like(&b, in[3], g));
    out[0] = subtract(&b, w, divide(&b, step, root));
    out[1] = new_v;
    return b.status;
}

static CornuStatus rmsprop_update_reference(const CornuReferenceCall *call)
{
    const CornuAttributes_RMSPROP *a = &call->op.attributes->rmsprop;
    const double *w = call->in[0], *v = call->in[1], *g = call->in[2], rate = call->in[3][0];
    for (int64_t i = 0; i < call->count; i++) {
        double new_v = a->rho * v[i] + (1.0 - a->rho) * g[i] * g[i];
        call->out[1][i] = new_v;
        call->out[0][i] = w[i] - rate * g[i] / sqrt(new_v + a->epsilon);
    }
    return CORNU_OK;
}

const CornuOpRules cornu__rmsprop_update_rules = {
    rmsprop_update_type, rmsprop_update_flops, rmsprop_update_decompose, rmsprop_update_reference,
};

/*
 * adam_update(w, m, v, g, rate): m' = m + (g - m)(1 - beta_1);  v' = v + (g^2 - v)(1 - beta_2);
 * w' = w - rate m' / (sqrt(v') + epsilon). The caller corrects `rate` for bias.
 * Source: keras/src/optimizers/adam.py.
 */
static CornuStatus adam_update_type(const CornuOpCall *call, CornuType *out)
{
    return update_type(call, out, "w m v g rate");
}

static int64_t adam_update_flops(const CornuOpCall *call) { return flops_each(call, 12); }

/* old + (new - old) part */
static CornuValue towards(CornuBuilder *b, CornuValue old, CornuValue new, double part)
{
    return add(b, old, cornu__build_scale(b, subtract(b, new, old), part));
}

static CornuStatus adam_update_decompose(CornuProgram *program, const CornuOpCall *call,
                                         const CornuValue *in, CornuValue *out)
{
    const CornuAttributes_ADAM *a = &call->attributes->adam;
    CornuBuilder b = { program, CORNU_OK };
    CornuValue   w = in[0], m = in[1], v = in[2], g = in[3];
    CornuValue   new_m = towards(&b, m, g, 1.0 - a->beta_1);
    CornuValue   new_v = towards(&b, v, multiply(&b, g, g), 1.0 - a->beta_2);
    CornuValue   root = cornu__build1(&b, CORNU_OP_SQRT, new_v);
    CornuValue   below = add(&b, root, cornu__build_constant(&b, a->epsilon, v));
    CornuValue   step = multiply(&b, new_m, cornu__build_like(&b, in[4], m));
    out[0] = subtract(&b, w, divide(&b, step, below));
    out[1] = new_m;
    out[2] = new_v;
    return b.status;
}

static CornuStatus adam_update_reference(const CornuReferenceCall *call)
{
    const CornuAttributes_ADAM *a = &call->op.attributes->adam;
    const double *w = call->in[0], *m = call->in[1], *v = call->in[2], *g = call->in[3];
    double        rate = call->in[4][0];
    for (int64_t i = 0; i < call->count; i++) {
        double new_m = m[i] + (g[i] - m[i]) * (1.0 - a->beta_1);
        double new_v = v[i] + (g[i] * g[i] - v[i]) * (1.0 - a->beta_2);
        call->out[1][i] = new_m;
        call->out[2][i] = new_v;
        call->out[0][i] = w[i] - rate * new_m / (sqrt(new_v) + a->epsilon);
    }
    return CORNU_OK;
}

const CornuOpRules cornu__adam_update_rules = {
    adam_update_type, adam_update_flops, adam_update_decompose, adam_update_reference,
};
