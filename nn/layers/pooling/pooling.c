/* MaxPooling and AveragePooling of sequences, images and volumes. */
#include "pooling_internal.h"

/* One config for all: the first extents count, as many as there are axes. */
typedef struct {
    CornuLayer           base;
    CornuPooling3dConfig config;
} Pooling;

static CornuStatus build(CornuLayer *layer, CornuShape input)
{
    const CornuPooling3dConfig *config = &((Pooling *)layer)->config;
    const int                   axes = cornu__spatial_axes(layer->kind);
    CornuText                   a, b;
    CORNU__TRY(cornu__expect_spatial(input, axes));
    for (int i = 0; i < axes && config->padding == CORNU_VALID; i++)
        if (cornu__shorter(input.extent[i + 1], config->pool_size[i]))
            return cornu__fail(CORNU_ERR_SHAPE, "the input %s is smaller than the pool %s",
                               cornu_shape_print(&a, input),
                               cornu_shape_print(&b, cornu_shape_from(axes, config->pool_size)));
    return CORNU_OK;
}

static CornuTensor *pool(const CornuLayer *layer, CornuTensor *x, CornuPoolOp *op)
{
    const CornuPooling3dConfig *config = &((const Pooling *)layer)->config;
    CornuPool                   pool = { .axes = cornu__spatial_axes(layer->kind) };
    if (!x) return NULL;
    for (int i = 0; i < pool.axes; i++) {
        pool.size[i] = config->pool_size[i];
        pool.strides[i] = config->strides[i];
        cornu__padding(config->padding, cornu_tensor_shape(x).extent[i + 1], pool.size[i],
                       pool.strides[i], 1, &pool.low[i], &pool.high[i]);
    }
    return cornu__pool_axes(x, &pool, op);
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

/* ---- Classes ---- */

static CornuLayer *create(const CornuLayerClass *kind, const CornuPooling3dConfig *config,
                          const char *label, int64_t usual);

extern const CornuLayerClass cornu__max_pooling1d_class, cornu__max_pooling2d_class,
    cornu__max_pooling3d_class, cornu__average_pooling1d_class, cornu__average_pooling2d_class,
    cornu__average_pooling3d_class;

static CornuLayer *max_1d(const void *config)
{
    return create(&cornu__max_pooling1d_class, config, "max_pooling1d", 2);
}

static CornuLayer *max_2d(const void *config)
{
    return create(&cornu__max_pooling2d_class, config, "max_pooling2d", 2);
}

static CornuLayer *max_3d(const void *config)
{
    return create(&cornu__max_pooling3d_class, config, "max_pooling3d", 2);
}

static CornuLayer *average_1d(const void *config)
{
    return create(&cornu__average_pooling1d_class, config, "average_pooling1d", 0);
}

static CornuLayer *average_2d(const void *config)
{
    return create(&cornu__average_pooling2d_class, config, "average_pooling2d", 0);
}

static CornuLayer *average_3d(const void *config)
{
    return create(&cornu__average_pooling3d_class, config, "average_pooling3d", 0);
}

#define AT(name) offsetof(CornuPooling3dConfig, name)
#define FIELDS(EXTENTS)                                              \
    {                                                                \
        { "pool_size", EXTENTS, AT(pool_size) },                     \
        { "strides", EXTENTS, AT(strides) },                         \
        { "padding", CORNU_FIELD_PADDING, AT(padding) },             \
        { "data_format", CORNU_FIELD_DATA_FORMAT, AT(data_format) }, \
        { 0 },                                                       \
    }
static const CornuField fields_1d[] = FIELDS(CORNU_FIELD_SINGLE);
static const CornuField fields_2d[] = FIELDS(CORNU_FIELD_PAIR);
static const CornuField fields_3d[] = FIELDS(CORNU_FIELD_TRIPLE);
#undef FIELDS
#undef AT

#define COMMON .size = sizeof(Pooling), .build = build, .mask = cornu__no_mask

const CornuLayerClass cornu__max_pooling1d_class = {
    .class_name = "MaxPooling1D", .call = call_max, COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields_1d, Pooling, max_1d) },
};
const CornuLayerClass cornu__max_pooling2d_class = {
    .class_name = "MaxPooling2D", .call = call_max, COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields_2d, Pooling, max_2d) },
};
const CornuLayerClass cornu__max_pooling3d_class = {
    .class_name = "MaxPooling3D", .call = call_max, COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields_3d, Pooling, max_3d) },
};
const CornuLayerClass cornu__average_pooling1d_class = {
    .class_name = "AveragePooling1D", .call = call_average, COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields_1d, Pooling, average_1d) },
};
const CornuLayerClass cornu__average_pooling2d_class = {
    .class_name = "AveragePooling2D", .call = call_average, COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields_2d, Pooling, average_2d) },
};
const CornuLayerClass cornu__average_pooling3d_class = {
    .class_name = "AveragePooling3D", .call = call_average, COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields_3d, Pooling, average_3d) },
};

/* ---- Constructors ---- */

static CornuStatus resolve(const char *name, int axes, int64_t usual, CornuPooling3dConfig *to)
{
    bool strides_given = to->stride != 0;
    for (int i = 0; i < axes; i++) strides_given |= to->strides[i] != 0;
    to->name = to->dtype = NULL;
    CORNU__TRY(cornu__check_padding(name, to->padding));
    CORNU__TRY(cornu__extents(name, "pool_size", "pool", to->pool, to->pool_size, usual, axes,
                              to->pool_size));
    CORNU__TRY(cornu__extents(name, "strides", "stride", to->stride,
                              strides_given ? to->strides : to->pool_size, 0, axes, to->strides));
    to->pool = to->stride = 0;
    return CORNU_OK;
}

static CornuLayer *create(const CornuLayerClass *kind, const CornuPooling3dConfig *config,
                          const char *label, int64_t usual)
{
    CornuPooling3dConfig resolved = *config;
    const int            axes = cornu__spatial_axes(kind);
    if (resolve(config->name ? config->name : label, axes, usual, &resolved))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(kind, config->name, config->dtype);
    if (layer) ((Pooling *)layer)->config = resolved;
    return layer;
}

static CornuPooling3dConfig of_sequence(const CornuPooling1dConfig *c)
{
    return (CornuPooling3dConfig){ .pool_size = { c->pool_size }, .strides = { c->strides },
                                   .padding = c->padding, .data_format = c->data_format,
                                   .name = c->name, .dtype = c->dtype };
}

static CornuPooling3dConfig of_image(const CornuPooling2dConfig *c)
{
    return (CornuPooling3dConfig){ .pool = c->pool, .stride = c->stride, .padding = c->padding,
                                   .pool_size = { c->pool_size[0], c->pool_size[1] },
                                   .strides = { c->strides[0], c->strides[1] },
                                   .data_format = c->data_format, .name = c->name,
                                   .dtype = c->dtype };
}

CornuLayer *cornu_max_pooling1d_from(const CornuPooling1dConfig *config)
{
    const CornuPooling3dConfig common = of_sequence(config);
    return max_1d(&common);
}

CornuLayer *cornu_average_pooling1d_from(const CornuPooling1dConfig *config)
{
    const CornuPooling3dConfig common = of_sequence(config);
    return average_1d(&common);
}

CornuLayer *cornu_max_pooling2d_from(const CornuPooling2dConfig *config)
{
    const CornuPooling3dConfig common = of_image(config);
    return max_2d(&common);
}

CornuLayer *cornu_average_pooling2d_from(const CornuPooling2dConfig *config)
{
    const CornuPooling3dConfig common = of_image(config);
    return average_2d(&common);
}

CornuLayer *cornu_max_pooling3d_from(const CornuPooling3dConfig *config) { return max_3d(config); }
CornuLayer *cornu_average_pooling3d_from(const CornuPooling3dConfig *config)
{
    return average_3d(config);
}
