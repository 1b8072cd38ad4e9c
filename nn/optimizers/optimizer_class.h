/*
 * What an optimizer is: the arguments that all have, and what a custom one defines.
 */
#ifndef CORNU_NN_OPTIMIZER_CLASS_H
#define CORNU_NN_OPTIMIZER_CLASS_H

#include "../../tensor/ops.h"
#include "../losses/loss.h"
#include "../weights/constraints.h"
#include "schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuOptimizer CornuOptimizer;

enum { CORNU_MAX_EXCLUDED = 16 };

/* Arguments of every optimizer; AdamW, which has its own weight_decay, has those after it. */
#define CORNU_OPTIMIZER_ARGUMENTS                                                        \
    CornuSchedule *schedule;        /* instead of learning_rate; taken                */ \
    double         weight_decay;    /* w -= w weight_decay learning_rate              */ \
    CORNU_OPTIMIZER_ARGUMENTS_AFTER_DECAY

#define CORNU_OPTIMIZER_ARGUMENTS_AFTER_DECAY                                            \
                                    /* At most one of the three may be given. They    */ \
                                    /* clip what is applied: the sum over shards, or  */ \
                                    /* the mean of the steps that are accumulated.    */ \
    double         clipnorm;        /* largest norm of each gradient                  */ \
    double         clipvalue;       /* largest absolute value of each element         */ \
    double         global_clipnorm; /* largest norm of all gradients together         */ \
    bool           use_ema;         /* keeps each weight's moving average,            */ \
    double         ema_momentum;    /* a = ema_momentum a + (1 - ema_momentum) w;     */ \
                                    /* default 0.99, or CORNU_ZERO                    */ \
    int64_t        ema_overwrite_frequency; /* steps after which the averages replace */ \
                                    /* the weights; default: only when fit ends       */ \
    double         loss_scale_factor; /* multiplies the loss and divides gradients;   */ \
                                    /* no effect where f16 scales the loss:           */ \
                                    /* cornu_loss_scale_optimizer                     */ \
    int64_t        gradient_accumulation_steps; /* 2 or more: updates by the mean of  */ \
                                    /* the gradients of so many steps                 */ \
    const char    *name;            /* default Keras': sgd, rm_sprop, adam, adam_w, … */

enum { CORNU_MAX_SLOTS = 3, CORNU_MAX_COMMON_SLOTS = 2 };

/* The input of an update: a slice of weights laid out in one vector, so that an element's update
 * must not depend on other elements; of update_weight one weight in its own shape. */
typedef struct {
    CornuTensor *w, *gradient;                /* of one shape, f32 */
    CornuTensor *w_before;                    /* w before its weight_decay */
    CornuTensor *slot[CORNU_MAX_SLOTS];       /* in the order of slots(); NULL: not this weight's */
    CornuTensor *learning_rate, *iteration;   /* f32 scalars; the first update is iteration 1 */
    CornuTensor *number;                      /* f32 scalar, if the class has number_name */
} CornuUpdate;

/* Kinds of arguments: double; bool; the opposite of a bool; int64_t; a double for which Keras has
 * None, CORNU_ZERO in the config and 0 in the optimizer; strings, CORNU_MAX_EXCLUDED pointers up to
 * the first NULL. */
typedef enum {
    CORNU_ARGUMENT_NUMBER, CORNU_ARGUMENT_FLAG, CORNU_ARGUMENT_NOT, CORNU_ARGUMENT_INTEGER,
    CORNU_ARGUMENT_NUMBER_OR_NONE, CORNU_ARGUMENT_STRINGS
} CornuArgumentKind;

/* An argument of a class besides those of every optimizer: Keras' name, and its offset in the
 * constructor's config and, with its default filled in, in the optimizer's own struct. */
typedef struct {
    const char       *name;        /* NULL ends a table */
    CornuArgumentKind kind;
    size_t            in_config, in_self;
} CornuOptimizerField;

typedef struct {
    const char *class_name;  /* Keras': "Adam" */
    size_t      size;        /* of its own struct, whose first field is a CornuOptimizer */
    /* Names of the slots of each weight, in groups: the slots of a group alternate weight by
     * weight; one group follows the other. Returns their number. */
    int (*slots)(const CornuOptimizer *self, const char *name[CORNU_MAX_SLOTS],
                 int group[CORNU_MAX_SLOTS]);
    /* The initial value of the elements of slot number `slot` of slots(); NULL: 0. */
    double (*initial)(const CornuOptimizer *self, int slot);
    /* A number kept from update to update besides the slots, if it has a name: its initial value,
     * and the next one from the last one, computed before the rest of the step. */
    const char  *number_name;
    double       first_number;
    CornuTensor *(*number)(const CornuOptimizer *self, const CornuUpdate *update);
    /* Computed once per step, for all weights: replaces update->learning_rate. May be NULL. */
    CornuTensor *(*schedule)(const CornuOptimizer *self, const CornuUpdate *update);
    /* Records the new weight (returned) and the new slots. */
    CornuTensor *(*update)(const CornuOptimizer *self, const CornuUpdate *update,
                           CornuTensor **new_slot);
    /* In place of it, where the update of an element depends on others of its weight: weight i of
     * build. Every shard computes all of it; groups of shards are refused. */
    CornuTensor *(*update_weight)(const CornuOptimizer *self, int i, const CornuUpdate *update,
                                  CornuTensor **new_slot);
    /* With it: the type of slot number `slot` of the weight, or false if it has none. NULL: all
     * have the weight's. */
    bool (*slot_type)(const CornuOptimizer *self, const CornuVariable *w, int slot,
                      CornuType *type);
    /* With it: the weight_decay of the weight. NULL: the optimizer's. */
    double (*decay_of)(const CornuOptimizer *self, const CornuVariable *w);
    /* 1 + the slot that starts as a copy of its weight; 0: none does. */
    int weight_slot;
    /* Frees what its own struct owns; may be NULL. */
    void (*free)(CornuOptimizer *self);
    /* For an optimizer that is made of others (optimizer_internal.h). */
    const struct CornuComposite *composite;
    /* For files: its own arguments, the config's size and the constructor; all zero for an
     * optimizer that cannot be saved. */
    const CornuOptimizerField *fields;
    size_t                     config_size;
    CornuOptimizer          *(*from)(const void *config);
} CornuOptimizerClass;

/* A run of weights and their slots, summed over the shards and updated together, as one vector; or
 * one weight that is not packed: a table with a sparse gradient, or what the device's mesh cuts. */
typedef struct {
    int            first, count;
    bool           sparse, cut;
    CornuVariable *weights;                   /* packed; theirs, as a packed slot is the slots' */
    CornuVariable *slots[CORNU_MAX_COMMON_SLOTS + CORNU_MAX_SLOTS];
} CornuBucket;

struct CornuOptimizer {
    const CornuOptimizerClass *kind;
    char             *name;
    CornuSchedule    *schedule;               /* or NULL */
    double            learning_rate;          /* the first value of the variable */
    double            weight_decay, clipnorm, clipvalue, global_clipnorm;  /* 0: none */
    bool              use_ema;
    double            ema_momentum, loss_scale_factor;                     /* 0: none */
    int64_t           ema_overwrite_frequency, accumulation_steps;         /* 0: none */
    bool              scales_loss;
    double            initial_scale;          /* these three if it does */
    int64_t           growth_steps;
    char             *scale_name;
    bool              taken;                  /* owned by a model: it cannot be passed again */
    CornuVariable   **variables;              /* its own, in Keras' order */
    int               variable_count;
    int               unlisted;               /* variables after these: see saved_count */
    CornuVariable    *iteration, *rate_variable;  /* of these; the learning rate's is NULL under a
                                                 schedule */
    CornuVariable    *step_counter, *dynamic_scale;  /* these two where the loss is not scaled */
    CornuVariable    *number;                 /* the class's number, or NULL */
    CornuVariable   **w;                      /* borrowed */
    CornuConstraint  *constraints;            /* of each w */
    CornuVariable   **slots;                  /* slot s of weight i: slots[i * slot_count + s], */
    int               count, slot_count;      /* those of every optimizer first, then the class's */
    CornuBucket      *buckets;                /* the last weights' first, as the backward pass */
    int               bucket_count;           /* makes their gradients                         */
    size_t            bucket_bytes;           /* of weights, at which a bucket is full; 0: 1 MiB */
    CornuReduction    reduction;
    CornuGroups       groups;
};

#ifdef __cplusplus
}
#endif
#endif
