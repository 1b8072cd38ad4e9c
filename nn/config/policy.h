/*
 * Precision policies: in which dtype layers compute, and in which their weights are kept.
 *
 *     name             computes in   weights
 *     float32          f32           f32
 *     mixed_bfloat16   bf16          f32
 *     mixed_float16    f16           f32, and the loss is scaled (optimizer.h)
 *     bfloat16         bf16          bf16
 *     float16          f16           f16
 *
 * and, of a Dense, EinsumDense, Embedding or ReversibleEmbedding alone, "int8_from_float32" etc.:
 * its kernel is quantized (layers/layer.h), and the rest is as the policy after "from" says.
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

/* How the kernel of a layer is kept: keras/src/dtype_policies/dtype_policy.py. */
typedef enum { CORNU_NOT_QUANTIZED, CORNU_INT8, CORNU_INT4, CORNU_FLOAT8 } CornuQuantization;

typedef struct {
    const char       *name;
    CornuDtype        compute, variable;
    CornuQuantization quantization;
} CornuPolicy;

/* The policy of this name. NULL with a pending error: CORNU_ERR_ARGUMENT, suggesting the nearest
 * name, or CORNU_ERR_UNSUPPORTED for float64. "int4/32_from_float32" is that of
 * "int4_from_float32": the blocks are the layer's. */
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
