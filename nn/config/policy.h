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
 * The innermost of these applies: the layer's, else the model's, else the one set globally; without
 * any, the device that the model is compiled for chooses (cornu_device_policy).
 *
 * A layer converts its float inputs and its weights to the dtype it computes in. These stay in f32:
 * stored weights and their gradients, the optimizer's slots, normalization with its statistics, the
 * end of the model (the output of a last dense layer, from the f32 sums of its product, and its
 * activation; a last layer without weights), losses and metrics.
 * Source: keras/src/dtype_policies/dtype_policy.py. Keras keeps the end of the model in f32 only
 * when told to.
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

/* The policy of this name. NULL with a pending error: CORNU_ERR_ARGUMENT, suggesting the nearest
 * name, or CORNU_ERR_UNSUPPORTED for Keras' policies whose weights are not f32. */
const CornuPolicy *cornu_policy(const char *name);

/* The policy of models that this thread makes from now on; NULL, the initial value, is the device's
 * choice. As keras.config.set_dtype_policy. */
CornuStatus cornu_set_dtype_policy(const char *name);
/* The policy set for this thread, or NULL. */
const CornuPolicy *cornu_dtype_policy(void);

#ifdef __cplusplus
}
#endif
#endif
