/* Source: official/modeling/optimization/lars.py of TensorFlow Models. */
#include <float.h>

#include "optimizer_internal.h"

typedef struct {
    CornuOptimizer base;
    double         momentum, eeta;
    bool           nesterov, no_classic_momentum;
    char          *exclude_from_weight_decay[CORNU_MAX_EXCLUDED];
    char          *exclude_from_layer_adaptation[CORNU_MAX_EXCLUDED];
} Lars;

static int lars_slots(const CornuOptimizer *self, const char *name[CORNU_MAX_SLOTS],
                      int group[CORNU_MAX_SLOTS])
{
    (void)self;
    name[0] = "momentum", group[0] = 0;
    return 1;
}

/* LARS adds the decay to the gradient itself, so that the common decay is 0. */
static double decay_of(const CornuOptimizer *self, const CornuVariable *w)
{
    (void)self, (void)w;
    return 0.0;
}

/* learning_rate eeta |w| / |u|: of a weight that is not excluded. */
static CornuTensor *rate_of(const Lars *lars, const char *path, const CornuUpdate *update,
                            CornuTensor *u)
{
    if (cornu__is_excluded(lars->exclude_from_layer_adaptation, path)) return update->learning_rate;
    CornuTensor *ratio = cornu__norm_ratio(update->w, u, lars->eeta);
    return cornu_op_multiply(update->learning_rate, ratio);
}

/* g + momentum m with Nesterov's momentum, else m. */
static CornuTensor *along(const Lars *lars, CornuTensor *g, CornuTensor *m)
{
    return lars->nesterov ? cornu_op_add(g, cornu_op_scale(m, lars->momentum)) : m;
}

static CornuTensor *lars_update(const CornuOptimizer *self, int i, const CornuUpdate *u,
                                CornuTensor **new_slot)
{
    const Lars  *lars = (const Lars *)self;
    const char  *path = cornu_variable_name(self->w[i]);
    CornuTensor *g = u->gradient, *m = cornu_op_scale(u->slot[0], lars->momentum);
    if (self->weight_decay > 0.0 && !cornu__is_excluded(lars->exclude_from_weight_decay, path))
        g = cornu_op_add(g, cornu_op_scale(u->w, self->weight_decay));
    if (lars->no_classic_momentum) {
        new_slot[0] = cornu_op_add(m, g);
        CornuTensor *step = along(lars, g, new_slot[0]);
        return cornu_op_subtract(u->w, cornu_op_multiply(step, rate_of(lars, path, u, step)));
    }
    g = cornu_op_multiply(g, rate_of(lars, path, u, g));
    new_slot[0] = cornu_op_add(m, g);
    return cornu_op_subtract(u->w, along(lars, g, new_slot[0]));
}

static void free_patterns(CornuOptimizer *self)
{
    cornu__free_excluded(((Lars *)self)->exclude_from_weight_decay);
    cornu__free_excluded(((Lars *)self)->exclude_from_layer_adaptation);
}

/* Not one of Keras', whose files cannot name it. */
static const CornuOptimizerClass lars_class = {
    .class_name = "LARS", .size = sizeof(Lars), .slots = lars_slots, .decay_of = decay_of,
    .update_weight = lars_update, .free = free_patterns,
};

CornuOptimizer *cornu_lars_from(const CornuLarsConfig *config)
{
    CornuOptimizer *optimizer = cornu__optimizer_create(
        &lars_class, config->learning_rate != 0.0, CORNU__OPTIMIZER_ARGUMENTS(config, 0.01));
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Lars, config, momentum, 1, 0.9, 0.0, 1.0);
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Lars, config, eeta, 2, 0.001, FLT_MIN, FLT_MAX);
    if (!optimizer) return NULL;
    Lars *lars = (Lars *)optimizer;
    lars->nesterov = config->nesterov;
    lars->no_classic_momentum = config->no_classic_momentum;
    const bool same = !config->exclude_from_layer_adaptation[0];
    optimizer = cornu__exclude(optimizer, "exclude_from_weight_decay",
                               config->exclude_from_weight_decay, lars->exclude_from_weight_decay);
    return cornu__exclude(optimizer, "exclude_from_layer_adaptation",
                          same ? config->exclude_from_weight_decay
                               : config->exclude_from_layer_adaptation,
                          lars->exclude_from_layer_adaptation);
}
