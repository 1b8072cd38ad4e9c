/* ZeroPadding and Cropping: elements before and after each axis of volumes, {{front, back},
 * {top, bottom}, {left, right}}, of images, without the first, and of sequences, the first
 * alone. */
#include "../layer_internal.h"

/* Resolves the edges of so many axes from `around` or from themselves; by default all are `usual`.
 * Where all become 0, but `usual` is not, the first one stays CORNU_ZERO. */
static CornuStatus padding_cropping_resolve(const CornuLayer *layer, const char *argument,
                                            int64_t *around, int64_t usual, int64_t (*edges)[2])
{
    const char *name = cornu_layer_name(layer);
    const int   axes = cornu__spatial_axes(layer->kind);
    bool        given = false, any = false;
    for (int i = 0; i < 2 * axes; i++) given |= edges[i / 2][i % 2] != 0;
    if (*around && given)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: both .around and .%s are given, expected one",
                           name, argument);
    for (int i = 0; i < 2 * axes; i++) {
        int64_t *edge = &edges[i / 2][i % 2];
        *edge = given ? cornu__integer(*edge, 0) : cornu__integer(*around, usual);
        any |= *edge != 0;
        if (*edge < 0 || *edge > INT32_MAX)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %lld, expected 0 to %d", name,
                               given ? argument : "around", (long long)*edge, INT32_MAX);
    }
    *around = 0;
    if (usual && !any) edges[0][0] = CORNU_ZERO;
    return CORNU_OK;
}

/* ---- ZeroPadding ---- */

/* One config for all: the first edges count, as many as there are axes. */
typedef CORNU__LAYER(CornuZeroPadding3dConfig) ZeroPadding;

static CornuTensor *padding_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuZeroPadding3dConfig *config = &((ZeroPadding *)layer)->config;
    int64_t                         low[CORNU_MAX_RANK] = { 0 }, high[CORNU_MAX_RANK] = { 0 };
    (void)call;
    for (int i = 0; i < cornu__spatial_axes(layer->kind); i++) {
        low[i + 1] = cornu__integer(config->padding[i][0], 0);
        high[i + 1] = config->padding[i][1];
    }
    return cornu_op_pad(x, low, high, 0.0);
}

static CornuStatus padding_resolve(CornuLayer *layer)
{
    CornuZeroPadding3dConfig *config = &((ZeroPadding *)layer)->config;
    return padding_cropping_resolve(layer, "padding", &config->around, 1, config->padding);
}

#define FIELDS(word, Config, EDGES)                                                  \
    {                                                                                \
        { #word, EDGES, offsetof(Config, word) },                                    \
        { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(Config, data_format) },   \
        { 0 },                                                                       \
    }
static const CornuField padding1d_fields[] =
    FIELDS(padding, CornuZeroPadding3dConfig, CORNU_FIELD_PAIR_OR_NONE);
static const CornuField padding2d_fields[] =
    FIELDS(padding, CornuZeroPadding3dConfig, CORNU_FIELD_EDGES);
static const CornuField padding3d_fields[] =
    FIELDS(padding, CornuZeroPadding3dConfig, CORNU_FIELD_EDGES_3D);

#define PADDING_CLASS(label, name, fields)                                                       \
    const CornuLayerClass cornu__##label##_class = {                                             \
        .class_name = name, .keeps_integers = true, .size = sizeof(ZeroPadding),                 \
        .build = cornu__build_spatial, .call = padding_call, .mask = cornu__no_mask,             \
        .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, ZeroPadding, padding_resolve) }, \
    }
PADDING_CLASS(zero_padding1d, "ZeroPadding1D", padding1d_fields);
PADDING_CLASS(zero_padding2d, "ZeroPadding2D", padding2d_fields);
PADDING_CLASS(zero_padding3d, "ZeroPadding3D", padding3d_fields);

CornuLayer *cornu_zero_padding1d_from(const CornuZeroPadding1dConfig *c)
{
    return cornu__layer_from(&cornu__zero_padding1d_class, &(CornuZeroPadding3dConfig){
        .around = c->around, .padding = { { c->padding[0], c->padding[1] } },
        .data_format = c->data_format, .name = c->name, .dtype = c->dtype });
}

CornuLayer *cornu_zero_padding2d_from(const CornuZeroPadding2dConfig *c)
{
    return cornu__layer_from(&cornu__zero_padding2d_class, &(CornuZeroPadding3dConfig){
        .around = c->around, .padding = { { c->padding[0][0], c->padding[0][1] },
                                          { c->padding[1][0], c->padding[1][1] } },
        .data_format = c->data_format, .name = c->name, .dtype = c->dtype });
}

CORNU__CONSTRUCTOR(zero_padding3d, CornuZeroPadding3dConfig)

/* ---- Cropping ---- */

typedef CORNU__LAYER(CornuCropping3dConfig) Cropping;

static int64_t first(const CornuCropping3dConfig *config, int axis)
{
    return cornu__integer(config->cropping[axis][0], 0);
}

static CornuStatus cropping_build(CornuLayer *layer, CornuShape input)
{
    static const char *const    what[] = { "columns", "rows", "planes" };
    const CornuCropping3dConfig *config = &((Cropping *)layer)->config;
    const int                    axes = cornu__spatial_axes(layer->kind);
    CornuText                    text;
    CORNU__TRY(cornu__expect_spatial(input, axes));
    for (int i = 0; i < axes; i++)
        if (cornu__shorter(input.extent[i + 1], first(config, i) + config->cropping[i][1] + 1))
            return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected more than the %lld and "
                               "%lld %s to crop", cornu_shape_print(&text, input),
                               (long long)first(config, i), (long long)config->cropping[i][1],
                               axes == 1 ? "steps" : what[axes - 1 - i]);
    return CORNU_OK;
}

static CornuTensor *cropping_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuCropping3dConfig *config = &((Cropping *)layer)->config;
    int64_t                      starts[CORNU_MAX_RANK] = { 0 };
    (void)call;
    if (!x) return NULL;
    CornuShape part = cornu_tensor_shape(x);
    for (int i = 0; i < cornu__spatial_axes(layer->kind); i++) {
        starts[i + 1] = first(config, i);
        part.extent[i + 1] -= starts[i + 1] + config->cropping[i][1];
    }
    return cornu_op_slice(x, starts, part.extent);
}

/* By default images are not cropped, sequences and volumes by 1. */
static CornuStatus cropping_resolve(CornuLayer *layer)
{
    CornuCropping3dConfig *config = &((Cropping *)layer)->config;
    return padding_cropping_resolve(layer, "cropping", &config->around,
                                    cornu__spatial_axes(layer->kind) != 2, config->cropping);
}

static const CornuField cropping1d_fields[] = {   /* Keras' has no data_format */
    { "cropping", CORNU_FIELD_PAIR_OR_NONE, offsetof(CornuCropping3dConfig, cropping) },
    { 0 },
};
static const CornuField cropping2d_fields[] =
    FIELDS(cropping, CornuCropping3dConfig, CORNU_FIELD_EDGES);
static const CornuField cropping3d_fields[] =
    FIELDS(cropping, CornuCropping3dConfig, CORNU_FIELD_EDGES_3D);

#define CROPPING_CLASS(label, name, fields)                                                     \
    const CornuLayerClass cornu__##label##_class = {                                            \
        .class_name = name, .keeps_integers = true, .size = sizeof(Cropping),                   \
        .build = cropping_build, .call = cropping_call, .mask = cornu__no_mask,                 \
        .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, Cropping, cropping_resolve) }, \
    }
CROPPING_CLASS(cropping1d, "Cropping1D", cropping1d_fields);
CROPPING_CLASS(cropping2d, "Cropping2D", cropping2d_fields);
CROPPING_CLASS(cropping3d, "Cropping3D", cropping3d_fields);

CornuLayer *cornu_cropping1d_from(const CornuCropping1dConfig *c)
{
    return cornu__layer_from(&cornu__cropping1d_class, &(CornuCropping3dConfig){
        .around = c->around, .cropping = { { c->cropping[0], c->cropping[1] } }, .name = c->name,
        .dtype = c->dtype });
}

CornuLayer *cornu_cropping2d_from(const CornuCropping2dConfig *c)
{
    return cornu__layer_from(&cornu__cropping2d_class, &(CornuCropping3dConfig){
        .around = c->around, .cropping = { { c->cropping[0][0], c->cropping[0][1] },
                                           { c->cropping[1][0], c->cropping[1][1] } },
        .data_format = c->data_format, .name = c->name, .dtype = c->dtype });
}

CORNU__CONSTRUCTOR(cropping3d, CornuCropping3dConfig)
