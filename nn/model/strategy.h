/*
 * A TPU strategy, as the notebooks for Keras on TPUs use it: the device that was found, in how many
 * shards a batch is dealt on it, and how many steps run at a time.
 *
 *     CornuTpuTarget tpu;
 *     cornu_tpu_resolve(&tpu);                                      what is there? see resolver.h
 *     CornuStrategy *strategy = cornu_tpu_strategy(&tpu, .num_shards = 8);
 *     CORNU_SCOPE(strategy) {
 *         cornu_compile(model, .optimizer = cornu_adam(), …);       compiled for the TPU
 *     }
 *     cornu_keras_to_tpu_model(other, strategy);                    compiled before, moved there
 *
 * Sources: tensorflow/contrib/tpu/python/tpu/keras_support.py; tf.distribute.TPUStrategy.
 */
#ifndef CORNU_NN_STRATEGY_H
#define CORNU_NN_STRATEGY_H

#include "../../device/tpu/resolver.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuStrategy CornuStrategy;

typedef struct {
    char                  unset;
    const CornuTpuTarget *target;              /* default: what cornu_tpu_resolve finds   */
    int                   num_shards;          /* 1, 2, 4 or 8; default the profile's     */
    int                   threads;             /* of the emulation; default as device.h   */
    CornuPrecision        precision;           /* of products of f32; default as device.h */
    int64_t               iterations_per_loop; /* steps_per_execution of what is compiled
                                                  in scope or converted; default 1        */
} CornuTpuStrategyConfig;

/* Opens the device. NULL and pending for what the device or the resolver refuses. */
CornuStrategy *cornu_tpu_strategy_from(const CornuTpuStrategyConfig *config);
#define cornu_tpu_strategy(...) \
    cornu_tpu_strategy_from(&(CornuTpuStrategyConfig){ .unset = 0, __VA_ARGS__ })

/* Closes the device, so that it comes after the models on it are freed or moved away. */
void cornu_strategy_free(CornuStrategy *strategy);

CornuDevice *cornu_strategy_device(const CornuStrategy *strategy);
int64_t      cornu_strategy_iterations_per_loop(const CornuStrategy *strategy);

/* ---- Scope ---- */

/*
 * Python's `with strategy.scope():`. In the block that follows cornu_compile without .device
 * compiles for the strategy's device; the innermost of nested scopes rules, and each thread has
 * its own. The block runs once. Its end, break and continue leave the scope; return and goto out
 * of it do not, so cornu_scope_leave comes before them. With NULL the block runs with an error
 * pending, in which nothing succeeds.
 */
#define CORNU_SCOPE(strategy)                                                          \
    for (bool cornu_inside = cornu_scope_enter(strategy); cornu_inside;                \
         cornu_inside = cornu_scope_leave())                                           \
        for (; cornu_inside; cornu_inside = false)

/* True, and false, for the macro. At most 8 deep: beyond is a pending error. */
bool cornu_scope_enter(CornuStrategy *strategy);
bool cornu_scope_leave(void);

/* The innermost strategy of this thread, NULL outside of all. */
CornuStrategy *cornu_strategy_in_scope(void);

/* ---- Conversion ---- */

/*
 * Moves a compiled model to the strategy's device (cornu_model_move), with the strategy's
 * iterations_per_loop, and returns it; NULL and pending on failure, and then it stays where it
 * was. It is the same model, freed once by its
 * owner. The original made a second one whose weights had to be copied back; here reading and
 * saving take the weights from where they are, and cornu_model_move(model, NULL) is the way back.
 */
CornuModel *cornu_keras_to_tpu_model(CornuModel *model, CornuStrategy *strategy);

#ifdef __cplusplus
}
#endif
#endif
