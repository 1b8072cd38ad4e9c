/* Source: keras/src/optimizers/muon.py. */
#include <ctype.h>
#include <float.h>
#include <math.h>

#include "optimizer_internal.h"

typedef struct {
    CornuOptimizer base;
    double         adam_beta_1, adam_beta_2, adam_weight_decay, epsilon;
    double         muon_a, muon_b, muon_c, adam_lr_ratio, momentum, rms_rate;
    int64_t        ns_steps;
    bool           no_exclude_embeddings, no_nesterov;
    char          *exclude_layers[CORNU_MAX_EXCLUDED];
} Muon;

/* ---- Which weights ---- */

static bool is_embedding(const char *path)
{
    static const char word[] = "embedding";
    for (; *path; path++) {
        size_t i = 0;
        while (word[i] && tolower((unsigned char)path[i]) == word[i]) i++;
        if (!word[i]) return true;
    }
    return false;
}

/* Whether Adam updates the weight. */
static bool is_for_adam(const CornuOptimizer *self, const CornuVariable *w)
{
    const Muon *muon = (const Muon *)self;
    const char *path = cornu_variable_name(w);
    const bool  embedding = !muon->no_exclude_embeddings && is_embedding(path);
    return embedding || cornu__is_excluded(muon->exclude_layers, path) ||
           cornu_variable_type(w).shape.rank != 2;
}

static bool slot_type(const CornuOptimizer *self, const CornuVariable *w, int slot,
                      CornuType *type)
{
    (void)type;
    return slot == 0 || is_for_adam(self, w);
}

static double decay_of(const CornuOptimizer *self, const CornuVariable *w)
{
    return is_for_adam(self, w) ? ((const Muon *)self)->adam_weight_decay : self->weight_decay;
}

/* ---- Updates ---- */

static CornuTensor *adam(const Muon *muon, const CornuUpdate *u, CornuTensor **new_slot)
{
    CornuTensor *rate = cornu_op_scale(u->learning_rate, muon->adam_lr_ratio);
    CornuTensor *root = cornu_op_sqrt(cornu__bias_correction(u, muon->adam_beta_2));
    rate = cornu_op_divide(cornu_op_multiply(rate, root),
                           cornu__bias_correction(u, muon->adam_beta_1));
    new_slot[0] = cornu__moved(u->slot[0], u->gradient, muon->adam_beta_1);
    new_slot[1] = cornu__moved(u->slot[1], cornu_op_square(u->gradient), muon->adam_beta_2);
    CornuTensor *below = cornu_op_shift(cornu_op_sqrt(new_slot[1]), muon->epsilon);
    return cornu_op_subtract(u->w, cornu_op_divide(cornu_op_multiply(new_slot[0], rate), below));
}

static CornuTensor *transposed(CornuTensor *x)
{
    return cornu_op_transpose(x, (const int[]){ 1, 0 });
}

/* x of singular values near 1: Newton and Schulz' iteration. */
static CornuTensor *orthogonalized(const Muon *muon, CornuTensor *x)
{
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    const bool       tall = shape.extent[0] > shape.extent[1];
    if (tall) x = transposed(x);
    CornuTensor *norm = cornu_op_sqrt(cornu_op_sum(cornu_op_square(x)));
    x = cornu_op_divide(x, cornu_op_shift(norm, 1e-7));
    for (int64_t i = 0; i < muon->ns_steps; i++) {
        CornuTensor *a = cornu_op_matmul(x, transposed(x));
        CornuTensor *b = cornu_op_add(cornu_op_scale(a, muon->muon_b),
                                      cornu_op_matmul(cornu_op_scale(a, muon->muon_c), a));
        x = cornu_op_add(cornu_op_scale(x, muon->muon_a), cornu_op_matmul(b, x));
    }
    return tall ? transposed(x) : x;
}

static CornuTensor *muon_update(const CornuOptimizer *self, int i, const CornuUpdate *u,
                                CornuTensor **new_slot)
{
    const Muon *muon = (const Muon *)self;
    if (!u->w) return NULL;
    if (is_for_adam(self, self->w[i])) return adam(muon, u, new_slot);
    CornuTensor *m = u->slot[0];
    m = cornu_op_add(m, cornu_op_add(u->gradient, cornu_op_scale(m, muon->momentum - 1.0)));
    CornuTensor *along = muon->no_nesterov
                       ? m : cornu_op_add(u->gradient, cornu_op_scale(m, muon->momentum));
    CornuTensor *step = cornu_op_multiply(u->learning_rate, orthogonalized(muon, along));
    const CornuShape shape = cornu_tensor_shape(u->w);
    const double     larger = (double)(shape.extent[0] > shape.extent[1] ? shape.extent[0]
                                                                         : shape.extent[1]);
    if (muon->rms_rate != 0.0)
        step = cornu_op_scale(cornu_op_scale(step, sqrt(larger)), muon->rms_rate);
    new_slot[0] = m;
    return cornu_op_subtract(u->w, step);
}

/* ---- The class ---- */

static CornuOptimizer *muon_from(const void *config) { return cornu_muon_from(config); }

static void free_patterns(CornuOptimizer *self)
{
    cornu__free_excluded(((Muon *)self)->exclude_layers);
}

#define NUMBER(field) CORNU__OPTIMIZER_NUMBER(CornuMuonConfig, Muon, field)
static const CornuOptimizerField fields[] = {
    NUMBER(adam_beta_1), NUMBER(adam_beta_2),
    CORNU__OPTIMIZER_FIELD(CornuMuonConfig, Muon, adam_weight_decay, NUMBER_OR_NONE),
    NUMBER(epsilon),
    CORNU__OPTIMIZER_FIELD(CornuMuonConfig, Muon, exclude_layers, STRINGS),
    { "exclude_embeddings", CORNU_ARGUMENT_NOT, offsetof(CornuMuonConfig, no_exclude_embeddings),
      offsetof(Muon, no_exclude_embeddings) },
    NUMBER(muon_a), NUMBER(muon_b), NUMBER(muon_c), NUMBER(adam_lr_ratio), NUMBER(momentum),
    CORNU__OPTIMIZER_FIELD(CornuMuonConfig, Muon, ns_steps, INTEGER),
    { "nesterov", CORNU_ARGUMENT_NOT, offsetof(CornuMuonConfig, no_nesterov),
      offsetof(Muon, no_nesterov) },
    CORNU__OPTIMIZER_FIELD(CornuMuonConfig, Muon, rms_rate, NUMBER_OR_NONE),
    { 0 },
};
#undef NUMBER

const CornuOptimizerClass cornu__muon_class = {
    .class_name = "Muon", .size = sizeof(Muon), .slots = cornu__moments_slots,
    .slot_type = slot_type, .decay_of = decay_of, .update_weight = muon_update,
    .free = free_patterns, .fields = fields, .config_size = sizeof(CornuMuonConfig),
    .from = muon_from,
};

CornuOptimizer *cornu_muon_from(const CornuMuonConfig *config)
{
    CornuOptimizerArguments *arguments = CORNU__OPTIMIZER_ARGUMENTS(config, 0.001);
    arguments->weight_decay = cornu__number(CORNU__WRITTEN(config, weight_decay, 5), 0.004);
    CornuOptimizer *optimizer = cornu__optimizer_create(
        &cornu__muon_class, config->learning_rate != 0.0, arguments);
    const double below_1 = 1.0 - FLT_EPSILON / 2.0;
    const int64_t steps = cornu__integer(config->ns_steps, 5);
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Muon, config, adam_beta_1, 1, 0.9, 0.0, below_1);
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Muon, config, adam_beta_2, 2, 0.999, 0.0, below_1);
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Muon, config, epsilon, 4, 1e-7, 0.0, FLT_MAX);
    optimizer = cornu__optimizer_expect(optimizer, "ns_steps", (double)steps, 0.0, 100.0);
    if (!optimizer) return NULL;
    Muon *muon = (Muon *)optimizer;
    muon->adam_weight_decay = cornu__number(CORNU__WRITTEN(config, adam_weight_decay, 3), 0.004);
    muon->muon_a = cornu__number(CORNU__WRITTEN(config, muon_a, -1), 3.4445);
    muon->muon_b = cornu__number(CORNU__WRITTEN(config, muon_b, -1), -4.775);
    muon->muon_c = cornu__number(CORNU__WRITTEN(config, muon_c, -1), 2.0315);
    muon->adam_lr_ratio = cornu__number(CORNU__WRITTEN(config, adam_lr_ratio, -1), 1.0);
    muon->momentum = cornu__number(CORNU__WRITTEN(config, momentum, -1), 0.95);
    muon->rms_rate = cornu__number(CORNU__WRITTEN(config, rms_rate, -1), 0.2);
    muon->ns_steps = steps;
    muon->no_exclude_embeddings = config->no_exclude_embeddings;
    muon->no_nesterov = config->no_nesterov;
    return cornu__exclude(optimizer, "exclude_layers", config->exclude_layers,
                          muon->exclude_layers);
}
