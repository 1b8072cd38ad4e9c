/* Resizing images. */
#include <math.h>
#include <string.h>

#include "../../device/status_internal.h"
#include "image.h"

/* The source of a pixel along one axis: (1 - part) times `low` plus part times `high`. */
typedef struct {
    int64_t low, high;
    float   part;
} Sample;

/* For pixel i of `count`, resized from `extent` pixels starting at `first`. */
static Sample sample(int64_t i, int64_t count, int64_t first, int64_t extent,
                     CornuImageInterpolation interpolation)
{
    const float centre = ((float)i + 0.5f) * ((float)extent / (float)count);
    const float at = interpolation == CORNU_IMAGE_NEAREST ? centre : centre - 0.5f;
    const int64_t floor_at = (int64_t)floorf(at), last = extent - 1;
    Sample s = { .low = floor_at < 0 ? 0 : floor_at > last ? last : floor_at };
    s.high = interpolation == CORNU_IMAGE_NEAREST || floor_at < 0 || s.low == last ? s.low
                                                                                   : s.low + 1;
    s.part = at - (float)floor_at;
    s.low += first;
    s.high += first;
    return s;
}

/* Pixels of a row: x[i] between the rows above and below, of which the latter has the part `part`.
 * C is a constant of the caller's. */
static inline void resize_row(const uint8_t *top, const uint8_t *bottom, float part,
                              const Sample *x, int64_t count, int64_t C, uint8_t *out)
{
    for (int64_t i = 0; i < count; i++, out += C) {
        const uint8_t *top_low = top + x[i].low * C, *top_high = top + x[i].high * C;
        const uint8_t *bottom_low = bottom + x[i].low * C, *bottom_high = bottom + x[i].high * C;
        for (int64_t c = 0; c < C; c++) {
            const float t = (float)top_low[c], b = (float)bottom_low[c];
            const float above = t + ((float)top_high[c] - t) * x[i].part;
            const float below = b + ((float)bottom_high[c] - b) * x[i].part;
            out[c] = (uint8_t)(above + (below - above) * part + 0.5f);
        }
    }
}

/* The same without rounding. */
static inline void resize_row_f32(const float *top, const float *bottom, float part,
                                  const Sample *x, int64_t count, int64_t C, float *out)
{
    for (int64_t i = 0; i < count; i++, out += C) {
        const int64_t low = x[i].low * C, high = x[i].high * C;
        for (int64_t c = 0; c < C; c++) {
            const float above = top[low + c] + (top[high + c] - top[low + c]) * x[i].part;
            const float below = bottom[low + c] + (bottom[high + c] - bottom[low + c]) * x[i].part;
            out[c] = above + (below - above) * part;
        }
    }
}

static void resize_any(CornuDtype dtype, const void *top, const void *bottom, float part,
                       const Sample *x, int64_t count, int64_t C, void *out)
{
    if (dtype == CORNU_F32) resize_row_f32(top, bottom, part, x, count, C, out);
    else if (C == 3) resize_row(top, bottom, part, x, count, 3, out);
    else if (C == 1) resize_row(top, bottom, part, x, count, 1, out);
    else resize_row(top, bottom, part, x, count, C, out);
}

/* The extent, in whole pixels, of a crop with the aspect ratio of the target. */
static int64_t crop(int64_t extent, int64_t other, int64_t target, int64_t other_target)
{
    const int64_t wanted = other * target / other_target;
    return wanted < 1 ? 1 : wanted < extent ? wanted : extent;
}

static bool is_image(CornuArray array)
{
    const CornuShape shape = array.type.shape;
    const CornuDtype dtype = array.type.dtype;
    bool fits = array.data && (dtype == CORNU_U8 || dtype == CORNU_F32) && shape.rank == 3;
    for (int i = 0; i < shape.rank && fits; i++)
        fits = shape.extent[i] >= 1 && shape.extent[i] <= CORNU_IMAGE_EXTENT;
    return fits;
}

CornuStatus cornu_image_resize(CornuArray image, CornuImageInterpolation interpolation,
                               bool crop_to_aspect_ratio, CornuArray to)
{
    const int64_t *from = image.type.shape.extent, *size = to.type.shape.extent;
    CornuText      one, other;
    if (!is_image(image) || !is_image(to) || from[2] != size[2] ||
        image.type.dtype != to.type.dtype)
        return cornu__fail(CORNU_ERR_SHAPE, "image: %s cannot be resized to %s, expected u8 or f32 "
                           "(H, W, C), each extent 1 to %d, with equal channels",
                           cornu_type_print(&one, image.type), cornu_type_print(&other, to.type),
                           CORNU_IMAGE_EXTENT);
    const CornuDtype dtype = image.type.dtype;
    const int64_t    C = from[2];
    int64_t          height = from[0], width = from[1];
    if (crop_to_aspect_ratio) {
        height = crop(from[0], from[1], size[0], size[1]);
        width = crop(from[1], from[0], size[1], size[0]);
    }
    if (from[0] == size[0] && from[1] == size[1]) {   /* each pixel is sampled at its centre */
        memcpy(to.data, image.data, cornu_type_bytes(to.type));
        return CORNU_OK;
    }
    enum { COLUMNS = 256 };
    const char   *pixels = image.data;
    const int64_t bytes = C * (int64_t)cornu_dtype_size(dtype);
    for (int64_t w = 0; w < size[1]; w += COLUMNS) {
        const int64_t count = size[1] - w < COLUMNS ? size[1] - w : COLUMNS;
        Sample        x[COLUMNS];
        for (int64_t i = 0; i < count; i++)
            x[i] = sample(w + i, size[1], (from[1] - width) / 2, width, interpolation);
        for (int64_t h = 0; h < size[0]; h++) {
            const Sample y = sample(h, size[0], (from[0] - height) / 2, height, interpolation);
            resize_any(dtype, pixels + y.low * from[1] * bytes, pixels + y.high * from[1] * bytes,
                       y.part, x, count, C, (char *)to.data + (h * size[1] + w) * bytes);
        }
    }
    return CORNU_OK;
}
