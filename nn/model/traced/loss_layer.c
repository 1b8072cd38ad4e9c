/* A loss as a layer. */
#include "loss_layer_internal.h"

#include "../../layers/layer_internal.h"
#include "../../losses/loss_internal.h"

static CornuStatus build_many(CornuLayer *layer, const CornuShape *in, int in_count)
{
    (void)layer, (void)in;
    if (in_count == 2 || in_count == 3) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "called on %d tensors, expected y_true, y_pred and "
                       "perhaps sample weights", in_count);
}

static CornuTensor *call_many(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                              int in_count, CornuTensor **out)
{
    const CornuLossLayer *self = cornu__as_loss_layer(layer);
    CornuTensor          *mask = call->masks ? call->masks[1] : NULL;
    (void)out;
    return cornu__loss_record_masked(self->loss, in[0], in[1], in_count > 2 ? in[2] : NULL, mask,
                                     self->values);
}

static CornuTensor *no_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                            int in_count, CornuTensor *const *masks, CornuTensor **out_masks)
{
    (void)layer, (void)call, (void)in, (void)in_count, (void)masks, (void)out_masks;
    return NULL;
}

static void free_loss(CornuLayer *layer)
{
    CornuLossLayer *self = (CornuLossLayer *)layer;
    if (self->loss && self->loss->free) self->loss->free(self->loss);
}

static const char *shown(const CornuLayer *layer)
{
    return cornu__as_loss_layer(layer)->loss->name;
}

static const CornuKerasClass keras = { .shown = shown, .label = "Loss" };

const CornuLayerClass cornu__loss_layer_class = {
    .class_name = "LossLayer", .size = sizeof(CornuLossLayer), .keras = &keras,
    .build_many = build_many, .call_many = call_many, .mask_many = no_mask, .free = free_loss,
    .keeps_dtypes = true, .any_axis = true,
};

CornuLayer *cornu_loss_layer(CornuLoss *loss, bool values, const char *name)
{
    CORNU__NEED_TO_MAKE(loss);
    CornuLayer *layer = !cornu__refused()
                            ? cornu_layer_create(&cornu__loss_layer_class, name, NULL) : NULL;
    if (!layer || loss->taken) {
        if (layer) cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: the loss is a model's already",
                                    loss->name);
        else if (!loss->taken && loss->free) loss->free(loss);
        cornu_layer_free(layer);
        return NULL;
    }
    CornuLossLayer *self = (CornuLossLayer *)layer;
    self->loss = loss;
    self->values = values;
    loss->taken = true;
    return layer;
}
