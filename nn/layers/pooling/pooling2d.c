#include "../layer_internal.h"

typedef struct {
    CornuLayer           base;
    CornuPooling2dConfig config;   /* sizes resolved into the pairs */
} Pooling2d;

static CornuStatus build(CornuLayer *layer, CornuShape input)
{
    const CornuPooling2dConfig *config = &((Pooling2d *)layer)->config;
    CORNU__TRY(cornu__expect_input(input, 4, "(B, H, W, C)"));
    CornuText text;
    for (int i = 0; i < 2 && config->padding == CORNU_VALID; i++)
        if (cornu__shorter(input.extent[i + 1], config->pool_size[i]))
            return cornu__fail(CORNU_ERR_SHAPE,
                               "the input %s is smaller than the pool (%lld, %lld)",
                               cornu_shape_print(&text, input), (long long)config->pool_size[0],
                               (long long)config->pool_size[1]);
    return CORNU_OK;
}

static CornuWindow window(const CornuLayer *layer, CornuShape input)
{
    const CornuPooling2dConfig *config = &((const Pooling2d *)layer)->config;
    CornuWindow w = { 0 };
    for (int i = 0; i < 2; i++) {
        w.size[i] = config->pool_size[i];
        w.strides[i] = config->strides[i];
        cornu__padding(config->padding, input.extent[i + 1], w.size[i], w.strides[i], 1,
                       &w.low[i], &w.high[i]);
    }
    return w;
}

static CornuTensor *call_max(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    if (!x) return NULL;
    const CornuWindow w = window(layer, cornu_tensor_shape(x));
    return cornu_op_max_pool2d(x, &w);
}

static CornuTensor *call_average(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    if (!x) return NULL;
    const CornuWindow w = window(layer, cornu_tensor_shape(x));
    return cornu_op_average_pool2d(x, &w);
}

static CornuLayer *max_from(const void *config) { return cornu_max_pooling2d_from(config); }
static CornuLayer *average_from(const void *config)
{
    return cornu_average_pooling2d_from(config);
}

static const CornuField fields[] = {
    { "pool_size", CORNU_FIELD_PAIR, offsetof(CornuPooling2dConfig, pool_size) },
    { "strides", CORNU_FIELD_PAIR, offsetof(CornuPooling2dConfig, strides) },
    { "padding", CORNU_FIELD_PADDING, offsetof(CornuPooling2dConfig, padding) },
    { 0 },
};

const CornuLayerClass cornu__max_pooling2d_class = {
    .class_name = "MaxPooling2D", .size = sizeof(Pooling2d), .build = build, .call = call_max,
    .mask = cornu__no_mask,
    .fields = fields, .config_size = sizeof(CornuPooling2dConfig),
    .config_offset = offsetof(Pooling2d, config), .from = max_from,
};

const CornuLayerClass cornu__average_pooling2d_class = {
    .class_name = "AveragePooling2D", .size = sizeof(Pooling2d), .build = build,
    .call = call_average, .mask = cornu__no_mask,
    .fields = fields, .config_size = sizeof(CornuPooling2dConfig),
    .config_offset = offsetof(Pooling2d, config), .from = average_from,
};

static CornuStatus resolve(const CornuPooling2dConfig *config, const char *name, int64_t usual,
                           CornuPooling2dConfig *to)
{
    *to = *config;
    to->name = to->dtype = NULL;
    CORNU__TRY(cornu__check_padding(name, config->padding));
    CORNU__TRY(cornu__pair(name, "pool_size", "pool", config->pool, config->pool_size, usual,
                           to->pool_size));
    const bool stride_given = config->stride || config->strides[0] || config->strides[1];
    CORNU__TRY(cornu__pair(name, "strides", "stride", config->stride,
                           stride_given ? config->strides : to->pool_size, 0, to->strides));
    to->pool = to->stride = 0;
    return CORNU_OK;
}

static CornuLayer *create(const CornuLayerClass *kind, const CornuPooling2dConfig *config,
                          const char *label, int64_t usual)
{
    CornuPooling2dConfig resolved;
    if (resolve(config, config->name ? config->name : label, usual, &resolved))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(kind, config->name, config->dtype);
    if (layer) ((Pooling2d *)layer)->config = resolved;
    return layer;
}

CornuLayer *cornu_max_pooling2d_from(const CornuPooling2dConfig *config)
{
    return create(&cornu__max_pooling2d_class, config, "max_pooling2d", 2);
}

CornuLayer *cornu_average_pooling2d_from(const CornuPooling2dConfig *config)
{
    return create(&cornu__average_pooling2d_class, config, "average_pooling2d", 0);
}
