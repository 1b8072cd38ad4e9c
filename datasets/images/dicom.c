/*
 * DICOM files, of which the tags in dicom_tags.c are read. Sources: NEMA PS3.10, chapter 7, for the
 * file; PS3.5, chapter 7 and section A.4, for elements and compressed pixels; PS3.3, sections
 * C.7.6.3 for samples, C.11.1 for the rescale and C.11.2.1.2.1 for the window.
 *
 * A sample is bits high_bit - stored + 1 to high_bit of the bits allocated. As f32 an image has
 * samples * slope + intercept. As u8 it has what the first window shows of that or, without one,
 * what is between the smallest and the largest value; MONOCHROME1, whose small values are bright,
 * is inverted then, and only then.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/status_internal.h"
#include "dicom_internal.h"
#include "stb_internal.h"

static CornuStatus unsupported(const CornuImageBytes *file, const CornuDicom *dicom)
{
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: a DICOM image with %d samples a pixel of %d "
                       "bits, %d of them stored, \"%s\"; expected 1 sample of 8 or 16 bits, "
                       "MONOCHROME1 or MONOCHROME2, or 3 of 8 bits, RGB, and with JPEG YBR_FULL or "
                       "YBR_FULL_422", file->path, dicom->samples, dicom->allocated, dicom->stored,
                       dicom->photometric);
}

static bool is_jpeg(const CornuDicom *dicom) { return !strcmp(dicom->syntax, CORNU_DICOM_JPEG); }

static CornuStatus read_dicom(const CornuImageBytes *file, CornuDicom *dicom)
{
    CORNU__TRY(cornu__dicom_read(file, dicom));
    if (dicom->high_bit < 0) dicom->high_bit = dicom->stored - 1;
    const bool jpeg = is_jpeg(dicom), grey = !strncmp(dicom->photometric, "MONOCHROME", 10);
    const bool colour = jpeg ? !strncmp(dicom->photometric, "YBR_FULL", 8)
                             : !strcmp(dicom->photometric, "RGB");
    const bool kind = (grey && dicom->samples == 1) || (colour && dicom->samples == 3);
    const bool bits = dicom->allocated == 8 || (dicom->allocated == 16 && grey && !jpeg);
    if (!kind || !bits || dicom->stored < 1 || dicom->stored > dicom->allocated ||
        dicom->high_bit < dicom->stored - 1 || dicom->high_bit >= dicom->allocated)
        return unsupported(file, dicom);
    if (jpeg == dicom->in_items) return CORNU_OK;
    return cornu__image_damaged(file, &cornu__dicom_format, dicom->pixels, "the pixels are %sin "
                                "items, unlike transfer syntax \"%s\"", dicom->in_items ? ""
                                : "not ", dicom->syntax);
}

static CornuStatus read_header(const CornuImageBytes *file, CornuImageHeader *header)
{
    CornuDicom dicom;
    CORNU__TRY(read_dicom(file, &dicom));
    header->height = dicom.rows;
    header->width = dicom.columns;
    header->channels = dicom.samples;
    header->bits = dicom.allocated;
    return CORNU_OK;
}

/* ---- Samples ---- */

/* Sample i, in the order of the file. */
static int32_t sample(const CornuDicom *dicom, const uint8_t *pixels, size_t i)
{
    const int32_t raw = dicom->allocated == 16 ? (int32_t)cornu__le16(pixels + 2 * i) : pixels[i];
    const int32_t value = raw >> (dicom->high_bit - dicom->stored + 1) &
                          ((1 << dicom->stored) - 1);
    const bool negative = dicom->is_signed && value >> (dicom->stored - 1);
    return negative ? value - (1 << dicom->stored) : value;
}

/* The numbers of the first frame, (H, W, samples). */
static CornuStatus read_samples(const CornuImageBytes *file, const CornuImageHeader *header,
                                const CornuDicom *dicom, float *to)
{
    const size_t   plane = (size_t)(header->height * header->width);
    const size_t   C = (size_t)dicom->samples, bytes = plane * C * (size_t)dicom->allocated / 8;
    const uint8_t *pixels = file->bytes + dicom->pixels;
    if (dicom->length < bytes || file->size - dicom->pixels < bytes)
        return cornu__image_damaged(file, &cornu__dicom_format, dicom->pixels, "the pixels have "
                                    "%zu bytes, of which the file has %zu, expected %zu",
                                    dicom->length, file->size - dicom->pixels, bytes);
    for (size_t i = 0; i < plane; i++)
        for (size_t c = 0; c < C; c++)
            to[i * C + c] = (float)(sample(dicom, pixels, dicom->planar ? c * plane + i
                                                                        : i * C + c) *
                                        dicom->slope + dicom->intercept);
    return CORNU_OK;
}

/* The same of a compressed frame. */
static CornuStatus read_jpeg(const CornuImageBytes *file, const CornuImageHeader *header,
                             const CornuDicom *dicom, float *to)
{
    CornuImageBytes  inner = { .path = file->path };
    CornuImageHeader said = { .bits = 8, .orientation = 1 };
    CornuArray       pixels = { .data = NULL };
    uint8_t         *memory = malloc(CORNU_IMAGE_BEFORE + file->size);
    if (!memory)
        return cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for %zu bytes", file->path, file->size);
    inner.bytes = memory + CORNU_IMAGE_BEFORE;
    CornuStatus status = cornu__dicom_fragments(file, dicom, inner.bytes, &inner.size);
    if (!status) status = cornu__jpeg_format.header(&inner, &said);
    if (!status && (said.height != header->height || said.width != header->width ||
                    said.channels != header->channels))
        status = cornu__image_damaged(file, &cornu__dicom_format, dicom->pixels, "a JPEG image of "
                                      "%lld x %lld pixels and %d channels, the header says %lld x "
                                      "%lld and %d", (long long)said.width, (long long)said.height,
                                      said.channels, (long long)header->width,
                                      (long long)header->height, header->channels);
    if (!status) status = cornu__jpeg_format.decode(&inner, &said, false, &pixels);
    const size_t count = (size_t)(header->height * header->width * header->channels);
    for (size_t i = 0; i < count && !status; i++)
        to[i] = (float)(((const uint8_t *)pixels.data)[i] * dicom->slope + dicom->intercept);
    free(pixels.data);
    free(memory);
    return status;
}

/* ---- What is shown ---- */

/* Bytes of grey numbers: of the window, or of all. */
static void show_grey(const CornuDicom *dicom, const float *from, size_t count, uint8_t *to)
{
    const bool inverted = !strcmp(dicom->photometric, "MONOCHROME1");
    double     low = dicom->window_centre - 0.5 - (dicom->window_width - 1.0) / 2.0;
    double     high = dicom->window_centre - 0.5 + (dicom->window_width - 1.0) / 2.0;
    if (dicom->window_width < 1.0) {
        low = high = from[0];
        for (size_t i = 0; i < count; i++) {
            if (from[i] < low) low = from[i];
            if (from[i] > high) high = from[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        const double x = from[i];
        const double shown = x <= low ? 0.0 : x > high ? 1.0 : (x - low) / (high - low);
        to[i] = (uint8_t)(255.0 * (inverted ? 1.0 - shown : shown) + 0.5);
    }
}

static CornuStatus decode(const CornuImageBytes *file, const CornuImageHeader *header, bool full,
                          CornuArray *image)
{
    CornuDicom dicom;
    CORNU__TRY(read_dicom(file, &dicom));
    const int64_t H = header->height, W = header->width;
    const size_t  count = (size_t)(H * W * header->channels);
    float        *values = cornu__image_allocate(file, header, sizeof *values);
    *image = cornu_array(values, CORNU_F32, H, W, header->channels);
    if (!values) return CORNU_ERR_MEMORY;
    CORNU__TRY(is_jpeg(&dicom) ? read_jpeg(file, header, &dicom, values)
                               : read_samples(file, header, &dicom, values));
    if (full) return CORNU_OK;
    uint8_t *shown = cornu__image_allocate(file, header, 1);
    if (!shown) return CORNU_ERR_MEMORY;
    if (header->channels == 1) show_grey(&dicom, values, count, shown);
    for (size_t i = 0; i < count && header->channels == 3; i++) shown[i] = (uint8_t)values[i];
    free(values);
    *image = cornu_array(shown, CORNU_U8, H, W, header->channels);
    return CORNU_OK;
}

const CornuImageFormat cornu__dicom_format = { "DICOM", cornu__is_dicom, read_header, decode };
