/* Image files: the table of their formats, channels and numbers. Resizing is in image_resize.c. */
#include "image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../device/inference_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/open.h"
#include "../../device/text/print.h"
#include "../files/inputs_internal.h"
#include "format_internal.h"

static const CornuImageFormat *const formats[] = {
    &cornu__png_format,
    &cornu__jpeg_format,
    CORNU__FULL(&cornu__bmp_format, NULL),
    CORNU__FULL(&cornu__gif_format, NULL),
    CORNU__FULL(&cornu__pnm_format, NULL),
    CORNU__FULL(&cornu__dicom_format, NULL),
};

enum { FORMATS = sizeof formats / sizeof *formats };

/* ---- Files ---- */

/* The format by the first bytes, or NULL with an error. */
static const CornuImageFormat *find_format(const CornuImageBytes *file)
{
    char   names[60] = "";
    size_t used = 0;
    for (int i = 0; i < FORMATS; i++) {
        if (!formats[i]) continue;
        if (formats[i]->matches(file->bytes, file->size)) return formats[i];
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                 formats[i]->name);
    }
    cornu__fail(CORNU_ERR_FORMAT, "%s: not a readable image, expected one of %s", file->path,
                names);
    return NULL;
}

/* How messages name a file, which may be on another machine. */
static const char *name_of(const char *path, char shown[CORNU__SHOWN])
{
    static const char *(*const name)(const char *, char *) = CORNU__FULL(cornu__inputs_name, NULL);
    return name ? name(path, shown) : path;
}

static CornuStatus open_image(const char *path, FILE **stream)
{
    static CornuStatus (*const open)(const char *, int64_t, FILE **) =
        CORNU__FULL(cornu__inputs_stream, NULL);
    return open ? open(path, CORNU_IMAGE_BYTES, stream) : cornu__open_to_read(path, stream);
}

/* Reads at most `most` bytes of a file. */
static CornuStatus read_bytes(FILE *stream, const char *path, size_t most, CornuImageBytes *file)
{
    struct stat about = { 0 };
    if (fstat(fileno(stream), &about) || about.st_size > CORNU_IMAGE_BYTES)
        return cornu__fail(CORNU_ERR_FORMAT, "%s: has %lld bytes, expected at most %d", path,
                           (long long)about.st_size, CORNU_IMAGE_BYTES);
    const size_t all = (size_t)about.st_size, size = all < most ? all : most;
    CORNU__TRY(cornu__fail_prefix(cornu__check_memory(size), path));
    uint8_t *memory = malloc(CORNU_IMAGE_BEFORE + size);
    if (!memory)
        return cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for %zu bytes", path, size);
    *file = (CornuImageBytes){ path, memory + CORNU_IMAGE_BEFORE, size };
    if (fseek(stream, 0, SEEK_SET) == 0 && fread(file->bytes, 1, size, stream) == size)
        return CORNU_OK;
    free(memory);
    return cornu__fail(CORNU_ERR_FILE, "%s: cannot be read to its end", path);
}

static void free_bytes(CornuImageBytes *file) { free(file->bytes - CORNU_IMAGE_BEFORE); }

static CornuStatus check_header(const CornuImageBytes *file, const CornuImageHeader *header)
{
    const int64_t h = header->height, w = header->width;
    if (h < 1 || w < 1 || h > CORNU_IMAGE_EXTENT || w > CORNU_IMAGE_EXTENT ||
        h * w > CORNU_IMAGE_PIXELS)
        return cornu__fail(CORNU_ERR_FORMAT, "%s: has %lld x %lld pixels, expected at most %d, and "
                           "%d along an axis", file->path, (long long)w, (long long)h,
                           CORNU_IMAGE_PIXELS, CORNU_IMAGE_EXTENT);
    return CORNU_OK;
}

static CornuStatus read_header(const CornuImageBytes *file, const CornuImageFormat **format,
                               CornuImageHeader *header)
{
    *header = (CornuImageHeader){ .bits = 8, .orientation = 1 };
    *format = find_format(file);
    if (!*format) return CORNU_ERR_FORMAT;
    CORNU__TRY((*format)->header(file, header));
    return check_header(file, header);
}

/* Whether an image lies on its side: its rows are columns as shown. */
static bool is_turned(const CornuImageHeader *header) { return header->orientation >= 5; }

/* From the beginning of the file, as most headers are there, or else from all of it. */
CornuStatus cornu_image_info(const char *path, CornuImageInfo *info)
{
    enum { BEGINNING = 1 << 16 };
    CORNU__NEED(path);
    CORNU__NEED(info);
    FILE                   *stream;
    CornuImageBytes         file = { .size = 0 };
    CornuImageHeader        header;
    const CornuImageFormat *format;
    CornuFailure            before;
    char                    shown[CORNU__SHOWN];
    CORNU__TRY(open_image(path, &stream));
    cornu__error_keep(&before);
    path = name_of(path, shown);
    CornuStatus status = read_bytes(stream, path, BEGINNING, &file);
    if (!status) status = read_header(&file, &format, &header), free_bytes(&file);
    if (status && file.size == BEGINNING) {
        cornu__error_restore(&before);
        status = read_bytes(stream, path, CORNU_IMAGE_BYTES, &file);
        if (!status) status = read_header(&file, &format, &header), free_bytes(&file);
    }
    fclose(stream);
    if (status) return status;
    *info = (CornuImageInfo){ format->name, header.height, header.width, header.channels,
                              header.bits };
    if (is_turned(&header)) info->height = header.width, info->width = header.height;
    return CORNU_OK;
}

CornuStatus cornu_image_size(const char *path, int64_t *height, int64_t *width)
{
    CORNU__NEED(height);
    CORNU__NEED(width);
    CornuImageInfo info;
    CORNU__TRY(cornu_image_info(path, &info));
    *height = info.height;
    *width = info.width;
    return CORNU_OK;
}

/* ---- Channels ---- */

/* A value blended with white by alpha / 255. */
static uint8_t on_white(uint8_t value, uint8_t alpha)
{
    return (uint8_t)((value * alpha + 255 * (255 - alpha) + 127) / 255);
}

/* Luma in 256ths: ITU-R BT.601, section 2.5.1. */
static uint8_t luma(const uint8_t rgb[3])
{
    return (uint8_t)((77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8);
}

/* Converts count pixels of `have` channels, where 2 and 4 include alpha, to `want`: 1, 3 or 4. `to`
 * may equal `from` if pixels do not grow. */
static void convert_u8(uint8_t *to, int want, const uint8_t *from, int have, size_t count)
{
    const int  colours = have < 3 ? 1 : 3;
    const bool alpha = have > colours, blends = alpha && want < 4;
    for (size_t i = 0; i < count; i++, from += have, to += want) {
        const uint8_t part = alpha ? from[colours] : 255;
        uint8_t       rgb[4] = { [3] = part };
        for (int c = 0; c < 3; c++) {
            rgb[c] = from[c < colours ? c : 0];
            if (blends) rgb[c] = on_white(rgb[c], part);
        }
        if (want == 1)
            to[0] = colours == 1 ? rgb[0] : luma(rgb);
        else
            memcpy(to, rgb, (size_t)want);
    }
}

/* The same for numbers from 0 to white. */
static void convert_f32(float *to, int want, const float *from, int have, size_t count, float white)
{
    const int  colours = have < 3 ? 1 : 3;
    const bool alpha = have > colours, blends = alpha && want < 4;
    for (size_t i = 0; i < count; i++, from += have, to += want) {
        const float part = alpha ? from[colours] : white;
        float       rgb[4] = { [3] = part };
        for (int c = 0; c < 3; c++) {
            rgb[c] = from[c < colours ? c : 0];
            if (blends) rgb[c] = white + (rgb[c] - white) * (part / white);
        }
        if (want == 1)
            to[0] = colours == 1 ? rgb[0] : 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
        else
            memcpy(to, rgb, (size_t)want * sizeof *to);
    }
}

/* Other channels and dtype, in new memory if pixels grow. Frees the old one. */
static CornuStatus convert(const CornuImageBytes *file, const CornuImageHeader *header,
                           CornuArray *image, int want, bool full)
{
    const int64_t *extent = image->type.shape.extent;
    const size_t   count = (size_t)(extent[0] * extent[1]);
    const int      have = (int)extent[2];
    if (want == 0) want = have < 3 ? 1 : 3;
    if (full && image->type.dtype == CORNU_U8) {
        const CornuImageHeader same = { .height = extent[0], .width = extent[1], .channels = have };
        const uint8_t         *bytes = image->data;
        float                 *values = cornu__image_allocate(file, &same, sizeof *values);
        for (size_t i = 0; values && i < count * (size_t)have; i++) values[i] = bytes[i];
        free(image->data);
        *image = cornu_array(values, CORNU_F32, extent[0], extent[1], have);
        if (!values) return CORNU_ERR_MEMORY;
    }
    if (want == have) return CORNU_OK;
    const CornuArray       from = *image;
    const CornuImageHeader made = { .height = extent[0], .width = extent[1], .channels = want };
    if (want > have)
        image->data = cornu__image_allocate(file, &made, cornu_dtype_size(from.type.dtype));
    image->type.shape.extent[2] = want;
    if (image->data && full)
        convert_f32(image->data, want, from.data, have, count, header->bits == 16 ? 65535 : 255);
    else if (image->data)
        convert_u8(image->data, want, from.data, have, count);
    if (image->data != from.data) free(from.data);
    return image->data ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* ---- Orientation ---- */

/* Pixel (h, w) as shown is pixel (h, w) as stored, of which rows and columns are exchanged from 5
 * on, counted from the other end of an axis where that is mirrored. */
static CornuStatus turn(const CornuImageBytes *file, const CornuImageHeader *header,
                        CornuArray *image)
{
    static const struct { bool rows, columns; } mirrored[9] = {
        [2] = { .columns = true }, [3] = { true, true }, [4] = { .rows = true },
        [6] = { .rows = true }, [7] = { true, true }, [8] = { .columns = true },
    };
    const int o = header->orientation;
    if (o == 1) return CORNU_OK;
    const int64_t H = image->type.shape.extent[0], W = image->type.shape.extent[1];
    const int64_t C = image->type.shape.extent[2], height = o >= 5 ? W : H, width = o >= 5 ? H : W;
    const size_t  size = (size_t)C * cornu_dtype_size(image->type.dtype);
    const CornuImageHeader turned = { .height = height, .width = width, .channels = (int)C };
    const uint8_t *from = image->data;
    uint8_t *to = cornu__image_allocate(file, &turned, cornu_dtype_size(image->type.dtype));
    if (to) {
        uint8_t *out = to;
        for (int64_t h = 0; h < height; h++)
            for (int64_t w = 0; w < width; w++, out += size) {
                const int64_t y = o >= 5 ? w : h, x = o >= 5 ? h : w;
                const int64_t row = mirrored[o].rows ? H - 1 - y : y;
                const int64_t column = mirrored[o].columns ? W - 1 - x : x;
                memcpy(out, from + (size_t)(row * W + column) * size, size);
            }
    }
    free(image->data);
    *image = cornu_array(to, image->type.dtype, height, width, C);
    return to ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* ---- Loading ---- */

static CornuStatus decode(const CornuImageBytes *file, int channels, bool full, CornuArray *image)
{
    /* Of a JPEG: two for the coefficient of each of three colours, one more for the decoded colour,
     * and four for the converted ones, with alpha. */
    enum { BYTES_PER_PIXEL = 13 };
    CornuImageHeader        header;
    const CornuImageFormat *format;
    CornuArray              made = { .data = NULL };
    CORNU__TRY(read_header(file, &format, &header));
    CORNU__TRY(cornu__fail_prefix(cornu__check_memory((size_t)(header.height * header.width) *
                                                      BYTES_PER_PIXEL), file->path));
    CornuStatus status = format->decode(file, &header, full, &made);
    if (!status) status = convert(file, &header, &made, channels, full);
    if (!status) status = turn(file, &header, &made);
    if (!status) *image = made;
    else free(made.data);
    return status;
}

static CornuStatus check_channels(const char *name, int channels)
{
    if (channels == 0 || channels == 1 || channels == 3 || channels == 4) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %d channels requested, expected 0, 1, 3 or 4",
                       name, channels);
}

static CornuStatus load(const char *path, int channels, bool full, CornuArray *image)
{
    FILE           *stream;
    CornuImageBytes file;
    char            shown[CORNU__SHOWN];
    const char     *name = name_of(path, shown);
    CORNU__TRY(check_channels(name, channels));
    CORNU__TRY(open_image(path, &stream));
    CornuStatus status = read_bytes(stream, name, CORNU_IMAGE_BYTES, &file);
    fclose(stream);
    CORNU__TRY(status);
    status = decode(&file, channels, full, image);
    free_bytes(&file);
    return status;
}

CornuStatus cornu_image_load(const char *path, int channels, CornuArray *image)
{
    CORNU__NEED(path);
    CORNU__NEED(image);
    return load(path, channels, false, image);
}

CornuStatus cornu_image_load_f32(const char *path, int channels, CornuArray *image)
{
    CORNU__NEED(path);
    CORNU__NEED(image);
    return load(path, channels, true, image);
}

CornuStatus cornu_image_decode(const char *name, const void *bytes, size_t size, int channels,
                               CornuArray *image)
{
    CORNU__NEED(name);
    CORNU__NEED(bytes);
    CORNU__NEED(image);
    CORNU__TRY(check_channels(name, channels));
    if (size > CORNU_IMAGE_BYTES)
        return cornu__fail(CORNU_ERR_FORMAT, "%s: has %zu bytes, expected at most %d", name, size,
                           CORNU_IMAGE_BYTES);
    uint8_t *copy = malloc(CORNU_IMAGE_BEFORE + size);
    if (!copy) return cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for %zu bytes", name, size);
    CornuImageBytes file = { name, copy + CORNU_IMAGE_BEFORE, size };
    if (size) memcpy(file.bytes, bytes, size);
    const CornuStatus status = decode(&file, channels, false, image);
    free_bytes(&file);
    return status;
}
