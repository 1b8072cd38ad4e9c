/* BMP files that are not compressed. Source: Microsoft, "Bitmap Storage", with the structures
 * BITMAPCOREHEADER, BITMAPINFOHEADER, BITMAPV4HEADER and BITMAPV5HEADER. */
#include <stdlib.h>
#include <string.h>

#include "../../device/status_internal.h"
#include "format_internal.h"

enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40, MASKED_HEADER = 52, V3_HEADER = 56,
       MOST_COLOURS = 256 };
enum { PLAIN = 0, MASKS = 3, ALPHA_MASKS = 6 };

typedef struct {
    bool     upside_down;            /* the lowest row is the first one, as usual */
    int      depth;                  /* bits of a pixel */
    uint32_t mask[4];                /* of 16 and 32 bits: red, green, blue, alpha */
    uint8_t  colour[MOST_COLOURS][3];
    int      colours;
} Bitmap;

static bool is_bmp(const uint8_t *bytes, size_t size)
{
    return size >= 2 && bytes[0] == 'B' && bytes[1] == 'M';
}

static CornuStatus ends(const CornuImageBytes *file, const char *what)
{
    return cornu__image_damaged(file, &cornu__bmp_format, file->size, "the file ends in %s", what);
}

/* The colours of up to 8 bits: blue, green, red, and in newer files a byte without meaning. */
static CornuStatus read_palette(const CornuImageBytes *file, Bitmap *bitmap, size_t at, size_t used,
                                size_t each, bool *grey)
{
    const size_t most = (size_t)1 << bitmap->depth;
    bitmap->colours = (int)(used && used < most ? used : most);
    if (at + (size_t)bitmap->colours * each > file->size) return ends(file, "its palette");
    *grey = true;
    for (int i = 0; i < bitmap->colours; i++) {
        const uint8_t *from = file->bytes + at + (size_t)i * each;
        memcpy(bitmap->colour[i], (uint8_t[]){ from[2], from[1], from[0] }, 3);
        *grey &= from[0] == from[1] && from[1] == from[2];
    }
    return CORNU_OK;
}

/* The masks of 16 and 32 bits; those that are used without any. */
static CornuStatus read_masks(const CornuImageBytes *file, Bitmap *bitmap, uint32_t compression,
                              size_t size)
{
    static const uint32_t usual[2][4] = { { 0x7C00, 0x3E0, 0x1F, 0 },
                                          { 0xFF0000, 0xFF00, 0xFF, 0 } };
    enum { AT = FILE_HEADER + INFO_HEADER };
    memcpy(bitmap->mask, usual[bitmap->depth == 32], sizeof bitmap->mask);
    if (compression == PLAIN) return CORNU_OK;
    const bool alpha = size >= V3_HEADER || compression == ALPHA_MASKS;
    if (file->size < AT + 16) return ends(file, "its masks");
    for (int c = 0; c < 3 + alpha; c++) bitmap->mask[c] = cornu__le32(file->bytes + AT + 4 * c);
    for (int c = 0; c < 3; c++)
        if (!bitmap->mask[c])
            return cornu__image_damaged(file, &cornu__bmp_format, (size_t)(AT + 4 * c), "the mask "
                                        "of colour %d is 0", c);
    return CORNU_OK;
}

static CornuStatus read_bitmap(const CornuImageBytes *file, CornuImageHeader *header,
                               Bitmap *bitmap)
{
    const uint8_t *at = file->bytes + FILE_HEADER;
    if (file->size < FILE_HEADER + CORE_HEADER) return ends(file, "its header");
    const size_t size = cornu__le32(at);
    const bool   core = size == CORE_HEADER;
    if (!core && size < INFO_HEADER)
        return cornu__image_damaged(file, &cornu__bmp_format, FILE_HEADER, "a header of %zu bytes, "
                                    "expected %d, %d or more", size, CORE_HEADER, INFO_HEADER);
    if (!core && file->size < FILE_HEADER + INFO_HEADER) return ends(file, "its header");
    const int64_t  height = core ? (int64_t)cornu__le16(at + 6) : (int32_t)cornu__le32(at + 8);
    const uint32_t compression = core ? PLAIN : cornu__le32(at + 16);
    bitmap->depth = (int)cornu__le16(at + (core ? 10 : 14));
    bitmap->upside_down = height > 0;
    header->data = cornu__le32(file->bytes + 10);
    header->width = core ? (int64_t)cornu__le16(at + 4) : (int32_t)cornu__le32(at + 4);
    header->height = height < 0 ? -height : height;
    header->channels = 3;
    const bool deep = bitmap->depth == 16 || bitmap->depth == 32;
    if (!deep && bitmap->depth != 1 && bitmap->depth != 4 && bitmap->depth != 8 &&
        bitmap->depth != 24)
        return cornu__image_damaged(file, &cornu__bmp_format, FILE_HEADER + 14, "%d bits a pixel, "
                                    "expected 1, 4, 8, 16, 24 or 32", bitmap->depth);
    if (compression != PLAIN && !(deep && (compression == MASKS || compression == ALPHA_MASKS)))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: a BMP image with compression %u at byte %d, "
                           "expected one that is not compressed", file->path, compression,
                           FILE_HEADER + 16);
    bool grey = false;
    if (bitmap->depth <= 8)
        CORNU__TRY(read_palette(file, bitmap, FILE_HEADER + size, core ? 0 : cornu__le32(at + 32),
                                core ? 3 : 4, &grey));
    else if (deep)
        CORNU__TRY(read_masks(file, bitmap, compression, size));
    if (grey) header->channels = 1;
    if (deep && bitmap->mask[3]) header->channels = 4;
    return CORNU_OK;
}

static CornuStatus read_header(const CornuImageBytes *file, CornuImageHeader *header)
{
    Bitmap bitmap = { .depth = 0 };
    return read_bitmap(file, header, &bitmap);
}

/* A channel as 8 bits. */
static uint8_t masked(uint32_t pixel, uint32_t mask)
{
    const int      shift = __builtin_ctz(mask);
    const uint64_t value = (pixel & mask) >> shift, most = mask >> shift;
    return (uint8_t)((value * 255 * 2 + most) / (2 * most));
}

/* Pixel w of a row; false for a colour that is not in the palette. */
static bool read_pixel(const Bitmap *bitmap, const uint8_t *row, int64_t w, int channels,
                       uint8_t *to)
{
    const int depth = bitmap->depth;
    if (depth <= 8) {
        const int64_t bit = w * depth;
        const int     i = row[bit / 8] >> (8 - depth - bit % 8) & ((1 << depth) - 1);
        if (i >= bitmap->colours) return false;
        memcpy(to, bitmap->colour[i], (size_t)channels);
        return true;
    }
    const uint8_t *from = row + w * (depth / 8);
    if (depth == 24) {
        memcpy(to, (uint8_t[]){ from[2], from[1], from[0] }, 3);
        return true;
    }
    const uint32_t pixel = depth == 16 ? cornu__le16(from) : cornu__le32(from);
    for (int c = 0; c < channels; c++) to[c] = masked(pixel, bitmap->mask[c]);
    return true;
}

static CornuStatus decode(const CornuImageBytes *file, const CornuImageHeader *header, bool full,
                          CornuArray *image)
{
    (void)full;
    Bitmap           bitmap = { .depth = 0 };
    CornuImageHeader same = *header;
    CORNU__TRY(read_bitmap(file, &same, &bitmap));
    const int64_t H = header->height, W = header->width;
    const int     C = header->channels;
    const size_t  row_bytes = (size_t)((W * bitmap.depth + 31) / 32 * 4);
    const size_t  last = (size_t)((W * bitmap.depth + 7) / 8);   /* of a row that is not padded */
    const size_t  needed = header->data + row_bytes * (size_t)(H - 1) + last;
    if (needed > file->size)
        return cornu__image_damaged(file, &cornu__bmp_format, file->size, "the file ends in row "
                                    "%lld of %lld, expected %zu bytes",
                                    (long long)(file->size < header->data ? 0
                                        : (file->size - header->data) / row_bytes),
                                    (long long)H, needed);
    uint8_t *to = cornu__image_allocate(file, header, 1);
    *image = cornu_array(to, CORNU_U8, H, W, C);
    if (!to) return CORNU_ERR_MEMORY;
    for (int64_t h = 0; h < H; h++) {
        const int64_t  stored = bitmap.upside_down ? H - 1 - h : h;
        const uint8_t *row = file->bytes + header->data + (size_t)stored * row_bytes;
        for (int64_t w = 0; w < W; w++, to += C)
            if (!read_pixel(&bitmap, row, w, C, to))
                return cornu__image_damaged(file, &cornu__bmp_format, (size_t)(row - file->bytes),
                                            "pixel %lld of row %lld has a colour after the %d of "
                                            "the palette", (long long)w, (long long)h,
                                            bitmap.colours);
    }
    return CORNU_OK;
}

const CornuImageFormat cornu__bmp_format = { "BMP", is_bmp, read_header, decode };
