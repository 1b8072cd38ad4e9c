/*
 * Precision policies: in which dtype layers compute, and in which their weights are kept.
 *
 *     name             computes in   weights
 *     float32          f32           f32
 *     mixed_bfloat16   bf16          f32
 *     mixed_float16    f16           f32, and the loss is scaled (optimizer.h)
 *
 *     cornu_set_dtype_policy("mixed_bfloat16");                       models made from now on
 *     cornu_sequential(.policy = "mixed_bfloat16")                    this model
 *     cornu_dense(10, .dtype = "float32")                             this layer
 *
 * The first of these that speaks of a layer rules, the innermost one; where none does, the
 * device that the model is compiled for (cornu_device_policy).
 *
 * A layer converts floats that come in, and its weights, to the dtype it computes in. In f32 stay
 * weights and their gradients, the optimizer's slots, normalization with its statistics, the
 * end of the model (the result of a last dense layer, taken from the sums of its product, and its
 * activation; a last layer without weights), losses and metrics.
 * Source: keras/src/dtype_policies/dtype_policy.py. Keras keeps the end of the model in f32 only
 * if told so.
 */
#ifndef CORNU_NN_POLICY_H
#define CORNU_NN_POLICY_H

#include "../../device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *name;
    CornuDtype  compute, variable;
} CornuPolicy;

/* By its name. CORNU_ERR_ARGUMENT naming the nearest one, NULL and pending;
 * CORNU_ERR_UNSUPPORTED for policies of Keras whose weights are not f32. */
const CornuPolicy *cornu_policy(const char *name);

/* The policy of models made from now on by this thread; NULL, as at the start: the device's. As
 * keras.config.set_dtype_policy. */
CornuStatus cornu_set_dtype_policy(const char *name);
/* NULL where none was set. */
const CornuPolicy *cornu_dtype_policy(void);

#ifdef __cplusplus
}
#endif
#endif
