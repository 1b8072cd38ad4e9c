/* Layers that return their input: Identity and ActivityRegularization. */
#include "../layer_internal.h"

#include <math.h>

static CornuTensor *same(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)layer, (void)call;
    return x;
}

/* ---- Identity ---- */

typedef struct {
    CornuLayer               base;
    CornuIdentityLayerConfig config;
} Identity;

static CornuLayer *identity_from(const void *config) { return cornu_identity_layer_from(config); }

static const CornuField identity_fields[] = { { 0 } };

const CornuLayerClass cornu__identity_class = {
    .class_name = "Identity", .size = sizeof(Identity), .call = same,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(identity_fields, Identity, identity_from) },
};

CornuLayer *cornu_identity_layer_from(const CornuIdentityLayerConfig *config)
{
    return cornu_layer_create(&cornu__identity_class, config->name, config->dtype);
}

/* ---- ActivityRegularization ---- */

typedef struct {
    CornuLayer                        base;
    CornuActivityRegularizationConfig config;
} ActivityRegularization;

static CornuLayer *activity_from(const void *config)
{
    return cornu_activity_regularization_from(config);
}

static const CornuField activity_fields[] = {
    { "l1", CORNU_FIELD_NUMBER, offsetof(CornuActivityRegularizationConfig, l1) },
    { "l2", CORNU_FIELD_NUMBER, offsetof(CornuActivityRegularizationConfig, l2) },
    { 0 },
};

const CornuLayerClass cornu__activity_regularization_class = {
    .class_name = "ActivityRegularization", .size = sizeof(ActivityRegularization), .call = same,
    .keras = &(const CornuKerasClass){
        CORNU__SAVED(activity_fields, ActivityRegularization, activity_from),
    },
};

CornuLayer *cornu_activity_regularization_from(const CornuActivityRegularizationConfig *config)
{
    const double l1 = cornu__number(config->l1, 0.0), l2 = cornu__number(config->l2, 0.0);
    if (!(l1 >= 0.0 && l2 >= 0.0 && isfinite(l1) && isfinite(l2)))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .l1 is %g and .l2 %g, expected 0 or more",
                                config->name ? config->name : "activity_regularization", l1, l2);
    CornuLayer *layer = cornu_layer_create(&cornu__activity_regularization_class, config->name,
                                           config->dtype);
    if (!layer) return NULL;
    CornuActivityRegularizationConfig *to = &((ActivityRegularization *)layer)->config;
    to->l1 = l1;
    to->l2 = l2;
    if (l1 != 0.0 || l2 != 0.0)
        layer->activity_regularizer = cornu_l1_l2(.l1 = l1, .l2 = l2);
    return layer;
}
