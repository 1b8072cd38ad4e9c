/*
 * Ops of training: custom gradients, sums between shards, and the optimizers' updates. ops.h,
 * which includes this header, says what all ops have in common.
 */
#ifndef CORNU_TENSOR_TRAINING_OPS_H
#define CORNU_TENSOR_TRAINING_OPS_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Custom gradients ---- */

/* What the gradient with respect to a tensor, d_y, becomes; of its type. NULL on failure. */
typedef CornuTensor *CornuGradientStep(void *context, CornuTensor *d_y);

/*
 * keras.ops.custom_gradient: y itself, but in cornu_gradients d_y, once `step` (NULL: none) has
 * been applied, is taken for the gradient with respect to `instead`, a tensor of y's type recorded
 * before y, whose gradient then flows on. `instead` may be y: only the step is then added. If
 * nothing else reads `instead`, it is not computed. y is the result of an op, not an input.
 * `context` must last as long as gradients are taken. Steps may assign variables.
 *
 *     rounded = cornu_op_with_gradient(round_of(x), x, NULL, NULL)     a straight-through estimate
 */
CornuTensor *cornu_op_with_gradient(CornuTensor *y, CornuTensor *instead, CornuGradientStep *step,
                                    void *context);

/* ---- Between shards ---- */

/* On a shard the loss of cornu_gradients is that shard's part of the total loss; these ops sum the
 * gradients. */

/* Shards that work together: groups of `size`, which divides the number of shards; 0: one group of
 * all. `members` lists the shards group by group, each once: { 4, { 0, 2, 4, 6, 1, 3, 5, 7 } } are
 * the even and the odd shards; all zeros: 0, 1, 2, … Within a group the order is that of the
 * shards' numbers. NULL stands for one group of all shards. */
typedef struct {
    int size, members[CORNU_MAX_SHARDS];
} CornuGroups;

/* CORNU_ERR_ARGUMENT if the groups are not valid on a device of so many shards. */
CornuStatus cornu_groups_check(const CornuGroups *groups, int shards);

/* The sum of x (f32, f64, i64 or i32) over all shards, in a fixed order; x itself if there is one
 * shard. The result is common to the shards. */
CornuTensor *cornu_op_all_reduce(CornuTensor *x);
/* Likewise over the shards of each group: the result varies from group to group. */
CornuTensor *cornu_op_all_reduce_in(CornuTensor *x, const CornuGroups *groups);
/* This shard's slice of that sum: axis 0 is divided equally among the members of a group. */
CornuTensor *cornu_op_reduce_scatter(CornuTensor *x, const CornuGroups *groups);
/* The inverse of slicing: the members' x concatenated along axis 0, in any dtype. */
CornuTensor *cornu_op_all_gather(CornuTensor *x, const CornuGroups *groups);
/* This shard's slice of x. */
CornuTensor *cornu_op_shard_slice(CornuTensor *x, const CornuGroups *groups);

/* ---- Optimizer updates: w, slots and g of one shape, f32; learning_rate an f32 scalar ---- */

/* m' = momentum m - learning_rate g;  w' = w + m', with nesterov w + momentum m' - learning_rate g.
 * Source: keras/src/optimizers/sgd.py. */
CornuTensor *cornu_op_momentum_update(CornuTensor *w, CornuTensor *m, CornuTensor *g,
                                      CornuTensor *learning_rate, double momentum, bool nesterov,
                                      CornuTensor **new_m);
/* v' = rho v + (1 - rho) g^2;  w' = w - learning_rate g / sqrt(v' + epsilon).
 * Source: keras/src/optimizers/rmsprop.py. */
CornuTensor *cornu_op_rmsprop_update(CornuTensor *w, CornuTensor *v, CornuTensor *g,
                                     CornuTensor *learning_rate, double rho, double epsilon,
                                     CornuTensor **new_v);
/* m' = m + (g - m)(1 - beta_1);  v' = v + (g^2 - v)(1 - beta_2);
 * w' = w - learning_rate m' / (sqrt(v') + epsilon), learning_rate corrected for bias by the caller.
 * Source: keras/src/optimizers/adam.py. */
CornuTensor *cornu_op_adam_update(CornuTensor *w, CornuTensor *m, CornuTensor *v, CornuTensor *g,
                                  CornuTensor *learning_rate, double beta_1, double beta_2,
                                  double epsilon, CornuTensor **new_m, CornuTensor **new_v);

#ifdef __cplusplus
}
#endif
#endif
