/* The first frame of GIF files. Sources: CompuServe, "Graphics Interchange Format, Version 89a",
 * sections 17 to 27, and its appendix F for the compression. */
#include <stdlib.h>
#include <string.h>

#include "../../device/status_internal.h"
#include "format_internal.h"

enum { MOST_COLOURS = 256, EXTENSION = 0x21, FRAME = 0x2C, CONTROL = 0xF9, END = 0x3B };

typedef struct {
    int64_t  left, top, width, height;   /* the place of the frame on the canvas */
    bool     interlaced;
    uint8_t  colour[MOST_COLOURS][3];
    int      colours, transparent;       /* of these the transparent one, or -1 */
} Frame;

static bool is_gif(const uint8_t *bytes, size_t size)
{
    return size >= 6 && !memcmp(bytes, "GIF8", 4) && (bytes[4] == '7' || bytes[4] == '9') &&
           bytes[5] == 'a';
}

static CornuStatus ends(const CornuImageBytes *file, const char *what)
{
    return cornu__image_damaged(file, &cornu__gif_format, file->size, "the file ends in %s", what);
}

/* A palette, if the flags say that there is one. */
static CornuStatus read_palette(const CornuImageBytes *file, size_t *at, uint8_t flags,
                                Frame *frame)
{
    if (!(flags & 0x80)) return CORNU_OK;
    frame->colours = 2 << (flags & 7);
    const size_t bytes = 3 * (size_t)frame->colours;
    if (*at + bytes > file->size) return ends(file, "a palette");
    memcpy(frame->colour, file->bytes + *at, bytes);
    *at += bytes;
    return CORNU_OK;
}

/* An extension: a label, then blocks, each after its length, up to an empty one. */
static CornuStatus read_extension(const CornuImageBytes *file, size_t *at, Frame *frame)
{
    const uint8_t *block = file->bytes + *at;
    if (file->size - *at >= 7 && block[1] == CONTROL && block[2] >= 4)
        frame->transparent = block[3] & 1 ? block[6] : -1;
    *at += 2;
    while (*at < file->size && file->bytes[*at]) *at += 1 + (size_t)file->bytes[*at];
    if (*at >= file->size) return ends(file, "an extension");
    ++*at;
    return CORNU_OK;
}

static bool is_grey(const Frame *frame)
{
    for (int i = 0; i < frame->colours; i++) {
        const uint8_t *colour = frame->colour[i];
        if (colour[0] != colour[1] || colour[1] != colour[2]) return false;
    }
    return true;
}

/* Up to the data of the first frame. */
static CornuStatus read_frame(const CornuImageBytes *file, CornuImageHeader *header, Frame *frame)
{
    enum { SCREEN = 13, DESCRIPTOR = 10 };
    const uint8_t *bytes = file->bytes;
    size_t         at = SCREEN;
    *frame = (Frame){ .transparent = -1 };
    if (file->size < SCREEN) return ends(file, "its header");
    header->width = cornu__le16(bytes + 6);
    header->height = cornu__le16(bytes + 8);
    CORNU__TRY(read_palette(file, &at, bytes[10], frame));
    while (at < file->size && bytes[at] == EXTENSION)
        CORNU__TRY(read_extension(file, &at, frame));
    if (file->size < at + DESCRIPTOR) return ends(file, "its header, before a frame");
    if (bytes[at] != FRAME)
        return cornu__image_damaged(file, &cornu__gif_format, at, bytes[at] == END
                                    ? "the end, of code %02X, before a frame"
                                    : "a block of unknown code %02X", bytes[at]);
    frame->left = cornu__le16(bytes + at + 1), frame->top = cornu__le16(bytes + at + 3);
    frame->width = cornu__le16(bytes + at + 5), frame->height = cornu__le16(bytes + at + 7);
    frame->interlaced = bytes[at + 9] & 0x40;
    if (!frame->width || !frame->height || frame->left + frame->width > header->width ||
        frame->top + frame->height > header->height)
        return cornu__image_damaged(file, &cornu__gif_format, at, "a frame of %lld x %lld pixels "
                                    "at (%lld, %lld), on a canvas of %lld x %lld",
                                    (long long)frame->width, (long long)frame->height,
                                    (long long)frame->left, (long long)frame->top,
                                    (long long)header->width, (long long)header->height);
    header->data = at + DESCRIPTOR;
    CORNU__TRY(read_palette(file, &header->data, bytes[at + 9], frame));
    if (!frame->colours)
        return cornu__image_damaged(file, &cornu__gif_format, at, "a frame without a palette");
    const bool whole = frame->width == header->width && frame->height == header->height;
    header->channels = (is_grey(frame) ? 1 : 3) + (!whole || frame->transparent >= 0);
    return CORNU_OK;
}

static CornuStatus read_header(const CornuImageBytes *file, CornuImageHeader *header)
{
    Frame frame;
    return read_frame(file, header, &frame);
}

/* ---- Compression ---- */

enum { MOST_BITS = 12, MOST_CODES = 1 << MOST_BITS };

/* Codes of a growing number of bits, in blocks that each follow their length. */
typedef struct {
    const CornuImageBytes *file;
    size_t                 at, block;    /* the next byte, and those left in its block */
    uint32_t               bits;
    int                    count;        /* of bits read and not used */
} Codes;

/* -1 at the end of the blocks or the file. */
static int next_code(Codes *codes, int bits)
{
    for (; codes->count < bits; codes->count += 8) {
        if (codes->at >= codes->file->size) return -1;
        if (!codes->block) {
            codes->block = codes->file->bytes[codes->at++];
            if (!codes->block || codes->at >= codes->file->size) return -1;
        }
        codes->bits |= (uint32_t)codes->file->bytes[codes->at++] << codes->count;
        codes->block--;
    }
    const int code = (int)(codes->bits & ((1u << bits) - 1));
    codes->bits >>= bits;
    codes->count -= bits;
    return code;
}

/* Decompresses `count` indices. Each code is a string: that of another code and one index more. */
static CornuStatus decompress(const CornuImageBytes *file, size_t at, uint8_t *to, size_t count)
{
    static const char *const cut = "the data end at pixel %zu of %zu";
    struct { uint16_t before; uint8_t last, first; uint16_t length; } string[MOST_CODES];
    if (at >= file->size) return ends(file, "its frame");
    const int first_bits = file->bytes[at];
    if (first_bits < 1 || first_bits > 8)
        return cornu__image_damaged(file, &cornu__gif_format, at, "codes of %d bits, expected 1 to "
                                    "8", first_bits);
    const int clear = 1 << first_bits, end = clear + 1;
    Codes     codes = { .file = file, .at = at + 1 };
    int       bits = first_bits + 1, known = end + 1, before = -1;
    for (int i = 0; i < clear; i++) {
        string[i].last = string[i].first = (uint8_t)i;
        string[i].length = 1;
    }
    for (size_t done = 0; done < count;) {
        const int code = next_code(&codes, bits);
        if (code < 0 || code == end)
            return cornu__image_damaged(file, &cornu__gif_format, codes.at, cut, done, count);
        if (code == clear) {
            bits = first_bits + 1, known = end + 1, before = -1;
            continue;
        }
        const bool fresh = code == known && before >= 0;   /* the string that it begins itself */
        if (code > known || (code == known && !fresh) || (before < 0 && code >= clear))
            return cornu__image_damaged(file, &cornu__gif_format, codes.at, "code %d at pixel %zu "
                                        "of %zu, expected less than %d", code, done, count, known);
        if (before >= 0 && known < MOST_CODES) {
            string[known].before = (uint16_t)before;
            string[known].first = string[before].first;
            string[known].last = string[fresh ? before : code].first;
            string[known].length = (uint16_t)(string[before].length + 1);
            if (++known == 1 << bits && bits < MOST_BITS) bits++;
        }
        const size_t length = string[code].length;
        for (int c = code, i = (int)length - 1; i >= 0; i--, c = string[c].before)
            if (done + (size_t)i < count) to[done + (size_t)i] = string[c].last;
        done += length;
        before = code;
    }
    return CORNU_OK;
}

/* The row of the frame that is stored as row i of an interlaced one: section 20 and appendix E. */
static int64_t interlaced_row(int64_t i, int64_t height)
{
    static const int64_t first[] = { 0, 4, 2, 1 }, step[] = { 8, 8, 4, 2 };
    for (int pass = 0; pass < 4; pass++) {
        const int64_t rows = (height - first[pass] + step[pass] - 1) / step[pass];
        if (i < rows) return first[pass] + i * step[pass];
        i -= rows > 0 ? rows : 0;
    }
    return height - 1;
}

static CornuStatus decode(const CornuImageBytes *file, const CornuImageHeader *header, bool full,
                          CornuArray *image)
{
    (void)full;
    Frame            frame;
    CornuImageHeader same = *header;
    CORNU__TRY(read_frame(file, &same, &frame));
    const int64_t W = header->width;
    const int     C = header->channels, colours = C < 3 ? 1 : 3;
    const size_t  count = (size_t)(frame.width * frame.height);
    const CornuImageHeader part = { .height = frame.height, .width = frame.width, .channels = 1 };
    uint8_t      *indices = cornu__image_allocate(file, &part, 1);
    uint8_t      *to = cornu__image_allocate(file, header, 1);
    CornuStatus   status = !to || !indices ? CORNU_ERR_MEMORY
                                           : decompress(file, header->data, indices, count);
    *image = cornu_array(to, CORNU_U8, header->height, W, C);
    if (!status) memset(to, 0, (size_t)header->height * (size_t)W * (size_t)C);
    for (int64_t i = 0; i < (int64_t)count && !status; i++) {
        const int64_t stored = i / frame.width;
        const int64_t row = frame.interlaced ? interlaced_row(stored, frame.height) : stored;
        const int     index = indices[i];
        uint8_t      *pixel = to + ((frame.top + row) * W + frame.left + i % frame.width) * C;
        if (index >= frame.colours && index != frame.transparent)
            status = cornu__image_damaged(file, &cornu__gif_format, header->data, "pixel %lld has "
                                          "colour %d of %d", (long long)i, index, frame.colours);
        memcpy(pixel, frame.colour[index], (size_t)colours);
        if (C > colours) pixel[colours] = index == frame.transparent ? 0 : 255;
    }
    free(indices);
    return status;
}

const CornuImageFormat cornu__gif_format = { "GIF", is_gif, read_header, decode };
