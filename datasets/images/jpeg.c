/* JPEG files, decoded by stb_image. Sources: ITU-T T.81, annex B, for markers; ITU-T T.872, section
 * 6.5.3, for Adobe's; JEITA CP-3451C (Exif 2.3), section 4.5.4, for the application segment. */
#include <stdlib.h>
#include <string.h>

#include "../../device/status_internal.h"
#include "stb_internal.h"

enum { IMAGE = 0xD8, END = 0xD9, TABLES = 0xC4, FRAME = 0xC0, LAST_FRAME = 0xC2, SCAN = 0xDA,
       EXIF = 0xE1, ADOBE = 0xEE };
enum { CMYK = 0, YCCK = 2 };   /* Adobe's transforms of four components */

/* What is between the markers. */
typedef struct {
    int64_t  scans;
    int      components, orientation;
    uint8_t *transform;    /* in Adobe's marker; NULL without one */
} Segments;

/* The next marker at `at` or after it, past bytes FF that fill up and bytes FF in coded data, which
 * are followed by 0 or a restart marker. NULL after the last one. */
static uint8_t *next_marker(uint8_t *at, const uint8_t *end)
{
    while (at < end && (at = memchr(at, 0xFF, (size_t)(end - at)))) {
        while (at < end && *at == 0xFF) at++;
        if (at < end && *at != 0 && (*at < 0xD0 || *at > 0xD7)) return at;
    }
    return NULL;
}

static const char too_many[] = "a Huffman table has more than 256 codes";

/* What is wrong with a segment of Huffman tables, NULL if nothing is: of more than 256 codes the
 * decoder, up to 2.27, writes out of bounds, and where the last table is cut off it reads on after
 * the segment. */
static const char *damage_of_tables(const uint8_t *at, const uint8_t *end)
{
    enum { LENGTHS = 16 };
    while (at < end) {
        int codes = 0;
        if (end - at <= LENGTHS) return "a Huffman table is cut off";
        for (int i = 1; i <= LENGTHS; i++) codes += at[i];
        if (codes > 256) return too_many;
        if (end - at < 1 + LENGTHS + codes) return "a Huffman table is cut off";
        at += 1 + LENGTHS + codes;
    }
    return NULL;
}

static bool is_jpeg(const uint8_t *bytes, size_t size)
{
    size_t filling = 0;
    while (filling < size && bytes[filling] == 0xFF) filling++;
    return filling > 0 && filling < size && bytes[filling] == IMAGE;
}

/* Visits the markers up to the frame's, or all. */
static CornuStatus read_segments(const CornuImageBytes *file, bool all, Segments *found)
{
    enum { COMPONENTS = 7, TRANSFORM = 13, ADOBE_LENGTH = 14 };   /* from the length on */
    uint8_t *const first = file->bytes, *const end = first + file->size;
    *found = (Segments){ .orientation = 1 };
    for (uint8_t *at = first; (at = next_marker(at, end)) && *at != END;) {
        const uint8_t marker = *at++;
        if (marker == IMAGE) continue;
        const size_t  left = (size_t)(end - at), length = left < 2 ? left : cornu__be16(at);
        if (length < 2)
            return cornu__image_damaged(file, &cornu__jpeg_format, (size_t)(at - first), "marker "
                                        "%02X without a segment", marker);
        const uint8_t *stop = at + (length < left ? length : left);
        const char    *damage = marker == TABLES ? damage_of_tables(at + 2, stop) : NULL;
        if (length > left && (all || marker == TABLES) && damage != too_many)
            return cornu__image_damaged(file, &cornu__jpeg_format, file->size, "the file ends in "
                                        "the segment of marker %02X", marker);
        if (damage)
            return cornu__image_damaged(file, &cornu__jpeg_format, (size_t)(at - first), "%s",
                                        damage);
        if (marker >= FRAME && marker <= LAST_FRAME && left > COMPONENTS) {
            found->components = at[COMPONENTS];
            if (!all) return CORNU_OK;
        }
        if (marker == ADOBE && length >= ADOBE_LENGTH && left >= ADOBE_LENGTH &&
            !memcmp(at + 2, "Adobe", 5))
            found->transform = at + TRANSFORM;
        if (marker == EXIF && stop - at > 8 && !memcmp(at + 2, "Exif\0", 6))
            found->orientation = cornu__exif_orientation(at + 8, (size_t)(stop - at) - 8);
        found->scans += marker == SCAN;
        at += stop - at;
        if (marker == SCAN && !next_marker(at, end))
            return cornu__image_damaged(file, &cornu__jpeg_format, file->size, "the file ends in "
                                        "scan %lld, before the marker of its end",
                                        (long long)found->scans);
    }
    return CORNU_OK;
}

static CornuStatus read_header(const CornuImageBytes *file, CornuImageHeader *header)
{
    Segments found;
    CORNU__TRY(read_segments(file, false, &found));
    header->orientation = found.orientation;
    CORNU__TRY(cornu__stb_header(file, &cornu__jpeg_format, header));
    header->channels = header->channels == 1 ? 1 : 3;
    return CORNU_OK;
}

/*
 * Marks how the four components of a JPEG are stored, where the file does not: without Adobe's
 * marker as cyan, magenta, yellow and black, with one that names no such transform as YCCK, as
 * libjpeg takes them, so that the decoder does not take them for YCbCr. Full ink is 0, as Adobe
 * writes it: so do Pillow and browsers read unmarked files, while TensorFlow takes 0 for no ink.
 */
static void mark_colours(CornuImageBytes *file, const Segments *found)
{
    /* The marker with length, name, version, flags and transform. */
    static const uint8_t adobe[CORNU_IMAGE_BEFORE] = { 0xFF, ADOBE, 0, 14, 'A', 'd', 'o', 'b', 'e',
                                                       0, 100, 0, 0, 0, 0, CMYK };
    enum { BEGIN = 2 };
    if (found->components != 4) return;
    if (found->transform) {
        if (*found->transform != CMYK) *found->transform = YCCK;
        return;
    }
    if (file->bytes[1] != IMAGE) return;
    memmove(file->bytes - sizeof adobe, file->bytes, BEGIN);
    memcpy(file->bytes - sizeof adobe + BEGIN, adobe, sizeof adobe);
    file->bytes -= sizeof adobe;
    file->size += sizeof adobe;
}

/* Each scan of a progressive JPEG visits all pixels, and a scan may be a few bytes long;
 * photographs have about ten. */
enum { MOST_SCANNED = 16 * CORNU_IMAGE_PIXELS };

enum { COLOURS = 3, WITH_ALPHA = 4 };

/* Of pixels of four bytes the first three. */
static void drop_alpha(CornuArray *image)
{
    int64_t      *extent = image->type.shape.extent;
    const int64_t count = extent[0] * extent[1];
    uint8_t      *to = image->data;
    const uint8_t *from = image->data;
    for (int64_t i = 0; i < count; i++, from += WITH_ALPHA, to += COLOURS) {
        uint32_t pixel;                         /* of which the next one covers the last byte */
        memcpy(&pixel, from, sizeof pixel);
        memcpy(to, &pixel, sizeof pixel);
    }
    extent[2] = COLOURS;
}

/* Colours are converted to four channels, for which the decoder has vector instructions, as it has
 * not for three: a fifth less time in all. */
static CornuStatus decode(const CornuImageBytes *file, const CornuImageHeader *header, bool full,
                          CornuArray *image)
{
    const int       channels = header->channels == COLOURS ? WITH_ALPHA : 0;
    CornuImageBytes marked = *file;
    const int64_t   pixels = header->height * header->width;
    Segments        found;
    CORNU__TRY(read_segments(file, true, &found));
    if (found.scans * pixels > MOST_SCANNED)
        return cornu__fail(CORNU_ERR_FORMAT, "%s: has %lld scans of %lld x %lld pixels, expected "
                           "at most %lld", file->path, (long long)found.scans,
                           (long long)header->width, (long long)header->height,
                           (long long)(MOST_SCANNED / pixels));
    mark_colours(&marked, &found);
    CORNU__TRY(cornu__stb_decode(&marked, &cornu__jpeg_format, header, channels, full, image));
    if (channels == WITH_ALPHA) drop_alpha(image);
    return CORNU_OK;
}

const CornuImageFormat cornu__jpeg_format = { "JPEG", is_jpeg, read_header, decode };
