/* Layers as activations of other layers. An activation is a number: those after the named ones
 * stand for layers, each kept once, for as long as the program runs. One that computes by its
 * arguments alone is called as it is; of any other, which has weights or random draws, each layer
 * with the activation has a copy among its inner layers. */
#include "../fields/field_internal.h"
#include "layer_internal.h"

#include <pthread.h>
#include <string.h>

enum { MOST = 4096 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static CornuLayer     *kept[MOST];
static int             count;

static bool same(const CornuLayer *a, const CornuLayer *b)
{
    bool equal = a->kind == b->kind && a->own_policy == b->own_policy &&
                 a->frozen == b->frozen && !strcmp(cornu_layer_name(a), cornu_layer_name(b));
    for (const CornuField *field = cornu__keras_class(a)->fields; equal && field->name; field++)
        equal = field->kind->size > 0 &&
                !memcmp((const char *)cornu__config(a) + field->offset,
                        (const char *)cornu__config(b) + field->offset, field->kind->size);
    return equal;
}

/* Takes the layer unless an equal one is kept. */
static int keep(CornuLayer *layer)
{
    int i = 0;
    while (i < count && !same(kept[i], layer)) i++;
    if (i == MOST) return -1;
    if (i == count) kept[count++] = layer;
    return i;
}

CornuActivation cornu_activation_of(CornuLayer *layer)
{
    if (!layer || cornu__refused()) {
        cornu__layer_free_unowned(layer);
        return CORNU_DEFAULT_ACTIVATION;
    }
    if (layer->kind->call_many || layer->kind->call_masked || !cornu__keras_class(layer)->fields ||
        cornu_layer_outputs(layer) != 1) {
        cornu__fail_null(CORNU_ERR_ARGUMENT, "a layer of class %s cannot be an activation; "
                         "expected one with one input and one output", layer->kind->class_name);
        cornu_layer_free(layer);
        return CORNU_DEFAULT_ACTIVATION;
    }
    pthread_mutex_lock(&mutex);
    const int         at = keep(layer);
    const CornuLayer *found = at < 0 ? NULL : kept[at];
    pthread_mutex_unlock(&mutex);
    if (found != layer) cornu_layer_free(layer);
    if (found) return (CornuActivation)(CORNU_ACTIVATION_COUNT + 1 + at);
    cornu__fail_null(CORNU_ERR_MEMORY, "there are more than %d different layers as activations",
                     MOST);
    return CORNU_DEFAULT_ACTIVATION;
}

CornuLayer *cornu__activation_layer(CornuActivation activation)
{
    const int   at = (int)activation - CORNU_ACTIVATION_COUNT - 1;
    CornuLayer *layer = NULL;
    pthread_mutex_lock(&mutex);
    if (at >= 0 && at < count) layer = kept[at];
    pthread_mutex_unlock(&mutex);
    return layer;
}

/* Whether calls need the arguments of the layer and x alone. */
static bool is_plain(const CornuLayer *layer)
{
    return layer->kind->activates && !layer->activation;
}

CornuTensor *cornu__activation_layer_apply(const CornuLayer *layer, CornuTensor *x)
{
    if (!x) return NULL;
    if (!is_plain(layer))
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "the activation is a layer of class %s; "
                                "within a recurrence only ReLU, LeakyReLU, ELU, Softmax and "
                                "Activation are available. Call the layer after the recurrent one",
                                layer->kind->class_name);
    const CornuCall call = { .graph = cornu_tensor_graph(x) };
    return layer->kind->call((CornuLayer *)layer, &call, x);
}

CornuStatus cornu__resolve_activation(CornuLayer *layer, CornuActivation *activation)
{
    *activation = cornu__activation(*activation, CORNU_LINEAR);
    const CornuLayer *kept = cornu__activation_layer(*activation);
    if (!kept || is_plain(kept)) return CORNU_OK;
    CornuLayer *copy = cornu__layer_copy(kept);
    if (!copy || cornu__check_depth(cornu_layer_name(layer), copy)) {
        cornu__layer_free_unowned(copy);
        return cornu_error_status();
    }
    cornu__layer_add_inner(layer, copy, "");
    layer->activation = copy;
    return CORNU_OK;
}

CornuStatus cornu_layer_set_activation(CornuLayer *layer, CornuActivation activation)
{
    CORNU__NEED(layer);
    CORNU__TRY(cornu__check_activation(cornu_layer_name(layer), activation));
    const CornuField *field = cornu__keras_class(layer)->fields;
    while (field && field->name && strcmp(field->name, "activation")) field++;
    if (!field || !field->name || field->kind != CORNU_FIELD_ACTIVATION || layer->activation ||
        cornu__activation_layer(activation))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s (%s): its activation cannot be changed, "
                           "expected a layer with a named activation, and a named one",
                           cornu_layer_name(layer), layer->kind->class_name);
    *(CornuActivation *)((char *)layer + cornu__keras_class(layer)->config_offset +
                         field->offset) = activation;
    return CORNU_OK;
}
