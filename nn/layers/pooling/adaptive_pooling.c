/* AdaptiveAveragePooling and AdaptiveMaxPooling of sequences, images and volumes. */
#include "pooling_internal.h"

typedef struct {
    CornuLayer                  base;
    CornuAdaptivePoolingConfig config;   /* the first extents count, as many as there are axes */
} AdaptivePooling;

/* A pool, and a reduction to the same end, for windows that the pool does not have. */
typedef struct {
    CornuPoolOp *op;
    CornuTensor *(*reduce)(CornuTensor *x, int64_t axes, bool keep);
} Kind;

/* Elements start to end - 1 along an axis, reduced to one. */
static CornuTensor *pool_part(CornuTensor *x, int axis, int64_t start, int64_t end, Kind kind)
{
    int64_t    starts[CORNU_MAX_RANK] = { 0 };
    CornuShape part = cornu_tensor_shape(x);
    CornuPool  pool = { .axes = part.rank - 2, .size = { 1, 1, 1 }, .strides = { 1, 1, 1 } };
    starts[axis] = start;
    part.extent[axis] = pool.size[axis - 1] = end - start;
    x = cornu_op_slice(x, starts, part.extent);
    return end - start > CORNU_MOST_POSITIONS ? kind.reduce(x, INT64_C(1) << axis, true)
                                              : cornu__pool_axes(x, &pool, kind.op);
}

/* Pools one axis of x. Windows of equal extents at equal distances are a usual pool. */
static CornuTensor *pool_axis(CornuTensor *x, int axis, int64_t to, Kind kind)
{
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    const int64_t    from = shape.extent[axis];
    if (from == to) return x;
    if (from % to == 0 && from / to <= CORNU_MOST_POSITIONS) {
        CornuPool pool = { .axes = shape.rank - 2, .size = { 1, 1, 1 }, .strides = { 1, 1, 1 } };
        pool.size[axis - 1] = pool.strides[axis - 1] = from / to;
        return cornu__pool_axes(x, &pool, kind.op);
    }
    CornuTensor **parts = cornu__allocate((size_t)to, sizeof(CornuTensor *));
    if (!parts) return cornu__null();
    for (int64_t i = 0; i < to; i++)
        parts[i] = pool_part(x, axis, cornu__adaptive_start(i, from, to),
                             cornu__adaptive_end(i, from, to), kind);
    x = cornu_op_concat(parts, (int)to, axis);
    cornu__release(parts);
    return x;
}

/* From the last axis to the first, so that of equal maxima the first one gets the gradient. */
static CornuTensor *pool(const CornuLayer *layer, CornuTensor *x, Kind kind)
{
    const int64_t *size = ((const AdaptivePooling *)layer)->config.output_size;
    for (int axis = cornu__spatial_axes(layer->kind); axis >= 1; axis--)
        x = pool_axis(x, axis, size[axis - 1], kind);
    return x;
}

static CornuTensor *call_max(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return pool(layer, x, (Kind){ cornu_op_max_pool2d, cornu_op_reduce_max });
}

static CornuTensor *call_average(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return pool(layer, x, (Kind){ cornu_op_average_pool2d, cornu_op_reduce_mean });
}

/* ---- Classes ---- */

static CornuLayer *average1d_from(const void *config)
{
    return cornu_adaptive_average_pooling1d_from(config);
}

static CornuLayer *average2d_from(const void *config)
{
    return cornu_adaptive_average_pooling2d_from(config);
}

static CornuLayer *average3d_from(const void *config)
{
    return cornu_adaptive_average_pooling3d_from(config);
}

static CornuLayer *max1d_from(const void *config)
{
    return cornu_adaptive_max_pooling1d_from(config);
}

static CornuLayer *max2d_from(const void *config)
{
    return cornu_adaptive_max_pooling2d_from(config);
}

static CornuLayer *max3d_from(const void *config)
{
    return cornu_adaptive_max_pooling3d_from(config);
}

#define FIELDS(EXTENTS)                                                          \
    {                                                                            \
        { "output_size", EXTENTS, offsetof(CornuAdaptivePoolingConfig, output_size) }, \
        { "data_format", CORNU_FIELD_DATA_FORMAT,                                \
          offsetof(CornuAdaptivePoolingConfig, data_format) },                   \
        { 0 },                                                                   \
    }
static const CornuField fields1d[] = FIELDS(CORNU_FIELD_SINGLE);
static const CornuField fields2d[] = FIELDS(CORNU_FIELD_PAIR);
static const CornuField fields3d[] = FIELDS(CORNU_FIELD_TRIPLE);

#define COMMON \
    .size = sizeof(AdaptivePooling), .build = cornu__build_spatial, .mask = cornu__no_mask

const CornuLayerClass cornu__adaptive_average_pooling1d_class = {
    .class_name = "AdaptiveAveragePooling1D", .call = call_average, COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields1d, AdaptivePooling, average1d_from) },
};
const CornuLayerClass cornu__adaptive_average_pooling2d_class = {
    .class_name = "AdaptiveAveragePooling2D", .call = call_average, COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields2d, AdaptivePooling, average2d_from) },
};
const CornuLayerClass cornu__adaptive_average_pooling3d_class = {
    .class_name = "AdaptiveAveragePooling3D", .call = call_average, COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields3d, AdaptivePooling, average3d_from) },
};
const CornuLayerClass cornu__adaptive_max_pooling1d_class = {
    .class_name = "AdaptiveMaxPooling1D", .call = call_max, COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields1d, AdaptivePooling, max1d_from) },
};
const CornuLayerClass cornu__adaptive_max_pooling2d_class = {
    .class_name = "AdaptiveMaxPooling2D", .call = call_max, COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields2d, AdaptivePooling, max2d_from) },
};
const CornuLayerClass cornu__adaptive_max_pooling3d_class = {
    .class_name = "AdaptiveMaxPooling3D", .call = call_max, COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields3d, AdaptivePooling, max3d_from) },
};

static CornuLayer *create(const CornuLayerClass *kind, const char *label,
                          const CornuAdaptivePoolingConfig *config)
{
    CornuAdaptivePoolingConfig resolved = { .data_format = config->data_format };
    if (cornu__extents(config->name ? config->name : label, "output_size", "output",
                       config->output, config->output_size, 0, cornu__spatial_axes(kind),
                       resolved.output_size))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(kind, config->name, config->dtype);
    if (layer) ((AdaptivePooling *)layer)->config = resolved;
    return layer;
}

CornuLayer *cornu_adaptive_average_pooling1d_from(const CornuAdaptivePoolingConfig *config)
{
    return create(&cornu__adaptive_average_pooling1d_class, "adaptive_average_pooling1d", config);
}

CornuLayer *cornu_adaptive_average_pooling2d_from(const CornuAdaptivePoolingConfig *config)
{
    return create(&cornu__adaptive_average_pooling2d_class, "adaptive_average_pooling2d", config);
}

CornuLayer *cornu_adaptive_average_pooling3d_from(const CornuAdaptivePoolingConfig *config)
{
    return create(&cornu__adaptive_average_pooling3d_class, "adaptive_average_pooling3d", config);
}

CornuLayer *cornu_adaptive_max_pooling1d_from(const CornuAdaptivePoolingConfig *config)
{
    return create(&cornu__adaptive_max_pooling1d_class, "adaptive_max_pooling1d", config);
}

CornuLayer *cornu_adaptive_max_pooling2d_from(const CornuAdaptivePoolingConfig *config)
{
    return create(&cornu__adaptive_max_pooling2d_class, "adaptive_max_pooling2d", config);
}

CornuLayer *cornu_adaptive_max_pooling3d_from(const CornuAdaptivePoolingConfig *config)
{
    return create(&cornu__adaptive_max_pooling3d_class, "adaptive_max_pooling3d", config);
}
