/* Layers as activations of other layers. An activation is a number: those after the named ones
 * stand for layers, each kept once, for as long as the program runs. */
#include "layer_internal.h"

#include <pthread.h>
#include <string.h>

enum { MOST = 4096 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static CornuLayer     *kept[MOST];
static int             count;

static const void *config_of(const CornuLayer *layer)
{
    return (const char *)layer + layer->kind->config_offset;
}

static size_t size_of(CornuFieldKind kind)
{
    switch (kind) {
    case CORNU_FIELD_ACTIVATION: return sizeof(CornuActivation);
    case CORNU_FIELD_ROW_AXES:   return CORNU_MAX_RANK * sizeof(int64_t);
    default:                     return sizeof(double);
    }
}

static bool same(const CornuLayer *a, const CornuLayer *b)
{
    bool equal = a->kind == b->kind && a->own_policy == b->own_policy;
    for (const CornuField *field = a->kind->fields; equal && field->name; field++)
        equal = !memcmp((const char *)config_of(a) + field->offset,
                        (const char *)config_of(b) + field->offset, size_of(field->kind));
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
    if (!layer->kind->activates) {
        cornu__fail_null(CORNU_ERR_UNSUPPORTED, "a layer of class %s is not available as an "
                         "activation in this version; expected ReLU, LeakyReLU, ELU, Softmax or "
                         "Activation. Call the layer after the one whose activation it is",
                         layer->kind->class_name);
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

CornuTensor *cornu__activation_layer_apply(const CornuLayer *layer, CornuTensor *x)
{
    if (!x) return NULL;
    const CornuCall call = { .graph = cornu_tensor_graph(x) };
    return layer->kind->call((CornuLayer *)layer, &call, x);
}
