/* Source: W3C, "Portable Network Graphics (PNG) Specification", sections 5, 9 and 11. */
#include "png_internal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "../../device/status_internal.h"
#include "stb_internal.h"

/* Of the rows, each after a byte with its filter. */
enum { MOST_BYTES = CORNU_IMAGE_BYTES, HEADER = 13 };

/* The channels of an image with this IHDR; 0 if it is not decoded. */
static int channels_of(const uint8_t *header, int64_t height, int64_t width)
{
    static const int channels[] = { 1, 0, 3, 0, 2, 0, 4 };   /* by colour type */
    const bool usual = header[8] == 8 && header[9] <= 6 && !header[10] && !header[11] &&
                       !header[12];
    if (!usual || cornu__be32(header) != width || cornu__be32(header + 4) != height) return 0;
    return channels[header[9]];
}

/* ---- Filters: section 9 ---- */

static inline uint8_t paeth(int a, int b, int c)
{
    const int to_a = abs(b - c), to_b = abs(a - c), to_c = abs(a + b - 2 * c);
    return (uint8_t)(to_a <= to_b && to_a <= to_c ? a : to_b <= to_c ? b : c);
}

/* Undoes the filter of a row of `count` bytes, `step` of them a pixel, in place. `above`: the row
 * before it, zeros for the first. */
static inline bool unfilter(int filter, uint8_t *row, const uint8_t *above, size_t count,
                            size_t step)
{
    switch (filter) {
    case 0: return true;
    case 1:
        for (size_t i = step; i < count; i++) row[i] = (uint8_t)(row[i] + row[i - step]);
        return true;
    case 2:
        for (size_t i = 0; i < count; i++) row[i] = (uint8_t)(row[i] + above[i]);
        return true;
    case 3:
        for (size_t i = 0; i < step; i++) row[i] = (uint8_t)(row[i] + above[i] / 2);
        for (size_t i = step; i < count; i++)
            row[i] = (uint8_t)(row[i] + (row[i - step] + above[i]) / 2);
        return true;
    case 4:
        for (size_t i = 0; i < step; i++) row[i] = (uint8_t)(row[i] + above[i]);
        for (size_t i = step; i < count; i++)
            row[i] = (uint8_t)(row[i] + paeth(row[i - step], above[i], above[i - step]));
        return true;
    default: return false;
    }
}

/* With the number of channels known to the compiler. */
static bool unfilter_row(int filter, uint8_t *row, const uint8_t *above, size_t count, int channels)
{
    switch (channels) {
    case 1:  return unfilter(filter, row, above, count, 1);
    case 2:  return unfilter(filter, row, above, count, 2);
    case 3:  return unfilter(filter, row, above, count, 3);
    default: return unfilter(filter, row, above, count, 4);
    }
}

/* From rows with their filters to pixels; `above` is zeros at first. */
static bool unfilter_all(const uint8_t *rows, uint8_t *pixels, const uint8_t *above, int64_t height,
                         size_t count, int channels)
{
    for (int64_t h = 0; h < height; h++, rows += count + 1, pixels += count) {
        memcpy(pixels, rows + 1, count);
        if (!unfilter_row(rows[0], pixels, above, count, channels)) return false;
        above = pixels;
    }
    return true;
}

/* ---- Chunks: sections 5 and 11 ---- */

/* Decompresses the IDAT chunks, which follow `at`; whether they are `count` bytes and nothing
 * follows but the end. */
static bool inflate_chunks(const uint8_t *at, const uint8_t *end, uint8_t *rows, size_t count)
{
    z_stream zlib = { .next_out = rows, .avail_out = (uInt)count };
    int      result = Z_OK;
    bool     usual = inflateInit(&zlib) == Z_OK, ended = false;
    if (!usual) return false;
    while (usual && !ended && end - at >= 12) {
        const size_t   length = cornu__be32(at);
        const uint8_t *type = at + 4;
        if (length > (size_t)(end - at) - 12) break;
        const bool is_data = !memcmp(type, "IDAT", 4);
        ended = !memcmp(type, "IEND", 4);
        /* A capital: without what the chunk says the image is another one. */
        usual = is_data || ended || type[0] >= 'a' ? memcmp(type, "tRNS", 4) != 0
                                                   : !memcmp(type, "PLTE", 4);
        if (is_data && result == Z_OK) {
            zlib.next_in = (uint8_t *)(uintptr_t)(at + 8);
            zlib.avail_in = (uInt)length;
            result = inflate(&zlib, Z_NO_FLUSH);
            usual &= result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR;
            if (result == Z_BUF_ERROR) result = Z_OK;
        }
        at += length + 12;
    }
    inflateEnd(&zlib);
    return usual && ended && result == Z_STREAM_END && zlib.avail_out == 0;
}

uint8_t *cornu__png_decode(const uint8_t *file, size_t size, int64_t height, int64_t width,
                           int *channels)
{
    static const uint8_t start[16] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n',
                                       0, 0, 0, HEADER, 'I', 'H', 'D', 'R' };
    enum { AFTER_HEADER = sizeof start + HEADER + 4 };
    if (size < AFTER_HEADER || memcmp(file, start, sizeof start)) return NULL;
    *channels = channels_of(file + sizeof start, height, width);
    const size_t count = (size_t)width * (size_t)*channels;
    const size_t all = (count + 1) * (size_t)height;
    if (!*channels || all > MOST_BYTES) return NULL;
    uint8_t *rows = malloc(all), *pixels = malloc(count * (size_t)height);
    uint8_t *zeros = calloc(count, 1);
    const bool decoded = rows && pixels && zeros &&
                         inflate_chunks(file + AFTER_HEADER, file + size, rows, all) &&
                         unfilter_all(rows, pixels, zeros, height, count, *channels);
    free(rows);
    free(zeros);
    if (decoded) return pixels;
    free(pixels);
    return NULL;
}

/* ---- The format ---- */

static bool is_png(const uint8_t *bytes, size_t size)
{
    return size >= 8 && !memcmp(bytes, "\x89PNG\r\n\x1a\n", 8);
}

enum { SIGNATURE = 8, AROUND = 12 };   /* bytes: around a chunk's data length, name, checksum */

/* The orientation, if a chunk before the image's data has it. */
static int orientation_of(const CornuImageBytes *file)
{
    for (size_t at = SIGNATURE; file->size - at >= AROUND;) {
        const uint8_t *chunk = file->bytes + at;
        const size_t   length = cornu__be32(chunk);
        if (length > file->size - at - AROUND || !memcmp(chunk + 4, "IDAT", 4)) break;
        if (!memcmp(chunk + 4, "eXIf", 4)) return cornu__exif_orientation(chunk + 8, length);
        at += AROUND + length;
    }
    return 1;
}

/* Checks the checksum of each chunk, which the decoder ignores. Source: section 5.3. */
static CornuStatus check_chunks(const CornuImageBytes *file)
{
    for (size_t at = SIGNATURE; file->size - at >= AROUND;) {
        const uint8_t *chunk = file->bytes + at;
        const size_t   length = cornu__be32(chunk), left = file->size - at - AROUND;
        const char    *name = (const char *)chunk + 4;
        if (length > left)
            return cornu__image_damaged(file, &cornu__png_format, at, "chunk %.4s has %zu bytes, "
                                        "the file ends after %zu", name, length, left);
        if (crc32(crc32(0, chunk + 4, 4), chunk + 8, (uInt)length) !=
            cornu__be32(chunk + 8 + length))
            return cornu__image_damaged(file, &cornu__png_format, at, "wrong checksum of chunk "
                                        "%.4s", name);
        if (!memcmp(name, "IEND", 4)) return CORNU_OK;
        at += AROUND + length;
    }
    return cornu__image_damaged(file, &cornu__png_format, file->size, "the file ends before chunk "
                                "IEND");
}

static CornuStatus read_header(const CornuImageBytes *file, CornuImageHeader *header)
{
    CORNU__TRY(cornu__stb_header(file, &cornu__png_format, header));
    header->orientation = orientation_of(file);
    return CORNU_OK;
}

static CornuStatus decode(const CornuImageBytes *file, const CornuImageHeader *header, bool full,
                          CornuArray *image)
{
    int channels;
    CORNU__TRY(check_chunks(file));
    uint8_t *pixels = cornu__png_decode(file->bytes, file->size, header->height, header->width,
                                        &channels);
    if (!pixels) return cornu__stb_decode(file, &cornu__png_format, header, 0, full, image);
    *image = cornu_array(pixels, CORNU_U8, header->height, header->width, channels);
    return CORNU_OK;
}

const CornuImageFormat cornu__png_format = { "PNG", is_png, read_header, decode };
