/* What the optimizers share: arguments, buckets of packed weights, slots, helpers of updates. */
#ifndef CORNU_NN_OPTIMIZER_INTERNAL_H
#define CORNU_NN_OPTIMIZER_INTERNAL_H

#include "../../device/memory_internal.h"
#include "../config/keywords_internal.h"
#include "optimizer.h"

/* The arguments that every config has. */
typedef struct {
    double learning_rate;   /* resolved */
    CORNU_OPTIMIZER_ARGUMENTS
} CornuOptimizerArguments;

#define CORNU__OPTIMIZER_ARGUMENTS(config, usual)                                        \
    (&(CornuOptimizerArguments){                                                         \
        .learning_rate = cornu__number(CORNU__WRITTEN(config, learning_rate, 0), usual), \
        .schedule = (config)->schedule,                                                  \
        .weight_decay = cornu__number((config)->weight_decay, 0.0),                      \
        .clipnorm = (config)->clipnorm, .clipvalue = (config)->clipvalue,                \
        .global_clipnorm = (config)->global_clipnorm, .use_ema = (config)->use_ema,      \
        .ema_momentum = cornu__number(CORNU__WRITTEN(config, ema_momentum, -1), 0.99),   \
        .ema_overwrite_frequency = (config)->ema_overwrite_frequency,                    \
        .loss_scale_factor = (config)->loss_scale_factor,                                \
        .gradient_accumulation_steps = (config)->gradient_accumulation_steps,            \
        .name = (config)->name })

/* Checks the common arguments and allocates an optimizer; takes the schedule. learning_rate_given:
 * the config's learning_rate is not 0. NULL with a pending error. */
CornuOptimizer *cornu__optimizer_create(const CornuOptimizerClass *kind, bool learning_rate_given,
                                        const CornuOptimizerArguments *arguments);

/* Checks and sets the common arguments; takes the schedule. */
CornuStatus cornu__optimizer_set(CornuOptimizer *optimizer, bool learning_rate_given,
                                 const CornuOptimizerArguments *arguments);

/* Makes the optimizer scale the loss; config->optimizer is not used. */
CornuStatus cornu__optimizer_scale(CornuOptimizer *optimizer, const CornuLossScaleConfig *config);

/* What an optimizer that is made of others does itself; `optimizer` has two variables of its own,
 * and lists theirs after these. */
typedef struct CornuComposite {
    CornuStatus (*build)(CornuOptimizer *optimizer, CornuVariable *const *w, int count);
    CornuStatus (*apply)(CornuOptimizer *optimizer, CornuGraph *graph,
                         CornuTensor *const *gradients);
    CornuTensor *(*gradient_norm)(const CornuOptimizer *optimizer, CornuGraph *graph,
                                  CornuTensor *const *gradients);
    void (*constrain)(CornuOptimizer *optimizer, int i, CornuConstraint constraint);
    CornuOptimizer *(*inner)(const CornuOptimizer *optimizer, int i);   /* NULL after the last */
    const char *(*path)(const CornuOptimizer *optimizer, int i);        /* NULL: the default one */
} CornuComposite;
enum { CORNU__COMPOSITE_VARIABLES = 2 };

extern const CornuOptimizerClass cornu__multi_class;

/* The optimizer of a weight, from 0. */
typedef int CornuChooseOptimizer(const void *context, const CornuVariable *w);

/* As cornu_multi_optimizer, of `count` optimizers, which it takes, at most CORNU_MAX_OPTIMIZERS; a
 * function says whose a weight is. The names are for files. */
CornuOptimizer *cornu__multi_optimizer_of(CornuOptimizer *const *optimizers,
                                          const char *const *names, int count,
                                          CornuChooseOptimizer *choose, const void *context);

/* The variables that go on as they are, more than cornu_optimizer_variable_count: Keras'
 * LossScaleOptimizer does not list what the class inside makes without add_variable, Nadam's
 * u_product, so that files of Keras lack it and training begun from them starts with a new one.
 * Our own files have it. cornu_optimizer_variable takes the indices of both. */
int cornu__optimizer_saved_count(const CornuOptimizer *optimizer);

/* Optimizer i of a composite one, and NULL after the last; NULL for another. */
static inline CornuOptimizer *cornu__optimizer_inner(const CornuOptimizer *optimizer, int i)
{
    return optimizer->kind->composite ? optimizer->kind->composite->inner(optimizer, i) : NULL;
}

/* Frees what build made, also of the optimizers that a composite one is made of. */
void cornu__optimizer_unbuild(CornuOptimizer *optimizer);

/* Builds it anew for these weights, on the device of the old ones; count may be 0. Variables of the
 * same name and type keep their values. On failure the optimizer is not built. */
CornuStatus cornu__optimizer_rebuild(CornuOptimizer *optimizer, CornuDevice *device,
                                     CornuVariable *const *w, int count);

/* Adds an iteration (i64) and a learning rate (f32) of that owner. */
CornuStatus cornu__optimizer_add_clock(CornuOptimizer *optimizer, CornuDevice *device,
                                       const char *owner, bool has_rate,
                                       CornuVariable **iteration, CornuVariable **rate);

#define OPTIMIZER(name) extern const CornuOptimizerClass cornu__##name##_class;
#include "optimizers.def"
#undef OPTIMIZER

/* The optimizers by name; a row without a name ends the table. */
typedef struct {
    const char                *name;
    const CornuOptimizerClass *kind;
} CornuOptimizerRow;
extern const CornuOptimizerRow cornu__optimizers[];

/* The built-in class of this name; NULL if there is none. */
const CornuOptimizerClass *cornu__optimizer_class(const char *class_name);

/* For the tables of arguments. */
#define CORNU__OPTIMIZER_FIELD(Config, Self, field, KIND) \
    { #field, CORNU_ARGUMENT_##KIND, offsetof(Config, field), offsetof(Self, field) }
#define CORNU__OPTIMIZER_NUMBER(Config, Self, field) \
    CORNU__OPTIMIZER_FIELD(Config, Self, field, NUMBER)
#define CORNU__OPTIMIZER_FLAG(Config, Self, field) CORNU__OPTIMIZER_FIELD(Config, Self, field, FLAG)

/* The number of slots that every class may have: each weight's average, then its accumulated
 * gradients. */
static inline int cornu__common_slots(const CornuOptimizer *optimizer)
{
    return optimizer->use_ema + (optimizer->accumulation_steps > 0);
}

static inline int cornu__optimizer_shards(const CornuOptimizer *optimizer)
{
    return cornu_device_shards(cornu_variable_device(optimizer->w[0]));
}

/* Whether there are several groups of shards. */
static inline bool cornu__optimizer_has_groups(const CornuOptimizer *optimizer)
{
    const int size = optimizer->groups.size;
    return size > 0 && size < cornu__optimizer_shards(optimizer);
}

/* Whether the bucket is a weight by itself, which is not packed. */
static inline bool cornu__is_alone(const CornuBucket *bucket)
{
    return bucket->sparse || bucket->cut;
}

/* Common to Adam and its variants, which estimate two moments of the gradient. */
typedef struct {
    CornuOptimizer base;
    double         beta_1, beta_2, epsilon;
} CornuMoments;

/* As cornu__optimizer_create, for a class whose struct begins with CornuMoments; the numbers as in
 * the config. */
CornuOptimizer *cornu__moments_create(const CornuOptimizerClass *kind, bool learning_rate_given,
                                      const CornuOptimizerArguments *arguments, double beta_1,
                                      double beta_2, double epsilon);

/* The constructor of a class with CornuMoments alone, and for its table: the arguments, and slots
 * called momentum and velocity. */
CornuOptimizer *cornu__moments_from(const CornuOptimizerClass *kind,
                                    const CornuMomentsConfig *config);
extern const CornuOptimizerField cornu__moments_fields[];
int cornu__moments_slots(const CornuOptimizer *self, const char *name[CORNU_MAX_SLOTS],
                         int group[CORNU_MAX_SLOTS]);

/* mean + (x - mean)(1 - beta), in the order of Keras' operations. */
CornuTensor *cornu__moved(CornuTensor *mean, CornuTensor *x, double beta);

/* 1 - beta^t, t counting updates */
CornuTensor *cornu__bias_correction(const CornuUpdate *update, double beta);

/* ---- Sparse gradients (sparse_rows.c) ---- */

/* CORNU_ERR_UNSUPPORTED unless the optimizer can update rows of the weight alone. */
CornuStatus cornu__sparse_check(const CornuOptimizer *optimizer, const CornuVariable *w);

/* The gradient of a table as this shard has it: *rows, i32 (N), the rows that were looked up in
 * ascending order, filled up with the number of the table's rows, and their gradients, f32 (N, C),
 * zeros there; NULL with a pending error. */
CornuTensor *cornu__sparse_gradient(const CornuVariable *w, CornuTensor *gradient,
                                    CornuTensor **rows);

/* The same with the rows and gradients of all shards. */
CornuTensor *cornu__sparse_reduce(const CornuVariable *w, CornuTensor *g, CornuTensor **rows);

/* These rows of a table; the table with other values in them. */
CornuTensor *cornu__sparse_read(CornuTensor *table, CornuTensor *rows);
CornuStatus  cornu__sparse_assign(CornuVariable *table, CornuTensor *rows, CornuTensor *values);

/* Sets all elements, without as much memory on the host. */
CornuStatus  cornu__sparse_fill(CornuVariable *table, double value);

/* Divides the weights of build into buckets, which are allocated, one for each weight at most: runs
 * of whole layers from the last weight back, each as short as holds 1 MiB, the first layers'
 * perhaps less. */
void cornu__optimizer_divide(CornuOptimizer *optimizer);

/* Packs the weights of each bucket unless they still are packed; graphs are recorded after this.
 * Another optimizer that trains some of them repacks them. */
CornuStatus cornu__optimizer_pack(CornuOptimizer *optimizer);
/* CORNU_ERR_ARGUMENT if they have been packed otherwise since, as by another optimizer. */
CornuStatus cornu__optimizer_check_packed(const CornuOptimizer *optimizer);

/* Copies patterns of paths, POSIX extended expressions, up to the first NULL: the argument of this
 * name. For one that is none frees the optimizer and returns NULL with a pending error. */
CornuOptimizer *cornu__exclude(CornuOptimizer *optimizer, const char *argument,
                               const char *const from[CORNU_MAX_EXCLUDED],
                               char *to[CORNU_MAX_EXCLUDED]);
bool            cornu__is_excluded(char *const patterns[CORNU_MAX_EXCLUDED], const char *path);
void            cornu__free_excluded(char *patterns[CORNU_MAX_EXCLUDED]);

/* factor |w| / |u|, or 1 if one of the norms is 0. */
CornuTensor *cornu__norm_ratio(CornuTensor *w, CornuTensor *u, double factor);

/* Packs this slot of all weights, by bucket. */
CornuStatus cornu__optimizer_pack_slots(CornuOptimizer *optimizer, int slot, const char *name);

/* In place of cornu_optimizer_build where there is no weight to train: the optimizer's own
 * variables alone, as Keras has them. */
CornuStatus cornu__optimizer_build_empty(CornuOptimizer *optimizer, CornuDevice *device);

/* Moves the optimizer's variables to another device, on which w[0 … count) are copies of the
 * weights of build. All or nothing. */
CornuStatus cornu__optimizer_move(CornuOptimizer *optimizer, CornuDevice *device,
                                  CornuVariable *const *w);

/* For constructors: unless low <= value <= high, frees the optimizer and returns NULL with a
 * pending error that names it and the argument. */
CornuOptimizer *cornu__optimizer_expect(CornuOptimizer *optimizer, const char *argument,
                                        double value, double low, double high);

/* Likewise, and sets the number at this offset of the optimizer's own struct. And with the number
 * `field` of the config, argument number `place` of a call, or by default `usual`. */
CornuOptimizer *cornu__optimizer_number(CornuOptimizer *optimizer, const char *argument,
                                        size_t offset, double value, double low, double high);
#define CORNU__OPTIMIZER_SET(optimizer, Self, config, field, place, usual, low, high)        \
    cornu__optimizer_number(optimizer, #field, offsetof(Self, field),                        \
                            cornu__number(CORNU__WRITTEN(config, field, place), usual), low, \
                            high)

#endif
