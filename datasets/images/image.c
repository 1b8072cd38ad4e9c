#include "image.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* The decoder's memory: a small file may ask for any amount. Zeros, as the decoder believes in
 * tables that a file does not define. */
enum { MOST_BYTES = 1 << 29 };
static void *take_memory(size_t size) { return size <= MOST_BYTES ? calloc(1, size) : NULL; }
static void *grow_memory(void *memory, size_t size)
{
    return size <= MOST_BYTES ? realloc(memory, size) : NULL;
}
/* It copies nothing to NULL. */
static void *copy_some(void *to, const void *from, size_t size)
{
    return size ? memcpy(to, from, size) : to;
}
#define STBI_MALLOC take_memory
#define STBI_REALLOC grow_memory
#define STBI_FREE free

/* The decoder is compiled into this file alone, with the two formats we read. It declares
 * functions that it then does not define, which gcc reports at the end of the file. */
#pragma GCC diagnostic ignored "-Wunused-function"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_MAX_DIMENSIONS CORNU_IMAGE_EXTENT
/* It adds 0 to NULL, which clang's sanitizer reports. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#define memcpy copy_some
#include <stb/stb_image.h>
#undef memcpy
#ifdef __clang__
#pragma clang attribute pop
#endif

#include "../../device/memory_internal.h"
#include "../../device/open.h"

/* What is seen of a value where it covers alpha / 255 of white paper. */
static uint8_t on_white(uint8_t value, uint8_t alpha)
{
    return (uint8_t)((value * alpha + 255 * (255 - alpha) + 127) / 255);
}

/* Luma in 256ths: ITU-R BT.601, section 2.5.1. */
static uint8_t luma(const uint8_t rgb[3])
{
    return (uint8_t)((77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8);
}

/* Turns count pixels of `have` channels, of which 2 and 4 end in alpha, into `want`, 1 or 3. to
 * may equal from where pixels do not grow. */
static void convert(uint8_t *to, int want, const uint8_t *from, int have, size_t count)
{
    int colours = have < 3 ? 1 : 3;
    for (size_t i = 0; i < count; i++, from += have, to += want) {
        uint8_t rgb[3];
        for (int c = 0; c < 3; c++) {
            rgb[c] = from[c < colours ? c : 0];
            if (have > colours) rgb[c] = on_white(rgb[c], from[colours]);
        }
        if (want == 3)
            memcpy(to, rgb, 3);
        else
            to[0] = colours == 1 ? rgb[0] : luma(rgb);
    }
}

static CornuStatus unreadable(const char *path)
{
    return cornu__fail(CORNU_ERR_FORMAT, "%s: not a readable PNG or JPEG image: %s", path,
                       stbi_failure_reason());
}

/* What follows bytes of FF, the last read being c, unless it is in coded data: a 0, a restart. EOF
 * behind the last. */
static int next_marker(FILE *file, int c)
{
    do {
        while (c != 0xFF && c != EOF) c = getc_unlocked(file);
        while (c == 0xFF) c = getc_unlocked(file);
    } while (c == 0 || (c >= 0xD0 && c <= 0xD7));
    return c;
}

/* How many scans a JPEG has, and whether each of its Huffman tables has at most a code for each
 * byte: the decoder, up to 2.27, writes behind its own. Up to the frame, where the size is, or in
 * the whole file. Source: ITU-T T.81, annex B. */
static bool tables_fit(FILE *file, bool whole, int64_t *scans)
{
    enum { IMAGE = 0xD8, END = 0xD9, TABLES = 0xC4, FRAME = 0xC0, LAST_FRAME = 0xC2, SCAN = 0xDA,
           LENGTHS = 16 };
    *scans = 0;
    if (getc_unlocked(file) != 0xFF || next_marker(file, 0xFF) != IMAGE) return true;
    for (int marker; (marker = next_marker(file, 0)) != EOF && marker != END;) {
        if (marker >= FRAME && marker <= LAST_FRAME && !whole) return true;
        *scans += marker == SCAN;
        const int high = getc_unlocked(file), low = getc_unlocked(file);
        int       left = low == EOF ? 0 : high << 8 | low, codes = 0;
        for (left -= 2; left > 0 && marker == TABLES; left -= 1 + LENGTHS + codes) {
            codes = 0;
            getc_unlocked(file);
            for (int i = 0, c; i < LENGTHS && (c = getc_unlocked(file)) != EOF; i++) codes += c;
            if (codes > 256) return false;
            for (int i = 0; i < codes; i++) getc_unlocked(file);
        }
        while (left-- > 0) getc_unlocked(file);
    }
    return true;
}

/* Checks each chunk of a PNG by its checksum, at which the decoder does not look. Source: W3C,
 * Portable Network Graphics, section 5.3. */
static CornuStatus check_chunks(FILE *file, const char *path)
{
    static const unsigned char signature[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n' };
    unsigned char              bytes[1 << 12], head[8] = { 0 }, tail[4];
    if (fread(head, 1, 8, file) != 8 || memcmp(head, signature, 8)) return CORNU_OK;
    while (fread(head, 1, 8, file) == 8) {
        uint32_t left = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 |
                        (uint32_t)head[2] << 8 | head[3];
        uLong    sum = crc32(0, head + 4, 4);
        size_t   got = 1;
        for (; left > 0 && got > 0; left -= (uint32_t)got) {
            got = fread(bytes, 1, left < sizeof bytes ? left : sizeof bytes, file);
            sum = crc32(sum, bytes, (uInt)got);
        }
        if (left > 0 || fread(tail, 1, 4, file) != 4) break;   /* the decoder says so */
        if (sum != ((uLong)tail[0] << 24 | (uLong)tail[1] << 16 | (uLong)tail[2] << 8 | tail[3]))
            return cornu__fail(CORNU_ERR_FORMAT, "%s: a damaged PNG image: the checksum of its "
                               "chunk %.4s is wrong", path, (const char *)head + 4);
        if (!memcmp(head + 4, "IEND", 4)) break;
    }
    return CORNU_OK;
}
/* A progressive JPEG goes over all pixels in each of its scans, of which photographs have ten or
 * so, and a few bytes suffice for one. Decoding takes as much as two bytes for the coefficient of
 * each of three colours, two bytes more for the colours and for what becomes of them. */
enum { MOST_SCANNED = 16 * CORNU_IMAGE_PIXELS, BYTES_PER_PIXEL = 12 };

/* Opens an image of a size we take, `whole` to be read as such; *file stands at its beginning. */
static CornuStatus open_image(const char *path, bool whole, FILE **file, int *width, int *height)
{
    int     channels;
    int64_t scans;
    CORNU__TRY(cornu__open_to_read(path, file));
    CornuStatus status = CORNU_OK;
    if (!tables_fit(*file, whole, &scans))
        status = cornu__fail(CORNU_ERR_FORMAT, "%s: a damaged JPEG image: a Huffman table has more "
                             "than 256 codes", path);
    rewind(*file);
    if (!status && !stbi_info_from_file(*file, width, height, &channels))
        status = unreadable(path);
    if (!status && (int64_t)*width * *height > CORNU_IMAGE_PIXELS)
        status = cornu__fail(CORNU_ERR_FORMAT, "%s: has %d x %d pixels, expected at most %d", path,
                             *width, *height, CORNU_IMAGE_PIXELS);
    const int64_t pixels = status ? 0 : (int64_t)*width * *height;
    if (!status && scans * pixels > MOST_SCANNED)
        status = cornu__fail(CORNU_ERR_FORMAT, "%s: has %lld scans of %d x %d pixels, expected at "
                             "most %lld", path, (long long)scans, *width, *height,
                             (long long)(MOST_SCANNED / pixels));
    if (!status && whole)
        status = cornu__fail_prefix(cornu__check_memory((size_t)pixels * BYTES_PER_PIXEL), path);
    rewind(*file);
    if (!status && whole) status = check_chunks(*file, path);
    rewind(*file);
    if (status) fclose(*file);
    return status;
}

CornuStatus cornu_image_size(const char *path, int64_t *height, int64_t *width)
{
    CORNU__NEED(path);
    FILE *file;
    int   w, h;
    CORNU__TRY(open_image(path, false, &file, &w, &h));
    fclose(file);
    *height = h;
    *width = w;
    return CORNU_OK;
}

CornuStatus cornu_image_load(const char *path, int channels, CornuArray *image)
{
    CORNU__NEED(path);
    CORNU__NEED(image);
    if (channels != 0 && channels != 1 && channels != 3)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %d channels wanted, expected 0, 1 or 3", path,
                           channels);
    FILE *file;
    int   width, height, have;
    CORNU__TRY(open_image(path, true, &file, &width, &height));
    uint8_t *pixels = stbi_load_from_file(file, &width, &height, &have, 0);
    fclose(file);
    if (!pixels) return unreadable(path);
    int      want = channels ? channels : have < 3 ? 1 : 3;
    size_t   count = (size_t)width * (size_t)height;
    uint8_t *converted = want > have ? malloc(count * (size_t)want) : pixels;
    if (converted && want != have) convert(converted, want, pixels, have, count);
    if (converted != pixels) free(pixels);
    if (!converted)
        return cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for %zu bytes", path,
                           count * (size_t)want);
    pixels = converted;
    *image = cornu_array(pixels, CORNU_U8, height, width, want);
    return CORNU_OK;
}

/* ---- Resizing ---- */

/* Where a pixel comes from along one axis: (1 - part) of `low` and part of `high`. */
typedef struct {
    int64_t low, high;
    float   part;
} Sample;

/* Pixel i of `count` that shall be made of the `extent` behind `first`. */
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

/* The part of one extent that has the shape of the target, in whole pixels. */
static int64_t crop(int64_t extent, int64_t other, int64_t target, int64_t other_target)
{
    const int64_t wanted = other * target / other_target;
    return wanted < 1 ? 1 : wanted < extent ? wanted : extent;
}

static bool is_image(CornuArray array)
{
    const CornuShape shape = array.type.shape;
    bool             fits = array.data && array.type.dtype == CORNU_U8 && shape.rank == 3;
    for (int i = 0; i < shape.rank && fits; i++)
        fits = shape.extent[i] >= 1 && shape.extent[i] <= CORNU_IMAGE_EXTENT;
    return fits;
}

CornuStatus cornu_image_resize(CornuArray image, CornuImageInterpolation interpolation,
                               bool crop_to_aspect_ratio, CornuArray to)
{
    const int64_t *from = image.type.shape.extent, *size = to.type.shape.extent;
    CornuText      one, other;
    if (!is_image(image) || !is_image(to) || from[2] != size[2])
        return cornu__fail(CORNU_ERR_SHAPE, "image: %s cannot be resized to %s, expected u8 (H, W, "
                           "C), each extent 1 to %d, of as many channels",
                           cornu_type_print(&one, image.type), cornu_type_print(&other, to.type),
                           CORNU_IMAGE_EXTENT);
    const int64_t C = from[2];
    int64_t       height = from[0], width = from[1];
    if (crop_to_aspect_ratio) {
        height = crop(from[0], from[1], size[0], size[1]);
        width = crop(from[1], from[0], size[1], size[0]);
    }
    const uint8_t *pixels = image.data;
    uint8_t       *out = to.data;
    for (int64_t h = 0; h < size[0]; h++) {
        const Sample   y = sample(h, size[0], (from[0] - height) / 2, height, interpolation);
        const uint8_t *top = pixels + y.low * from[1] * C, *bottom = pixels + y.high * from[1] * C;
        for (int64_t w = 0; w < size[1]; w++) {
            const Sample x = sample(w, size[1], (from[1] - width) / 2, width, interpolation);
            for (int64_t c = 0; c < C; c++, out++) {
                const float t = (float)top[x.low * C + c], b = (float)bottom[x.low * C + c];
                const float above = t + ((float)top[x.high * C + c] - t) * x.part;
                const float below = b + ((float)bottom[x.high * C + c] - b) * x.part;
                *out = (uint8_t)(above + (below - above) * y.part + 0.5f);
            }
        }
    }
    return CORNU_OK;
}
