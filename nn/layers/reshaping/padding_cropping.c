/* ZeroPadding2D and Cropping2D: rows and columns around images, {{top, bottom}, {left, right}};
 * ZeroPadding1D and Cropping1D: steps before and after sequences. */
#include "../layer_internal.h"

/* Resolves the `count` edges from `around` or from themselves; by default all are `usual`. Where
 * all become 0, but `usual` is not, the first one stays CORNU_ZERO. */
static CornuStatus resolve(const char *name, const char *argument, int64_t *around, int64_t usual,
                           int64_t *edges, int count)
{
    bool given = false, any = false;
    for (int i = 0; i < count; i++) given |= edges[i] != 0;
    if (*around && given)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: both .around and .%s are given, expected one",
                           name, argument);
    for (int i = 0; i < count; i++) {
        int64_t *edge = &edges[i];
        *edge = given ? cornu__integer(*edge, 0) : cornu__integer(*around, usual);
        any |= *edge != 0;
        if (*edge < 0 || *edge > INT32_MAX)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %lld, expected 0 to %d", name,
                               given ? argument : "around", (long long)*edge, INT32_MAX);
    }
    *around = 0;
    if (usual && !any) edges[0] = CORNU_ZERO;
    return CORNU_OK;
}

/* ---- ZeroPadding2D ---- */

typedef struct {
    CornuLayer               base;
    CornuZeroPadding2dConfig config;
} ZeroPadding;

static CornuTensor *padding_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuZeroPadding2dConfig *c = &((ZeroPadding *)layer)->config;
    const int64_t low[4] = { 0, cornu__integer(c->padding[0][0], 0), c->padding[1][0], 0 };
    const int64_t high[4] = { 0, c->padding[0][1], c->padding[1][1], 0 };
    (void)call;
    return cornu_op_pad(x, low, high, 0.0);
}

static CornuLayer *padding_from(const void *config) { return cornu_zero_padding2d_from(config); }

static const CornuField padding_fields[] = {
    { "padding", CORNU_FIELD_EDGES, offsetof(CornuZeroPadding2dConfig, padding) },
    { 0 },
};

const CornuLayerClass cornu__zero_padding2d_class = {
    .class_name = "ZeroPadding2D", .size = sizeof(ZeroPadding),
    .build = cornu__build_image, .call = padding_call, .mask = cornu__no_mask,
    .fields = padding_fields, .config_size = sizeof(CornuZeroPadding2dConfig),
    .config_offset = offsetof(ZeroPadding, config), .from = padding_from,
};

CornuLayer *cornu_zero_padding2d_from(const CornuZeroPadding2dConfig *config)
{
    CornuZeroPadding2dConfig resolved = *config;
    if (resolve(config->name ? config->name : "zero_padding2d", "padding", &resolved.around, 1,
                resolved.padding[0], 4))
        return cornu__null();
    resolved.name = resolved.dtype = NULL;
    CornuLayer *layer = cornu_layer_create(&cornu__zero_padding2d_class, config->name,
                                           config->dtype);
    if (layer) ((ZeroPadding *)layer)->config = resolved;
    return layer;
}

/* ---- Cropping2D ---- */

typedef struct {
    CornuLayer            base;
    CornuCropping2dConfig config;
} Cropping;

static CornuStatus cropping_build(CornuLayer *layer, CornuShape input)
{
    const CornuCropping2dConfig *config = &((Cropping *)layer)->config;
    CornuText                    text;
    CORNU__TRY(cornu__expect_input(input, 4, "(B, H, W, C)"));
    for (int i = 0; i < 2; i++) {
        const int64_t *cropping = config->cropping[i];
        if (cornu__shorter(input.extent[i + 1], cropping[0] + cropping[1] + 1))
            return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected more than the %lld and "
                               "%lld %s to crop", cornu_shape_print(&text, input),
                               (long long)cropping[0], (long long)cropping[1],
                               i ? "columns" : "rows");
    }
    return CORNU_OK;
}

static CornuTensor *cropping_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuCropping2dConfig *config = &((Cropping *)layer)->config;
    (void)call;
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    int64_t          starts[4] = { 0 }, sizes[4] = { shape.extent[0], 0, 0, shape.extent[3] };
    for (int i = 0; i < 2; i++) {
        const int64_t *cropping = config->cropping[i];
        starts[i + 1] = cropping[0];
        sizes[i + 1] = shape.extent[i + 1] - cropping[0] - cropping[1];
    }
    return cornu_op_slice(x, starts, sizes);
}

static CornuLayer *cropping_from(const void *config) { return cornu_cropping2d_from(config); }

static const CornuField cropping_fields[] = {
    { "cropping", CORNU_FIELD_EDGES, offsetof(CornuCropping2dConfig, cropping) },
    { 0 },
};

const CornuLayerClass cornu__cropping2d_class = {
    .class_name = "Cropping2D", .size = sizeof(Cropping), .build = cropping_build,
    .call = cropping_call, .mask = cornu__no_mask,
    .fields = cropping_fields, .config_size = sizeof(CornuCropping2dConfig),
    .config_offset = offsetof(Cropping, config), .from = cropping_from,
};

CornuLayer *cornu_cropping2d_from(const CornuCropping2dConfig *config)
{
    CornuCropping2dConfig resolved = *config;
    if (resolve(config->name ? config->name : "cropping2d", "cropping", &resolved.around, 0,
                resolved.cropping[0], 4))
        return cornu__null();
    resolved.name = resolved.dtype = NULL;
    CornuLayer *layer = cornu_layer_create(&cornu__cropping2d_class, config->name, config->dtype);
    if (layer) ((Cropping *)layer)->config = resolved;
    return layer;
}

/* ---- ZeroPadding1D ---- */

typedef struct {
    CornuLayer               base;
    CornuZeroPadding1dConfig config;
} SequencePadding;

static CornuTensor *sequence_padding_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const int64_t *padding = ((SequencePadding *)layer)->config.padding;
    (void)call;
    return cornu_op_pad(x, (const int64_t[]){ 0, cornu__integer(padding[0], 0), 0 },
                        (const int64_t[]){ 0, padding[1], 0 }, 0.0);
}

static CornuLayer *sequence_padding_from(const void *config)
{
    return cornu_zero_padding1d_from(config);
}

static const CornuField sequence_padding_fields[] = {
    { "padding", CORNU_FIELD_PAIR_OR_NONE, offsetof(CornuZeroPadding1dConfig, padding) },
    { 0 },
};

const CornuLayerClass cornu__zero_padding1d_class = {
    .class_name = "ZeroPadding1D", .size = sizeof(SequencePadding),
    .build = cornu__build_sequence, .call = sequence_padding_call, .mask = cornu__no_mask,
    .fields = sequence_padding_fields, .config_size = sizeof(CornuZeroPadding1dConfig),
    .config_offset = offsetof(SequencePadding, config), .from = sequence_padding_from,
};

CornuLayer *cornu_zero_padding1d_from(const CornuZeroPadding1dConfig *config)
{
    CornuZeroPadding1dConfig resolved = *config;
    if (resolve(config->name ? config->name : "zero_padding1d", "padding", &resolved.around, 1,
                resolved.padding, 2))
        return cornu__null();
    resolved.name = resolved.dtype = NULL;
    CornuLayer *layer = cornu_layer_create(&cornu__zero_padding1d_class, config->name,
                                           config->dtype);
    if (layer) ((SequencePadding *)layer)->config = resolved;
    return layer;
}

/* ---- Cropping1D ---- */

typedef struct {
    CornuLayer            base;
    CornuCropping1dConfig config;
} SequenceCropping;

static CornuStatus sequence_cropping_build(CornuLayer *layer, CornuShape input)
{
    const int64_t *cropping = ((SequenceCropping *)layer)->config.cropping;
    const int64_t  first = cornu__integer(cropping[0], 0);
    CornuText      text;
    CORNU__TRY(cornu__expect_input(input, 3, "(B, T, C)"));
    if (!cornu__shorter(input.extent[1], first + cropping[1] + 1)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected more than the %lld and %lld "
                       "steps to crop", cornu_shape_print(&text, input), (long long)first,
                       (long long)cropping[1]);
}

static CornuTensor *sequence_cropping_call(CornuLayer *layer, const CornuCall *call,
                                           CornuTensor *x)
{
    const int64_t *cropping = ((SequenceCropping *)layer)->config.cropping;
    const int64_t  first = cornu__integer(cropping[0], 0);
    (void)call;
    if (!x) return NULL;
    const CornuShape s = cornu_tensor_shape(x);
    return cornu_op_slice(x, (const int64_t[]){ 0, first, 0 },
                          (const int64_t[]){ s.extent[0], s.extent[1] - first - cropping[1],
                                             s.extent[2] });
}

static CornuLayer *sequence_cropping_from(const void *config)
{
    return cornu_cropping1d_from(config);
}

static const CornuField sequence_cropping_fields[] = {
    { "cropping", CORNU_FIELD_PAIR_OR_NONE, offsetof(CornuCropping1dConfig, cropping) },
    { 0 },
};

const CornuLayerClass cornu__cropping1d_class = {
    .class_name = "Cropping1D", .size = sizeof(SequenceCropping),
    .build = sequence_cropping_build, .call = sequence_cropping_call, .mask = cornu__no_mask,
    .fields = sequence_cropping_fields, .config_size = sizeof(CornuCropping1dConfig),
    .config_offset = offsetof(SequenceCropping, config), .from = sequence_cropping_from,
};

CornuLayer *cornu_cropping1d_from(const CornuCropping1dConfig *config)
{
    CornuCropping1dConfig resolved = *config;
    if (resolve(config->name ? config->name : "cropping1d", "cropping", &resolved.around, 1,
                resolved.cropping, 2))
        return cornu__null();
    resolved.name = resolved.dtype = NULL;
    CornuLayer *layer = cornu_layer_create(&cornu__cropping1d_class, config->name, config->dtype);
    if (layer) ((SequenceCropping *)layer)->config = resolved;
    return layer;
}
