/* PNG and JPEG files, checked and decoded by stb_image or, the usual PNG files, by zlib, and
 * resizing. */
#include "image.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* The decoder's allocations, limited, as a small file may request any amount; zeroed, as the
 * decoder uses tables that a file does not define. */
enum { MOST_BYTES = 1 << 29 };
static void *take_memory(size_t size) { return size <= MOST_BYTES ? calloc(1, size) : NULL; }
static void *grow_memory(void *memory, size_t size)
{
    return size <= MOST_BYTES ? realloc(memory, size) : NULL;
}
/* memcpy for the decoder, which copies 0 bytes to NULL: undefined for memcpy itself. */
static void *copy_some(void *to, const void *from, size_t size)
{
    return size ? memcpy(to, from, size) : to;
}
#define STBI_MALLOC take_memory
#define STBI_REALLOC grow_memory
#define STBI_FREE free

/* The decoder is compiled into this file, with the two formats we read. It declares functions that
 * it does not define then, which gcc reports at the end of the file. */
#pragma GCC diagnostic ignored "-Wunused-function"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_MAX_DIMENSIONS CORNU_IMAGE_EXTENT
/* Doubles the width of a row of colour, of w > 0 samples. The decoder's own function of this name,
 * up to 2.27, swaps the weights of the last pixel but one; the macro, which applies where a bracket
 * follows, renames its definition, so that the pointer to it, elsewhere, is to this one. */
static unsigned char *stbi__resample_row_h_2(unsigned char *out, unsigned char *near,
                                             unsigned char *far, int w, int scale);
#define stbi__resample_row_h_2(out, near, far, w, scale) \
    resample_row_h_2_of_stb(out, near, far, w, scale)
/* It adds 0 to NULL, which clang's sanitizer reports. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#define memcpy copy_some
#include <stb/stb_image.h>
#undef memcpy
#undef stbi__resample_row_h_2
#ifdef __clang__
#pragma clang attribute pop
#endif

#include "../../device/memory_internal.h"
#include "../../device/open.h"
#include "jpeg_internal.h"
#include "png_internal.h"

static unsigned char *stbi__resample_row_h_2(unsigned char *out, unsigned char *near,
                                             unsigned char *far, int w, int scale)
{
    resample_row_h_2_of_stb(out, near, far, w, scale);
    if (w > 1) out[2 * w - 2] = (unsigned char)((3 * near[w - 1] + near[w - 2] + 2) / 4);
    return out;
}

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

/* Converts count pixels of `have` channels, where 2 and 4 include alpha, to `want`, 1 or 3. `to`
 * may equal `from` if pixels do not grow. */
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

/* The next marker, after one or more bytes FF, where c is the last byte read. Skips bytes FF in
 * coded data, which are followed by 0 or a restart marker. EOF after the last one. */
static int next_marker(FILE *file, int c)
{
    do {
        while (c != 0xFF && c != EOF) c = getc_unlocked(file);
        while (c == 0xFF) c = getc_unlocked(file);
    } while (c == 0 || (c >= 0xD0 && c <= 0xD7));
    return c;
}

/* Counts the scans of a JPEG and checks that no Huffman table has more than 256 codes, for which
 * the decoder, up to 2.27, writes out of bounds. Reads up to the frame header, with the size, or
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

/* Checks the checksum of each chunk of a PNG, which the decoder ignores. Source: W3C, Portable
 * Network Graphics, section 5.3. */
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
        if (left > 0 || fread(tail, 1, 4, file) != 4) break;   /* the decoder reports it */
        if (sum != ((uLong)tail[0] << 24 | (uLong)tail[1] << 16 | (uLong)tail[2] << 8 | tail[3]))
            return cornu__fail(CORNU_ERR_FORMAT, "%s: a damaged PNG image: wrong checksum of "
                               "chunk %.4s", path, (const char *)head + 4);
        if (!memcmp(head + 4, "IEND", 4)) break;
    }
    return CORNU_OK;
}
/* Each scan of a progressive JPEG visits all pixels, and a scan may be a few bytes long;
 * photographs have about ten. Decoding needs up to two bytes for the coefficient of each of three
 * colours, and two more for the decoded and the converted colour. */
enum { MOST_SCANNED = 16 * CORNU_IMAGE_PIXELS, BYTES_PER_PIXEL = 12 };

/* Checks the size of an image; `whole` if it is to be decoded. The file is at its start. */
static CornuStatus check_image(FILE *file, const char *path, bool whole, int *width, int *height)
{
    int         channels;
    int64_t     scans;
    CornuStatus status = CORNU_OK;
    if (!tables_fit(file, whole, &scans))
        status = cornu__fail(CORNU_ERR_FORMAT, "%s: a damaged JPEG image: a Huffman table has more "
                             "than 256 codes", path);
    rewind(file);
    if (!status && !stbi_info_from_file(file, width, height, &channels))
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
    rewind(file);
    if (!status && whole) status = check_chunks(file, path);
    rewind(file);
    return status;
}

CornuStatus cornu_image_size(const char *path, int64_t *height, int64_t *width)
{
    CORNU__NEED(path);
    FILE *file;
    int   w, h;
    CORNU__TRY(cornu__open_to_read(path, &file));
    const CornuStatus status = check_image(file, path, false, &w, &h);
    fclose(file);
    CORNU__TRY(status);
    *height = h;
    *width = w;
    return CORNU_OK;
}

/* Reads the whole file, which is at its start, after CORNU_JPEG_ROOM bytes. *room is freed with
 * free(). */
static CornuStatus read_whole(FILE *file, const char *path, uint8_t **room, size_t *size)
{
    const long long bytes = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
    rewind(file);
    *room = NULL;
    if (bytes < 1 || bytes > MOST_BYTES)
        return cornu__fail(CORNU_ERR_FORMAT, "%s: has %lld bytes, expected 1 to %d", path, bytes,
                           MOST_BYTES);
    *size = (size_t)bytes;
    *room = malloc(CORNU_JPEG_ROOM + *size);
    if (!*room)
        return cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for %zu bytes", path, *size);
    if (fread(*room + CORNU_JPEG_ROOM, 1, *size, file) == *size) return CORNU_OK;
    free(*room);
    *room = NULL;
    return cornu__fail(CORNU_ERR_FILE, "%s: cannot be read to its end", path);
}

/* Decodes to pixels of *have channels, where 2 and 4 include alpha. */
static CornuStatus decode(FILE *file, const char *path, uint8_t **pixels, int *width, int *height,
                          int *have)
{
    size_t   size;
    uint8_t *room;
    CORNU__TRY(read_whole(file, path, &room, &size));
    uint8_t *bytes = room + CORNU_JPEG_ROOM;
    *pixels = cornu__png_decode(bytes, size, *height, *width, have);
    if (!*pixels) {
        bytes = cornu__jpeg_mark_colours(bytes, &size);
        *pixels = stbi_load_from_memory(bytes, (int)size, width, height, have, 0);
    }
    free(room);
    return *pixels ? CORNU_OK : unreadable(path);
}

static CornuStatus check_channels(const char *path, int channels)
{
    if (channels == 0 || channels == 1 || channels == 3) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %d channels requested, expected 0, 1 or 3", path,
                       channels);
}

/* Reads the image of an open file. */
static CornuStatus load(FILE *file, const char *path, int channels, CornuArray *image)
{
    int      width, height, have;
    uint8_t *pixels;
    CORNU__TRY(check_image(file, path, true, &width, &height));
    CORNU__TRY(decode(file, path, &pixels, &width, &height, &have));
    int      want = channels ? channels : have < 3 ? 1 : 3;
    size_t   count = (size_t)width * (size_t)height;
    uint8_t *converted = want > have ? malloc(count * (size_t)want) : pixels;
    if (converted && want != have) convert(converted, want, pixels, have, count);
    if (converted != pixels) free(pixels);
    if (!converted)
        return cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for %zu bytes", path,
                           count * (size_t)want);
    *image = cornu_array(converted, CORNU_U8, height, width, want);
    return CORNU_OK;
}

CornuStatus cornu_image_load(const char *path, int channels, CornuArray *image)
{
    CORNU__NEED(path);
    CORNU__NEED(image);
    CORNU__TRY(check_channels(path, channels));
    FILE *file;
    CORNU__TRY(cornu__open_to_read(path, &file));
    const CornuStatus status = load(file, path, channels, image);
    fclose(file);
    return status;
}

CornuStatus cornu_image_decode(const char *name, const void *bytes, size_t size, int channels,
                               CornuArray *image)
{
    CORNU__NEED(name);
    CORNU__NEED(bytes);
    CORNU__NEED(image);
    CORNU__TRY(check_channels(name, channels));
    if (size == 0) return cornu__fail(CORNU_ERR_FORMAT, "%s: has no bytes", name);
    FILE *file = fmemopen((void *)bytes, size, "rb");   /* which does not write */
    if (!file) return cornu__fail(CORNU_ERR_MEMORY, "%s: no memory to read it", name);
    const CornuStatus status = load(file, name, channels, image);
    fclose(file);
    return status;
}

/* ---- Resizing ---- */

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

/* The extent, in whole pixels, of a crop with the aspect ratio of the target. */
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
                           "C), each extent 1 to %d, with equal channels",
                           cornu_type_print(&one, image.type), cornu_type_print(&other, to.type),
                           CORNU_IMAGE_EXTENT);
    const int64_t C = from[2];
    int64_t       height = from[0], width = from[1];
    if (crop_to_aspect_ratio) {
        height = crop(from[0], from[1], size[0], size[1]);
        width = crop(from[1], from[0], size[1], size[0]);
    }
    if (from[0] == size[0] && from[1] == size[1]) {   /* each pixel is sampled at its centre */
        memcpy(to.data, image.data, cornu_type_bytes(to.type));
        return CORNU_OK;
    }
    enum { COLUMNS = 256 };
    const uint8_t *pixels = image.data;
    for (int64_t w = 0; w < size[1]; w += COLUMNS) {
        const int64_t count = size[1] - w < COLUMNS ? size[1] - w : COLUMNS;
        Sample        x[COLUMNS];
        for (int64_t i = 0; i < count; i++)
            x[i] = sample(w + i, size[1], (from[1] - width) / 2, width, interpolation);
        for (int64_t h = 0; h < size[0]; h++) {
            const Sample   y = sample(h, size[0], (from[0] - height) / 2, height, interpolation);
            const uint8_t *top = pixels + y.low * from[1] * C;
            const uint8_t *bottom = pixels + y.high * from[1] * C;
            uint8_t       *out = (uint8_t *)to.data + (h * size[1] + w) * C;
            if (C == 3) resize_row(top, bottom, y.part, x, count, 3, out);
            else if (C == 1) resize_row(top, bottom, y.part, x, count, 1, out);
            else resize_row(top, bottom, y.part, x, count, C, out);
        }
    }
    return CORNU_OK;
}
