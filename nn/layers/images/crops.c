/* CenterCrop and RandomCrop. */
#include "../reshaping/resampling_internal.h"
#include "image_internal.h"

typedef CORNU__LAYER(CornuCropConfig) Crop;

/* Rows y to y + height, columns x to x + width. */
static CornuTensor *cut(CornuTensor *image, int64_t y, int64_t x, int64_t height, int64_t width)
{
    const CornuShape s = cornu_tensor_shape(image);
    return cornu_op_slice(image, (const int64_t[]){ 0, y, x, 0 },
                          (const int64_t[]){ s.extent[0], height, width, s.extent[3] });
}

/* ---- CenterCrop ---- */

/* Source: keras/src/utils/image_utils.py, smart_resize, for images smaller on a side. */
static CornuTensor *center(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuCropConfig *config = &((const Crop *)layer)->config;
    const int64_t         *given = cornu_tensor_shape(x).extent + 1;
    const int64_t          H = given[0], W = given[1], h = config->height, w = config->width;
    (void)call;
    if (H >= h && W >= w) return cut(x, (H - h) / 2, (W - w) / 2, h, w);
    const int64_t size[2] = { h, w };
    int64_t       part[2];
    cornu__crop_to_ratio(given, size, part);
    x = cut(x, (H - part[0]) / 2, (W - part[1]) / 2, part[0], part[1]);
    return cornu__resize(x, h, w, &(CornuResampling){ CORNU_BILINEAR, false });
}

/* ---- RandomCrop ---- */

/* Rows or columns from `start`, a whole number, for all images the same: as a product with a
 * matrix that has a 1 in each row. */
static CornuTensor *taken(CornuGraph *graph, CornuTensor *x, CornuTensor *start, int64_t count)
{
    if (!x || !start) return NULL;
    const int64_t   from = cornu_tensor_shape(x).extent[1];
    const CornuType type = cornu_type(CORNU_F32, count, from);
    CornuTensor *at = cornu_op_subtract(cornu_op_iota(graph, type, 1),
                                        cornu_op_iota(graph, type, 0));
    CornuTensor *one = cornu_op_compare(at, CORNU_EQUAL,
                                        cornu_op_reshape(start, cornu_shape(1, 1)));
    return cornu_op_matmul(cornu_op_convert(one, CORNU_F32), x);
}

static CornuTensor *start_of(CornuDraws *draws, int64_t rest)
{
    return cornu_op_floor(cornu_op_scale(cornu__draw(draws), (double)(rest + 1)));
}

/* The deterministic place, and resizing, are as in Keras, whose place is not always the center. */
static CornuTensor *somewhere(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuCropConfig *config = &((const Crop *)layer)->config;
    const CornuShape       s = cornu_tensor_shape(x);
    const int64_t B = s.extent[0], H = s.extent[1], W = s.extent[2], C = s.extent[3];
    const int64_t h = config->height, w = config->width;
    if (H > h && W > w) {
        CornuDraws   draws = cornu__shared_draws(layer, call, 2);
        CornuTensor *y = start_of(&draws, H - h), *z = start_of(&draws, W - w);
        x = taken(call->graph, cornu_op_reshape(x, cornu_shape(B, H, W * C)), y, h);
        x = taken(call->graph, cornu_op_reshape(x, cornu_shape(B * h, W, C)), z, w);
        return cornu_op_reshape(x, cornu_shape(B, h, w, C));
    }
    int64_t high = (int64_t)((double)(W * h) / (double)w);
    int64_t wide = (int64_t)((double)(H * w) / (double)h);
    high = high < 1 ? 1 : high > H ? H : high;
    wide = wide < 1 ? 1 : wide > W ? W : wide;
    const int64_t y = (H - high) / 2, z = (W - wide) / 2;
    x = cut(x, y, z, H - y < h ? H - y : h, W - z < w ? W - z : w);
    return cornu__resize(x, h, w, &(CornuResampling){ CORNU_BILINEAR, false });
}

/* ---- Classes ---- */

static CornuStatus crops_resolve(CornuLayer *layer)
{
    const CornuCropConfig *config = &((const Crop *)layer)->config;
    CORNU__TRY(cornu__positive(cornu_layer_name(layer), "height", config->height));
    return cornu__positive(cornu_layer_name(layer), "width", config->width);
}

static const CornuField fields[] = {
    { "height", CORNU_FIELD_INTEGER, offsetof(CornuCropConfig, height) },
    { "width", CORNU_FIELD_INTEGER, offsetof(CornuCropConfig, width) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuCropConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__center_crop_class = {
    .class_name = "CenterCrop", .size = sizeof(Crop), CORNU__CHANGES_IMAGES(center, true),
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, Crop, crops_resolve) },
};

const CornuLayerClass cornu__random_crop_class = {
    .class_name = "RandomCrop", .size = sizeof(Crop), CORNU__CHANGES_IMAGES(somewhere, false),
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, Crop, crops_resolve) },
};

CORNU__CONSTRUCTOR(center_crop, CornuCropConfig)
CORNU__CONSTRUCTOR(random_crop, CornuCropConfig)
