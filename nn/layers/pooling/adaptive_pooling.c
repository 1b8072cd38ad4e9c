/* AdaptiveAveragePooling and AdaptiveMaxPooling of sequences, images and volumes. */
#include "pooling_internal.h"

/* The first extents count, as many as there are axes. */
typedef CORNU__LAYER(CornuAdaptivePoolingConfig) AdaptivePooling;

/* A pool, and a reduction to the same end: for windows that the pool does not have, and where the
 * layer is described, as formats have operators for it. */
typedef struct {
    CornuPoolFunction *pool;
    CornuTensor       *(*reduce)(CornuTensor *x, int64_t axes, bool keep);
    bool               described;
} Pooler;

static const Pooler maximum = { cornu__max_pool, cornu_op_reduce_max, false };
static const Pooler average = { cornu__average_pool, cornu_op_reduce_mean, false };

/* Elements start to end - 1 along an axis, reduced to one. */
static CornuTensor *pool_part(CornuTensor *x, int axis, int64_t start, int64_t end,
                              const Pooler *pooler)
{
    static const int64_t one[] = { 1, 1, 1 };
    int64_t    starts[CORNU_MAX_RANK] = { 0 }, size[] = { 1, 1, 1 };
    CornuShape part = cornu_tensor_shape(x);
    starts[axis] = start;
    part.extent[axis] = size[axis - 1] = end - start;
    x = cornu_op_slice(x, starts, part.extent);
    return end - start > CORNU_MOST_POSITIONS || pooler->described
               ? pooler->reduce(x, INT64_C(1) << axis, true)
               : pooler->pool(x, CORNU_VALID, size, one);
}

/* Pools one axis of x. Windows of equal extents at equal distances are a usual pool. */
static CornuTensor *pool_axis(CornuTensor *x, int axis, int64_t to, const Pooler *pooler)
{
    if (!x) return NULL;
    const int64_t from = cornu_tensor_shape(x).extent[axis];
    if (from == to) return x;
    if (from % to == 0 && from / to <= CORNU_MOST_POSITIONS && !(to == 1 && pooler->described)) {
        int64_t size[] = { 1, 1, 1 };
        size[axis - 1] = from / to;
        return pooler->pool(x, CORNU_VALID, size, size);
    }
    CornuTensor **parts = cornu__allocate((size_t)to, sizeof(CornuTensor *));
    if (!parts) return cornu__null();
    for (int64_t i = 0; i < to; i++)
        parts[i] = pool_part(x, axis, i * from / to, ((i + 1) * from + to - 1) / to, pooler);
    x = cornu_op_concat(parts, (int)to, axis);
    cornu__release(parts);
    return x;
}

/* From the last axis to the first, so that of equal maxima the first one gets the gradient. */
static CornuTensor *adaptive_pooling_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const int64_t *size = ((const AdaptivePooling *)layer)->config.output_size;
    Pooler         pooler = *(const Pooler *)layer->kind->family;
    pooler.described = call->description != NULL;
    for (int axis = cornu__spatial_axes(layer->kind); axis >= 1; axis--)
        x = pool_axis(x, axis, size[axis - 1], &pooler);
    return x;
}

static CornuStatus adaptive_pooling_resolve(CornuLayer *layer)
{
    CornuAdaptivePoolingConfig *config = &((AdaptivePooling *)layer)->config;
    CORNU__TRY(cornu__extents(cornu_layer_name(layer), "output_size", "output", config->output,
                              config->output_size, 0, cornu__spatial_axes(layer->kind),
                              config->output_size));
    config->output = 0;
    return CORNU_OK;
}

#define AT(name) offsetof(CornuAdaptivePoolingConfig, name)
#define FIELDS(EXTENTS)                                              \
    {                                                                \
        { "output_size", EXTENTS, AT(output_size) },                 \
        { "data_format", CORNU_FIELD_DATA_FORMAT, AT(data_format) }, \
        { 0 },                                                       \
    }
static const CornuField fields1d[] = FIELDS(CORNU_FIELD_SINGLE);
static const CornuField fields2d[] = FIELDS(CORNU_FIELD_PAIR);
static const CornuField fields3d[] = FIELDS(CORNU_FIELD_TRIPLE);

#define CLASS(label, name, fields, pooler)                                                   \
    const CornuLayerClass cornu__adaptive_##label##_class = {                                \
        .class_name = name, .size = sizeof(AdaptivePooling), .build = cornu__build_spatial,  \
        .call = adaptive_pooling_call, .mask = cornu__no_mask, .family = &pooler,            \
        .keras = &(const CornuKerasClass){                                                   \
            CORNU__CONFIG(fields, AdaptivePooling, adaptive_pooling_resolve) },              \
    }
CLASS(average_pooling1d, "AdaptiveAveragePooling1D", fields1d, average);
CLASS(average_pooling2d, "AdaptiveAveragePooling2D", fields2d, average);
CLASS(average_pooling3d, "AdaptiveAveragePooling3D", fields3d, average);
CLASS(max_pooling1d, "AdaptiveMaxPooling1D", fields1d, maximum);
CLASS(max_pooling2d, "AdaptiveMaxPooling2D", fields2d, maximum);
CLASS(max_pooling3d, "AdaptiveMaxPooling3D", fields3d, maximum);

CORNU__CONSTRUCTOR(adaptive_average_pooling1d, CornuAdaptivePoolingConfig)
CORNU__CONSTRUCTOR(adaptive_average_pooling2d, CornuAdaptivePoolingConfig)
CORNU__CONSTRUCTOR(adaptive_average_pooling3d, CornuAdaptivePoolingConfig)
CORNU__CONSTRUCTOR(adaptive_max_pooling1d, CornuAdaptivePoolingConfig)
CORNU__CONSTRUCTOR(adaptive_max_pooling2d, CornuAdaptivePoolingConfig)
CORNU__CONSTRUCTOR(adaptive_max_pooling3d, CornuAdaptivePoolingConfig)
