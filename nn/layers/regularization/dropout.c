#include "../layer_internal.h"

typedef struct {
    CornuLayer         base;
    CornuDropoutConfig config;
} Dropout;

static CornuTensor *call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const double rate = ((Dropout *)layer)->config.rate;
    if (!x || !call->training || rate == 0.0) return x;
    if (rate == 1.0) return cornu_op_constant_like(x, 0.0);
    return cornu_op_dropout(x, rate, call->seed, call->iteration, call->position,
                            layer->generator);
}

static CornuLayer *from(const void *config) { return cornu_dropout_from(config); }

static const CornuField fields[] = {
    { "rate", CORNU_FIELD_NUMBER, offsetof(CornuDropoutConfig, rate) },
    { 0 },
};

const CornuLayerClass cornu__dropout_class = {
    .class_name = "Dropout", .size = sizeof(Dropout), .call = call,
    .fields = fields, .config_size = sizeof(CornuDropoutConfig),
    .config_offset = offsetof(Dropout, config), .from = from,
};

CornuLayer *cornu_dropout_from(const CornuDropoutConfig *config)
{
    const double rate = cornu__number(config->rate, 0.0);
    if (!(rate >= 0.0 && rate <= 1.0))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .rate is %g, expected 0 to 1",
                                config->name ? config->name : "dropout", rate);
    CornuLayer *layer = cornu_layer_create(&cornu__dropout_class, config->name, config->dtype);
    if (layer) ((Dropout *)layer)->config.rate = rate;
    return layer;
}
