#include "dicom_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/status_internal.h"
#include "../../device/text/print.h"

enum { PREAMBLE = 128, START = PREAMBLE + 4, MOST_DEPTH = 16 };
static const uint32_t ITEM = 0xFFFEE000, ITEM_END = 0xFFFEE00D, SEQUENCE_END = 0xFFFEE0DD,
                      PIXELS = 0x7FE00010;
static const uint32_t UNDEFINED = UINT32_MAX;   /* a length: up to the item that ends it */

/* The tags that decide the numbers of an image, by group and element, and the fields they fill. */
typedef enum { WHOLE, DECIMAL, TEXT } Kind;

static const struct {
    uint32_t tag;
    Kind     kind;
    size_t   place;
} tags[] = {
    { 0x00020010, TEXT,    offsetof(CornuDicom, syntax) },         /* TransferSyntaxUID */
    { 0x00280002, WHOLE,   offsetof(CornuDicom, samples) },        /* SamplesPerPixel */
    { 0x00280004, TEXT,    offsetof(CornuDicom, photometric) },    /* PhotometricInterpretation */
    { 0x00280006, WHOLE,   offsetof(CornuDicom, planar) },         /* PlanarConfiguration */
    { 0x00280008, DECIMAL, offsetof(CornuDicom, frames) },         /* NumberOfFrames */
    { 0x00280010, WHOLE,   offsetof(CornuDicom, rows) },           /* Rows */
    { 0x00280011, WHOLE,   offsetof(CornuDicom, columns) },        /* Columns */
    { 0x00280100, WHOLE,   offsetof(CornuDicom, allocated) },      /* BitsAllocated */
    { 0x00280101, WHOLE,   offsetof(CornuDicom, stored) },         /* BitsStored */
    { 0x00280102, WHOLE,   offsetof(CornuDicom, high_bit) },       /* HighBit */
    { 0x00280103, WHOLE,   offsetof(CornuDicom, is_signed) },      /* PixelRepresentation */
    { 0x00281050, DECIMAL, offsetof(CornuDicom, window_centre) },  /* WindowCenter */
    { 0x00281051, DECIMAL, offsetof(CornuDicom, window_width) },   /* WindowWidth */
    { 0x00281052, DECIMAL, offsetof(CornuDicom, intercept) },      /* RescaleIntercept */
    { 0x00281053, DECIMAL, offsetof(CornuDicom, slope) },          /* RescaleSlope */
};

typedef struct {
    uint32_t tag, length;
    size_t   value;      /* where it begins */
    bool     unknown;    /* of representation UN, whose items are implicit */
} Element;

bool cornu__is_dicom(const uint8_t *bytes, size_t size)
{
    return size >= START && !memcmp(bytes + PREAMBLE, "DICM", 4);
}

/* Whether a value representation has a length of four bytes, after two that are reserved. */
static bool is_long(const uint8_t *vr)
{
    static const char names[] = "OB OD OF OL OV OW SQ SV UC UN UR UT UV";
    const char        name[3] = { (char)vr[0], (char)vr[1], '\0' };
    return strstr(names, name) != NULL;
}

static CornuStatus ends(const CornuImageBytes *file, uint32_t tag)
{
    return cornu__image_damaged(file, &cornu__dicom_format, file->size, "the file ends in element "
                                "(%04X,%04X)", tag >> 16, tag & 0xFFFF);
}

/* Reads the tag and the length at *at, and moves to the value. */
static CornuStatus read_element(const CornuImageBytes *file, size_t *at, bool implicit,
                                Element *element)
{
    const uint8_t *bytes = file->bytes + *at;
    const size_t   left = file->size - *at;
    if (left < 8) return ends(file, 0);
    element->tag = cornu__le16(bytes) << 16 | cornu__le16(bytes + 2);
    const bool item = element->tag >> 16 == ITEM >> 16;
    const bool explicit_long = !implicit && !item && is_long(bytes + 4);
    if (explicit_long && left < 12) return ends(file, element->tag);
    element->length = implicit || item ? cornu__le32(bytes + 4)
                    : explicit_long ? cornu__le32(bytes + 8) : cornu__le16(bytes + 6);
    *at += explicit_long ? 12 : 8;
    element->value = *at;
    element->unknown = explicit_long && !memcmp(bytes + 4, "UN", 2);
    if (element->length != UNDEFINED && element->length > file->size - *at)
        return element->tag == PIXELS ? CORNU_OK : ends(file, element->tag);
    return CORNU_OK;
}

/* Moves past a value of undefined length: items, which may contain others. */
static CornuStatus skip_items(const CornuImageBytes *file, size_t *at, bool implicit, uint32_t tag)
{
    int depth = 1;
    while (depth > 0) {
        Element element;
        CORNU__TRY(read_element(file, at, implicit, &element));
        if (element.tag == ITEM_END || element.tag == SEQUENCE_END)
            depth--;
        else if (element.length == UNDEFINED)
            depth++;
        else if (element.length > file->size - *at)   /* pixels within an item */
            return ends(file, element.tag);
        else
            *at += element.length;
        if (depth > MOST_DEPTH)
            return cornu__image_damaged(file, &cornu__dicom_format, *at, "items of element (%04X,"
                                        "%04X) are nested more than %d deep", tag >> 16,
                                        tag & 0xFFFF, MOST_DEPTH);
    }
    return CORNU_OK;
}

/* A string without the blanks or the NUL at its end, up to the first of several values. */
static void copy_text(const CornuImageBytes *file, const Element *element,
                      char to[CORNU_DICOM_TEXT])
{
    size_t length = 0;
    while (length < element->length && length < CORNU_DICOM_TEXT - 1) {
        const char c = (char)file->bytes[element->value + length];
        if (c == '\\' || c == '\0') break;
        to[length++] = isprint((unsigned char)c) ? c : '?';
    }
    while (length > 0 && to[length - 1] == ' ') length--;
    to[length] = '\0';
}

static CornuStatus store(const CornuImageBytes *file, const Element *element, Kind kind, void *to)
{
    char text[CORNU_DICOM_TEXT], *end;
    if (kind == WHOLE && element->length >= 2) {
        *(int *)to = (int)cornu__le16(file->bytes + element->value);
        return CORNU_OK;
    }
    copy_text(file, element, text);
    if (kind == TEXT) {
        memcpy(to, text, sizeof text);
        return CORNU_OK;
    }
    const double number = cornu__parse_number(text, &end);
    if (kind == DECIMAL && !*text) return CORNU_OK;   /* as if it were absent */
    if (kind == WHOLE || end == text || *end || !(number > -1e15 && number < 1e15))
        return cornu__image_damaged(file, &cornu__dicom_format, element->value, "element (%04X,"
                                    "%04X) has %u bytes, \"%s\", expected a number",
                                    element->tag >> 16, element->tag & 0xFFFF, element->length,
                                    text);
    *(double *)to = number;
    return CORNU_OK;
}

/* Files whose elements are not explicit little-endian, after their group 2. */
static CornuStatus check_syntax(const CornuImageBytes *file, const CornuDicom *dicom,
                                bool *implicit)
{
    static const struct { const char *uid, *name; } known[] = {
        { "1.2.840.10008.1.2.1.99", "deflated" },
        { "1.2.840.10008.1.2.2", "big-endian" },
        { "1.2.840.10008.1.2.4.51", "JPEG of 12 bits" },
        { "1.2.840.10008.1.2.4.57", "lossless JPEG" },
        { "1.2.840.10008.1.2.4.70", "lossless JPEG" },
        { "1.2.840.10008.1.2.4.80", "JPEG-LS" },
        { "1.2.840.10008.1.2.4.81", "JPEG-LS" },
        { "1.2.840.10008.1.2.4.90", "JPEG 2000" },
        { "1.2.840.10008.1.2.4.91", "JPEG 2000" },
        { "1.2.840.10008.1.2.5", "run lengths" },
    };
    const char *uid = dicom->syntax, *name = "unknown";
    *implicit = !strcmp(uid, CORNU_DICOM_IMPLICIT);
    if (*implicit || !strcmp(uid, CORNU_DICOM_EXPLICIT) || !strcmp(uid, CORNU_DICOM_JPEG))
        return CORNU_OK;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(uid, known[i].uid)) name = known[i].name;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: a DICOM image with transfer syntax \"%s\" (%s), "
                       "expected one that is little-endian and not compressed, or JPEG baseline",
                       file->path, uid, name);
}

CornuStatus cornu__dicom_read(const CornuImageBytes *file, CornuDicom *dicom)
{
    size_t at = START;
    bool   implicit = false, checked = false;
    *dicom = (CornuDicom){ .samples = 1, .frames = 1, .slope = 1.0, .high_bit = -1 };
    while (at < file->size) {
        Element element;
        if (!checked && file->size - at >= 2 && cornu__le16(file->bytes + at) != 2) {
            CORNU__TRY(check_syntax(file, dicom, &implicit));
            checked = true;
        }
        CORNU__TRY(read_element(file, &at, implicit, &element));
        if (element.tag == PIXELS) {
            dicom->pixels = at;
            dicom->length = element.length;
            dicom->in_items = element.length == UNDEFINED;
            return CORNU_OK;
        }
        for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
            if (tags[i].tag == element.tag && element.length != UNDEFINED)
                CORNU__TRY(store(file, &element, tags[i].kind, (char *)dicom + tags[i].place));
        if (element.length == UNDEFINED)
            CORNU__TRY(skip_items(file, &at, implicit || element.unknown, element.tag));
        else
            at += element.length;
    }
    return cornu__image_damaged(file, &cornu__dicom_format, file->size, "the file has no pixels, "
                                "element (7FE0,0010)");
}

CornuStatus cornu__dicom_fragments(const CornuImageBytes *file, const CornuDicom *dicom,
                                   uint8_t *to, size_t *size)
{
    size_t  at = dicom->pixels, limit = SIZE_MAX, first = 0;
    bool    table = true;   /* the first item has the places of the frames after it */
    Element item;
    for (*size = 0;; at += item.length) {
        const size_t begin = at;
        CORNU__TRY(read_element(file, &at, true, &item));
        if (item.tag == SEQUENCE_END) break;
        if (item.tag != ITEM || item.length == UNDEFINED)
            return cornu__image_damaged(file, &cornu__dicom_format, begin, "element (%04X,%04X), "
                                        "expected an item of pixels", item.tag >> 16,
                                        item.tag & 0xFFFF);
        if (table) {
            table = false;
            if (item.length >= 8) limit = cornu__le32(file->bytes + at + 4);
            first = at + item.length;
            continue;
        }
        if (begin - first >= limit || (limit == SIZE_MAX && dicom->frames > 1 && *size)) break;
        memcpy(to + *size, file->bytes + at, item.length);
        *size += item.length;
    }
    if (*size) return CORNU_OK;
    return cornu__image_damaged(file, &cornu__dicom_format, dicom->pixels, "there are no pixels");
}
