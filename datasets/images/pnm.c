/* PBM, PGM and PPM files, as text and binary. Source: Netpbm's manual, pages pbm, pgm, ppm. */
#include <string.h>

#include "../../device/status_internal.h"
#include "format_internal.h"

static bool is_blank(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool is_pnm(const uint8_t *bytes, size_t size)
{
    return size >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' &&
           (is_blank(bytes[2]) || bytes[2] == '#');
}

/* P1 to P3 are text. */
static bool is_text(const CornuImageBytes *file) { return file->bytes[1] <= '3'; }
static bool is_bitmap(const CornuImageBytes *file)
{
    return file->bytes[1] == '1' || file->bytes[1] == '4';
}

/* The next number, past blanks and comments; of a bitmap's text a digit is one. -1 without one. */
static int64_t next_number(const CornuImageBytes *file, size_t *at, bool one_digit)
{
    enum { LARGE = 1 << 24 };
    const uint8_t *bytes = file->bytes;
    bool           comment = false;
    for (; *at < file->size && (comment || is_blank(bytes[*at]) || bytes[*at] == '#'); ++*at)
        comment = bytes[*at] == '#' || (comment && bytes[*at] != '\n' && bytes[*at] != '\r');
    int64_t number = -1;
    for (; *at < file->size && bytes[*at] >= '0' && bytes[*at] <= '9'; ++*at) {
        number = (number < 0 ? 0 : number * 10) + (bytes[*at] - '0');
        if (number > LARGE) return -1;
        if (one_digit) return ++*at, number;
    }
    return number;
}

static CornuStatus read_numbers(const CornuImageBytes *file, CornuImageHeader *header, int64_t *max)
{
    int64_t   number[3] = { 0, 0, 1 };
    const int count = is_bitmap(file) ? 2 : 3;
    header->data = 2;
    for (int i = 0; i < count; i++) {
        static const char *const names[] = { "width", "height", "maximum" };
        number[i] = next_number(file, &header->data, false);
        if (number[i] < 1 || (i == 2 && number[i] > UINT16_MAX))
            return cornu__image_damaged(file, &cornu__pnm_format, header->data, "the %s is not a "
                                        "number from 1 to %d", names[i],
                                        i == 2 ? UINT16_MAX : CORNU_IMAGE_EXTENT);
    }
    header->width = number[0];
    header->height = number[1];
    *max = number[2];
    header->channels = file->bytes[1] == '3' || file->bytes[1] == '6' ? 3 : 1;
    header->bits = *max > UINT8_MAX ? 16 : 8;
    header->data++;   /* the blank after the last number */
    return CORNU_OK;
}

static CornuStatus read_header(const CornuImageBytes *file, CornuImageHeader *header)
{
    int64_t max;
    return read_numbers(file, header, &max);
}

/* Sample i of the image, -1 if the file has ended. Of text, *at is where it goes on. */
static int64_t sample(const CornuImageBytes *file, const CornuImageHeader *header, size_t i,
                      size_t *at)
{
    if (is_text(file)) return next_number(file, at, is_bitmap(file));
    const size_t width = (size_t)header->width, bytes = header->bits == 16 ? 2 : 1;
    const size_t place = is_bitmap(file) ? header->data + i / width * ((width + 7) / 8) +
                                               i % width / 8
                                         : header->data + i * bytes;
    *at = place;
    if (place + bytes > file->size) return -1;
    if (is_bitmap(file)) return file->bytes[place] >> (7 - i % width % 8) & 1;
    return bytes == 2 ? cornu__be16(file->bytes + place) : file->bytes[place];
}

static CornuStatus decode(const CornuImageBytes *file, const CornuImageHeader *header, bool full,
                          CornuArray *image)
{
    CornuImageHeader same = *header;
    int64_t          max;
    CORNU__TRY(read_numbers(file, &same, &max));
    full = full && header->bits == 16;
    void        *to = cornu__image_allocate(file, header, full ? sizeof(float) : 1);
    const size_t count = (size_t)(header->height * header->width * header->channels);
    const int64_t white = header->bits == 16 ? UINT16_MAX : UINT8_MAX;
    size_t        at = header->data;
    if (!to) return CORNU_ERR_MEMORY;
    *image = cornu_array(to, full ? CORNU_F32 : CORNU_U8, header->height, header->width,
                         header->channels);
    for (size_t i = 0; i < count; i++) {
        int64_t value = sample(file, header, i, &at);
        if (value < 0 || value > max)
            return cornu__image_damaged(file, &cornu__pnm_format, at, value >= 0
                                        ? "sample %zu of %zu is above the maximum"
                                        : at < file->size && is_text(file)
                                        ? "sample %zu of %zu is not a number"
                                        : "the file ends at sample %zu of %zu", i, count);
        if (is_bitmap(file)) value = 1 - value;   /* 1 is black */
        value = (value * white * 2 + max) / (2 * max);
        if (full) ((float *)to)[i] = (float)value;
        else ((uint8_t *)to)[i] = (uint8_t)(header->bits == 16 ? value >> 8 : value);
    }
    return CORNU_OK;
}

const CornuImageFormat cornu__pnm_format = { "PNM", is_pnm, read_header, decode };
