/*
 * Rematerialization, Keras' RematScope: layers whose activations the backward pass computes again,
 * so that a training step needs less memory and more time. It trains to the same bits.
 *
 *     CORNU_REMAT_SCOPE() {                                   every layer made here
 *         x = cornu_call(cornu_dense(512, .activation = CORNU_GELU), x);
 *     }
 *     CORNU_REMAT_SCOPE(.mode = CORNU_REMAT_LARGER_THAN, .output_size_threshold = 4096) { … }
 *
 * What a layer reads is kept, and what it computes of that is not, unless another layer reads it.
 * So a block of layers saves more than each of them alone: a model within a model is a layer, of
 * which only the input is kept (cornu_as_layer). Of parts within parts the outermost counts, and
 * the model that is trained is none.
 *
 * Files do not hold it, as Keras' do not: models loaded in a scope have it.
 *
 * Sources: keras.RematScope, keras.remat.
 */
#ifndef CORNU_NN_REMAT_H
#define CORNU_NN_REMAT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CORNU_REMAT_FULL,             /* all layers                                             */
    CORNU_REMAT_ACTIVATIONS,      /* the .activation of layers, not the layers              */
    CORNU_REMAT_LARGER_THAN,      /* layers with outputs of more elements than a threshold  */
    CORNU_REMAT_LIST_OF_LAYERS,   /* layers with these names                                */
    CORNU_REMAT_OFF,              /* none: Keras' None                                      */
    CORNU_REMAT_MODES
} CornuRematMode;

/* Keras' name, "larger_than", "none" for CORNU_REMAT_OFF; NULL for unknown values. */
const char *cornu_remat_mode_name(CornuRematMode mode);

typedef struct {
    char               unset;
    CornuRematMode     mode;
    int64_t            output_size_threshold;   /* all rows of a batch count; default 1024, or
                                                   CORNU_ZERO                                 */
    const char *const *layer_names;             /* ends with NULL; copied; default: none      */
} CornuRematConfig;

/*
 * Python's `with keras.RematScope(…):` for the layers that are made in the following block. The
 * innermost of nested scopes applies; scopes are per thread. The block runs once. Its end, break
 * and continue leave the scope; return and goto out of it do not, so call cornu_remat_leave before
 * them. An unknown mode is a pending error, with which no layer is made.
 */
#define CORNU_REMAT_SCOPE(...)                                                            \
    for (bool cornu_inside = cornu_remat_enter(&(CornuRematConfig){                       \
             .unset = 0, __VA_ARGS__ }); cornu_inside; cornu_inside = cornu_remat_leave()) \
        for (; cornu_inside; cornu_inside = false)

/* Returns true, for the macro. The names are copied. At most 8 nested scopes; more is a pending
 * error. */
bool cornu_remat_enter(const CornuRematConfig *config);
/* Returns false, for the macro. */
bool cornu_remat_leave(void);

#ifdef __cplusplus
}
#endif
#endif
