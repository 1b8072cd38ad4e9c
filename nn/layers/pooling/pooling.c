/* MaxPooling and AveragePooling of sequences, images and volumes. */
#include "pooling_internal.h"

/* One config for all: the first extents count, as many as there are axes. */
typedef CORNU__LAYER(CornuPooling3dConfig) Pooling;

static CornuStatus pooling_build(CornuLayer *layer, CornuShape input)
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

/* A function, and the size where none is given; 0: it is required. */
typedef struct {
    CornuPoolFunction *pool;
    int64_t            usual;
} Pooler;

static const Pooler maximum = { cornu__max_pool, 2 }, average = { cornu__average_pool, 0 };

static CornuTensor *pooling_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuPooling3dConfig *config = &((const Pooling *)layer)->config;
    const Pooler               *pooler = layer->kind->family;
    (void)call;
    return pooler->pool(x, config->padding, config->pool_size, config->strides);
}

static CornuStatus pooling_resolve(CornuLayer *layer)
{
    CornuPooling3dConfig *config = &((Pooling *)layer)->config;
    const char           *name = cornu_layer_name(layer);
    const Pooler         *pooler = layer->kind->family;
    const int             axes = cornu__spatial_axes(layer->kind);
    bool                  strides_given = config->stride != 0;
    for (int i = 0; i < axes; i++) strides_given |= config->strides[i] != 0;
    CORNU__TRY(cornu__check_padding(name, config->padding));
    CORNU__TRY(cornu__extents(name, "pool_size", "pool", config->pool, config->pool_size,
                              pooler->usual, axes, config->pool_size));
    CORNU__TRY(cornu__extents(name, "strides", "stride", config->stride,
                              strides_given ? config->strides : config->pool_size, 0, axes,
                              config->strides));
    config->pool = config->stride = 0;
    return CORNU_OK;
}

/* ---- Classes ---- */

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

#define CLASS(label, name, fields, pooler)                                           \
    const CornuLayerClass cornu__##label##_class = {                                 \
        .class_name = name, .size = sizeof(Pooling), .build = pooling_build, .call = pooling_call, \
        .mask = cornu__no_mask, .family = &pooler,                                   \
        .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, Pooling, pooling_resolve) }, \
    }
CLASS(max_pooling1d, "MaxPooling1D", fields_1d, maximum);
CLASS(max_pooling2d, "MaxPooling2D", fields_2d, maximum);
CLASS(max_pooling3d, "MaxPooling3D", fields_3d, maximum);
CLASS(average_pooling1d, "AveragePooling1D", fields_1d, average);
CLASS(average_pooling2d, "AveragePooling2D", fields_2d, average);
CLASS(average_pooling3d, "AveragePooling3D", fields_3d, average);

/* ---- Constructors ---- */

static CornuLayer *from_sequence(const CornuLayerClass *kind, const CornuPooling1dConfig *c)
{
    return cornu__layer_from(kind, &(CornuPooling3dConfig){
        .pool_size = { c->pool_size }, .strides = { c->strides }, .padding = c->padding,
        .data_format = c->data_format, .name = c->name, .dtype = c->dtype });
}

static CornuLayer *from_image(const CornuLayerClass *kind, const CornuPooling2dConfig *c)
{
    return cornu__layer_from(kind, &(CornuPooling3dConfig){
        .pool = c->pool, .stride = c->stride, .padding = c->padding,
        .pool_size = { c->pool_size[0], c->pool_size[1] },
        .strides = { c->strides[0], c->strides[1] }, .data_format = c->data_format,
        .name = c->name, .dtype = c->dtype });
}

CornuLayer *cornu_max_pooling1d_from(const CornuPooling1dConfig *config)
{
    return from_sequence(&cornu__max_pooling1d_class, config);
}

CornuLayer *cornu_average_pooling1d_from(const CornuPooling1dConfig *config)
{
    return from_sequence(&cornu__average_pooling1d_class, config);
}

CornuLayer *cornu_max_pooling2d_from(const CornuPooling2dConfig *config)
{
    return from_image(&cornu__max_pooling2d_class, config);
}

CornuLayer *cornu_average_pooling2d_from(const CornuPooling2dConfig *config)
{
    return from_image(&cornu__average_pooling2d_class, config);
}

CORNU__CONSTRUCTOR(max_pooling3d, CornuPooling3dConfig)
CORNU__CONSTRUCTOR(average_pooling3d, CornuPooling3dConfig)
