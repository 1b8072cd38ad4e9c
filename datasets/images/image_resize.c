/* Resizing images: rows get their columns, and two of them make one. */
#include <math.h>
#include <string.h>

#include "../../device/memory_internal.h"
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

/* ---- Rows ---- */

/* Baseline vectors of every processor: this file is not compiled per instruction set. */
enum { LANES = 4, BYTES = 16 };
typedef float    Lanes __attribute__((vector_size(16)));
typedef float    UnalignedLanes __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t  Words __attribute__((vector_size(16)));
typedef uint16_t Halves __attribute__((vector_size(16)));
typedef uint8_t  Bytes __attribute__((vector_size(16)));
typedef uint8_t  UnalignedBytes __attribute__((vector_size(16), aligned(1), may_alias));

#define shuffle __builtin_shufflevector

static void from_bytes(const uint8_t *from, int64_t count, float *to)
{
    const Bytes  none = { 0 };
    const Halves zero = { 0 };
    int64_t      i = 0;
    for (; i + BYTES <= count; i += BYTES) {
        const Bytes  bytes = *(const UnalignedBytes *)(from + i);
        const Halves half[2] = {
            (Halves)shuffle(bytes, none, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
            (Halves)shuffle(bytes, none, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                            31) };
        for (int k = 0; k < 2; k++) {
            const Halves low = shuffle(half[k], zero, 0, 8, 1, 9, 2, 10, 3, 11);
            const Halves high = shuffle(half[k], zero, 4, 12, 5, 13, 6, 14, 7, 15);
            UnalignedLanes *out = (UnalignedLanes *)(to + i + 2 * k * LANES);
            out[0] = __builtin_convertvector((Words)low, Lanes);
            out[1] = __builtin_convertvector((Words)high, Lanes);
        }
    }
    for (; i < count; i++) to[i] = (float)from[i];
}

/* Pixel i is between two of the row `from`. What is written after its C channels, up to whole
 * vectors, is overwritten by the next pixel; after the last ones is space for that. */
static void resize_columns(const float *from, const Sample *x, int64_t count, int64_t C, float *to)
{
    for (int64_t i = 0; i < count; i++, to += C) {
        const float *low = from + x[i].low * C, *high = from + x[i].high * C;
        for (int64_t c = 0; c < C; c += LANES) {
            const Lanes a = *(const UnalignedLanes *)(low + c);
            const Lanes b = *(const UnalignedLanes *)(high + c);
            *(UnalignedLanes *)(to + c) = a + (b - a) * x[i].part;
        }
    }
}

static inline Lanes between(const float *top, const float *bottom, float part)
{
    const Lanes a = *(const UnalignedLanes *)top, b = *(const UnalignedLanes *)bottom;
    return a + (b - a) * part;
}

static inline Halves rounded(const float *top, const float *bottom, float part)
{
    const Lanes a = between(top, bottom, part) + 0.5f;
    const Lanes b = between(top + LANES, bottom + LANES, part) + 0.5f;
    return shuffle((Halves)__builtin_convertvector(a, Words),
                   (Halves)__builtin_convertvector(b, Words), 0, 2, 4, 6, 8, 10, 12, 14);
}

/* Elements of a row between two others, rounded to bytes, or as they are. */
static void join_rows(const float *top, const float *bottom, float part, int64_t count, uint8_t *to)
{
    int64_t i = 0;
    for (; i + BYTES <= count; i += BYTES) {
        const Bytes a = (Bytes)rounded(top + i, bottom + i, part);
        const Bytes b = (Bytes)rounded(top + i + BYTES / 2, bottom + i + BYTES / 2, part);
        *(UnalignedBytes *)(to + i) = shuffle(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24,
                                              26, 28, 30);
    }
    for (; i < count; i++) to[i] = (uint8_t)(top[i] + (bottom[i] - top[i]) * part + 0.5f);
}

static void join_rows_f32(const float *top, const float *bottom, float part, int64_t count,
                          float *to)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        *(UnalignedLanes *)(to + i) = between(top + i, bottom + i, part);
    for (; i < count; i++) to[i] = top[i] + (bottom[i] - top[i]) * part;
}

/* ---- Images ---- */

/* An image whose rows get other columns when they are needed: of two that follow each other, which
 * the next rows need again, each has its place. */
typedef struct {
    CornuArray image;
    Sample    *x;         /* owned, with the rows: of `width` columns */
    int64_t    width;
    float     *source, *row[2];
    int64_t    at[2];     /* the rows that these are, -1 at first */
} Columns;

static CornuStatus columns_open(Columns *columns, CornuArray image, int64_t width)
{
    const int64_t *from = image.type.shape.extent, C = from[2];
    const size_t   source = (size_t)(from[1] * C + LANES), row = (size_t)(width * C + LANES);
    const size_t   samples = (size_t)width * sizeof(Sample);
    *columns = (Columns){ .image = image, .width = width, .at = { -1, -1 } };
    columns->x = cornu__allocate(samples + (source + 2 * row) * sizeof(float), 1);
    if (!columns->x) return CORNU_ERR_MEMORY;
    columns->source = (float *)(columns->x + width);
    columns->row[0] = columns->source + source;
    columns->row[1] = columns->row[0] + row;
    return CORNU_OK;
}

static const float *columns_row(Columns *columns, int64_t row)
{
    const int64_t *from = columns->image.type.shape.extent, count = from[1] * from[2];
    float         *to = columns->row[row & 1];
    if (columns->at[row & 1] == row) return to;
    if (columns->image.type.dtype == CORNU_U8)
        from_bytes((const uint8_t *)columns->image.data + row * count, count, columns->source);
    else
        memcpy(columns->source, (const float *)columns->image.data + row * count,
               (size_t)count * sizeof(float));
    resize_columns(columns->source, columns->x, columns->width, from[2], to);
    columns->at[row & 1] = row;
    return to;
}

static void put_row(Columns *columns, Sample y, CornuArray to, int64_t h)
{
    const float  *top = columns_row(columns, y.low), *bottom = columns_row(columns, y.high);
    const int64_t count = to.type.shape.extent[1] * to.type.shape.extent[2];
    if (to.type.dtype == CORNU_U8)
        join_rows(top, bottom, y.part, count, (uint8_t *)to.data + h * count);
    else
        join_rows_f32(top, bottom, y.part, count, (float *)to.data + h * count);
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
    int64_t height = from[0], width = from[1];
    if (crop_to_aspect_ratio) {
        height = crop(from[0], from[1], size[0], size[1]);
        width = crop(from[1], from[0], size[1], size[0]);
    }
    if (from[0] == size[0] && from[1] == size[1]) {   /* each pixel is sampled at its centre */
        memcpy(to.data, image.data, cornu_type_bytes(to.type));
        return CORNU_OK;
    }
    Columns columns;
    CORNU__TRY(columns_open(&columns, image, size[1]));
    for (int64_t w = 0; w < size[1]; w++)
        columns.x[w] = sample(w, size[1], (from[1] - width) / 2, width, interpolation);
    for (int64_t h = 0; h < size[0]; h++)
        put_row(&columns, sample(h, size[0], (from[0] - height) / 2, height, interpolation), to, h);
    cornu__release(columns.x);
    return CORNU_OK;
}
