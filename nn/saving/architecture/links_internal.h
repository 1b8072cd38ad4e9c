/* Reading the calls that link the layers of a Functional model (read_calls.c). */
#ifndef CORNU_NN_LINKS_INTERNAL_H
#define CORNU_NN_LINKS_INTERNAL_H

#include "architecture_internal.h"

/* An input has no `layer`: its node holds it. Nor has an operation of an unknown class: if it
 * computes a mask, that is passed on implicitly. */
typedef struct {
    const char   *name;
    CornuLayer   *layer;
    bool          is_operation;
    const char   *class_name;     /* of an operation of an unknown class */
    const json_t *calls;
    size_t        count, made;    /* of its calls */
    CornuNode   **nodes;
    size_t        wanted;         /* how many of them are needed now, while it is being linked */
    bool          waited_for;     /* is being linked */
} CornuLinked;

typedef struct {
    CornuLinked        *layers;
    size_t              count;
    json_t             *places;      /* the index of each name */
    const CornuTraced  *shared;      /* whose layers are taken where names are equal; or NULL */
    CornuSymbol *const *given;       /* of a single call: the symbols that its tensors number */
    int                 given_count;
} CornuLinks;

typedef struct {
    CornuSymbol     *in[CORNU_MAX_LAYER_TENSORS];
    int              count;
    CornuCallOptions options;
    CornuLinked     *waits;     /* a layer whose call has not been made yet; or NULL */
    size_t           calls;     /* that it must make */
} CornuCallOperands;

/* The keyword arguments of call i. */
static inline const json_t *cornu__kwargs_of(const json_t *calls, size_t i)
{
    return json_object_get(json_array_get(calls, i), "kwargs");
}

/* The tensor [layer, call, result]. NULL if that call has not been made yet: it is one of *waits,
 * the last of the *calls that it must make. `given`: among the outputs of the model. */
CornuStatus cornu__find_symbol(const CornuLinks *links, const json_t *history, bool given,
                               CornuSymbol **symbol, CornuLinked **waits, size_t *calls);

/* What a call of the layer is called on. */
CornuStatus cornu__read_call(const CornuLinks *links, const CornuLinked *layer, const json_t *call,
                             CornuCallOperands *operands);

#endif
