/* MaxPooling1D and AveragePooling1D, as pooling of images of one row. */
#include "../convolutional/convolution_internal.h"

typedef struct {
    CornuLayer           base;
    CornuPooling1dConfig config;
} Pooling1d;

static CornuStatus build(CornuLayer *layer, CornuShape input)
{
    const CornuPooling1dConfig *config = &((Pooling1d *)layer)->config;
    CornuText                   text;
    CORNU__TRY(cornu__expect_input(input, 3, "(B, T, C)"));
    if (config->padding == CORNU_VALID && cornu__shorter(input.extent[1], config->pool_size))
        return cornu__fail(CORNU_ERR_SHAPE, "the input %s is shorter than the pool of %lld steps",
                           cornu_shape_print(&text, input), (long long)config->pool_size);
    return CORNU_OK;
}

static CornuTensor *pool(CornuLayer *layer, CornuTensor *x,
                         CornuTensor *(*op)(CornuTensor *x, const CornuWindow *window))
{
    const CornuPooling1dConfig *config = &((Pooling1d *)layer)->config;
    CornuWindow w = { .size = { 1, config->pool_size }, .strides = { 1, config->strides } };
    if (!x) return NULL;
    cornu__padding(config->padding, cornu_tensor_shape(x).extent[1], config->pool_size,
                   config->strides, 1, &w.low[1], &w.high[1]);
    return cornu__as_sequence(op(cornu__as_image(x), &w));
}

static CornuTensor *call_max(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return pool(layer, x, cornu_op_max_pool2d);
}

static CornuTensor *call_average(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return pool(layer, x, cornu_op_average_pool2d);
}

static CornuLayer *max_from(const void *config) { return cornu_max_pooling1d_from(config); }
static CornuLayer *average_from(const void *config)
{
    return cornu_average_pooling1d_from(config);
}

static const CornuField fields[] = {
    { "pool_size", CORNU_FIELD_SINGLE, offsetof(CornuPooling1dConfig, pool_size) },
    { "strides", CORNU_FIELD_SINGLE, offsetof(CornuPooling1dConfig, strides) },
    { "padding", CORNU_FIELD_PADDING, offsetof(CornuPooling1dConfig, padding) },
    { 0 },
};

const CornuLayerClass cornu__max_pooling1d_class = {
    .class_name = "MaxPooling1D", .size = sizeof(Pooling1d), .build = build, .call = call_max,
    .mask = cornu__no_mask,
    .fields = fields, .config_size = sizeof(CornuPooling1dConfig),
    .config_offset = offsetof(Pooling1d, config), .from = max_from,
};

const CornuLayerClass cornu__average_pooling1d_class = {
    .class_name = "AveragePooling1D", .size = sizeof(Pooling1d), .build = build,
    .call = call_average, .mask = cornu__no_mask,
    .fields = fields, .config_size = sizeof(CornuPooling1dConfig),
    .config_offset = offsetof(Pooling1d, config), .from = average_from,
};

static CornuLayer *create(const CornuLayerClass *kind, const CornuPooling1dConfig *config,
                          const char *label, int64_t usual)
{
    const char          *name = config->name ? config->name : label;
    CornuPooling1dConfig resolved = { .padding = config->padding };
    resolved.pool_size = config->pool_size ? config->pool_size : usual;
    resolved.strides = config->strides ? config->strides : resolved.pool_size;
    if (cornu__check_padding(name, config->padding) ||
        cornu__positive(name, "pool_size", resolved.pool_size) ||
        cornu__positive(name, "strides", resolved.strides))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(kind, config->name, config->dtype);
    if (layer) ((Pooling1d *)layer)->config = resolved;
    return layer;
}

CornuLayer *cornu_max_pooling1d_from(const CornuPooling1dConfig *config)
{
    return create(&cornu__max_pooling1d_class, config, "max_pooling1d", 2);
}

CornuLayer *cornu_average_pooling1d_from(const CornuPooling1dConfig *config)
{
    return create(&cornu__average_pooling1d_class, config, "average_pooling1d", 0);
}
