/* Operations as layers, and the table of operations.def. */
#include "operation_internal.h"

#include <string.h>

static CornuOperands operands_of(const CornuLayer *layer)
{
    const CornuOperation *self = (const CornuOperation *)layer;
    return (CornuOperands){ .layer = layer, .config = self->config, .args = self->args,
                            .kwargs = self->kwargs };
}

static const CornuOperationClass *class_of(const CornuLayer *layer)
{
    return (const CornuOperationClass *)layer->kind;
}

CornuStatus cornu__operation_build(CornuLayer *layer, const CornuShape *in, int in_count)
{
    CornuOperation     *self = (CornuOperation *)layer;
    const CornuOperands o = operands_of(layer);
    (void)in_count;
    self->count = class_of(layer)->count ? class_of(layer)->count(&o, in[0]) : 1;
    if (self->count >= 1 && self->count <= CORNU_MAX_LAYER_TENSORS) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "has %d results, expected 1 to %d", self->count,
                       CORNU_MAX_LAYER_TENSORS);
}

/* The result, unless the rule has left an argument unread that changes it. */
static CornuTensor *checked(const CornuOperands *o, CornuTensor *y)
{
    const CornuOperationClass *kind = class_of(o->layer);
    if (!y) return NULL;
    if (kind->count)   /* it reads arguments, too */
        kind->count(o, o->in_count ? cornu_tensor_shape(o->in[0]) : cornu_shape_from(0, NULL));
    return cornu__operation_check_asked(kind, o) ? cornu__null() : y;
}

CornuTensor *cornu__operation_call(CornuLayer *layer, const CornuCall *call,
                                   CornuTensor *const *in, int in_count, CornuTensor **out)
{
    const CornuOperationClass *kind = class_of(layer);
    CornuOperands o = operands_of(layer);
    uint64_t      asked = 0;
    o.asked = &asked;
    o.in_count = in_count;
    o.call = call;
    o.graph = call->graph;
    o.shapes_only = call->shapes_only;
    o.in = in;
    o.out = out;
    return checked(&o, kind->rule(&o));
}

/* As in Keras, results of operations have no masks. */
CornuTensor *cornu__operation_mask(CornuLayer *layer, const CornuCall *call,
                                   CornuTensor *const *in, int in_count,
                                   CornuTensor *const *masks, CornuTensor **out_masks)
{
    (void)layer, (void)call, (void)in, (void)in_count, (void)masks, (void)out_masks;
    return NULL;
}

int cornu__operation_outputs(const CornuLayer *layer)
{
    return ((const CornuOperation *)layer)->count;
}

void cornu__operation_free(CornuLayer *layer)
{
    CornuOperation *self = (CornuOperation *)layer;
    json_decref(self->config);
    json_decref(self->args);
    json_decref(self->kwargs);
}

const CornuOperationClass *cornu__operation_class(const char *module, const char *class_name)
{
    const size_t prefix = strlen(CORNU__OPERATIONS_MODULE);
    if (strncmp(module, CORNU__OPERATIONS_MODULE, prefix)) return NULL;
    for (const CornuOperationClass *row = cornu__operations; row->module; row++)
        if (!strcmp(row->kind.class_name, class_name) && !strcmp(row->module, module + prefix))
            return row;
    return NULL;
}

const CornuOperation *cornu__as_operation(const CornuLayer *layer)
{
    return layer->kind->call_many == cornu__operation_call ? (const CornuOperation *)layer : NULL;
}

CornuLayer *cornu__operation_create(const CornuOperationClass *kind, const char *name,
                                    json_t *config, json_t *args, json_t *kwargs)
{
    CornuLayer *layer = cornu_layer_create(&kind->kind, name, NULL);
    if (!layer) return NULL;
    CornuOperation *self = (CornuOperation *)layer;
    self->config = json_incref(config);
    self->args = json_incref(args);
    self->kwargs = json_incref(kwargs);
    self->count = 1;
    return layer;
}
