/* Layers that return their input: Identity and ActivityRegularization. */
#include "../layer_internal.h"

#include <math.h>

static CornuTensor *same(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)layer, (void)call;
    return x;
}

/* ---- Identity ---- */

typedef CORNU__LAYER(CornuIdentityLayerConfig) Identity;

static const CornuField identity_fields[] = { { 0 } };

const CornuLayerClass cornu__identity_class = {
    .class_name = "Identity", .size = sizeof(Identity), .call = same,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(identity_fields, Identity, NULL) },
};

CornuLayer *cornu_identity_layer_from(const CornuIdentityLayerConfig *config)
{
    return cornu__layer_from(&cornu__identity_class, config);
}

/* ---- ActivityRegularization ---- */

typedef CORNU__LAYER(CornuActivityRegularizationConfig) ActivityRegularization;

static CornuStatus activity_resolve(CornuLayer *layer)
{
    CornuActivityRegularizationConfig *config = &((ActivityRegularization *)layer)->config;
    const double l1 = cornu__number(config->l1, 0.0), l2 = cornu__number(config->l2, 0.0);
    if (!(l1 >= 0.0 && l2 >= 0.0 && isfinite(l1) && isfinite(l2)))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .l1 is %g and .l2 %g, expected 0 or more",
                           cornu_layer_name(layer), l1, l2);
    config->l1 = l1;
    config->l2 = l2;
    if (l1 != 0.0 || l2 != 0.0)
        layer->activity_regularizer = cornu_l1_l2(.l1 = l1, .l2 = l2);
    return CORNU_OK;
}

static const CornuField activity_fields[] = {
    { "l1", CORNU_FIELD_NUMBER, offsetof(CornuActivityRegularizationConfig, l1) },
    { "l2", CORNU_FIELD_NUMBER, offsetof(CornuActivityRegularizationConfig, l2) },
    { 0 },
};

const CornuLayerClass cornu__activity_regularization_class = {
    .class_name = "ActivityRegularization", .size = sizeof(ActivityRegularization), .call = same,
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(activity_fields, ActivityRegularization, activity_resolve),
    },
};

CORNU__CONSTRUCTOR(activity_regularization, CornuActivityRegularizationConfig)
