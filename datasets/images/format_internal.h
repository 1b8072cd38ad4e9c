/* Formats of image files. Each is a CornuImageFormat, of which image.c has a table. */
#ifndef CORNU_DATASETS_FORMAT_INTERNAL_H
#define CORNU_DATASETS_FORMAT_INTERNAL_H

#include "image.h"

/* A file in memory, or its beginning. */
typedef struct {
    const char *path;       /* for messages */
    uint8_t    *bytes;      /* after CORNU_IMAGE_BEFORE others, which a decoder may write to */
    size_t      size;
} CornuImageBytes;

enum { CORNU_IMAGE_BEFORE = 16 };

/* The bytes of any single allocation in decoding. */
enum { CORNU_IMAGE_BYTES = 1 << 29 };

typedef struct {
    int64_t height, width;  /* as stored, before the image is turned */
    int     channels;       /* 1 grey, 2 grey and alpha, 3 red, green and blue, 4 these and alpha */
    int     bits;           /* 8, or 16 if samples have more */
    int     orientation;    /* EXIF's, 1 to 8 */
    size_t  data;           /* where a decoder goes on, for its own use */
} CornuImageHeader;

typedef struct {
    const char *name;
    bool      (*matches)(const uint8_t *bytes, size_t size);
    /* Reads what precedes the image's data; bits and orientation are 8 and 1 before. Fails on a
     * beginning that is too short, which is then tried with the whole file. */
    CornuStatus (*header)(const CornuImageBytes *file, CornuImageHeader *header);
    /* Makes (H, W, channels) of the whole file, freed with free(), of u8, or if `full` of u8 or
     * f32. The number of pixels is within the limits of image.h. On failure, too, the caller frees
     * the data. */
    CornuStatus (*decode)(const CornuImageBytes *file, const CornuImageHeader *header, bool full,
                          CornuArray *image);
} CornuImageFormat;

extern const CornuImageFormat cornu__bmp_format, cornu__dicom_format, cornu__gif_format,
    cornu__jpeg_format, cornu__png_format, cornu__pnm_format;

/* CORNU_ERR_FORMAT, "PATH: a damaged NAME image, byte AT: …". */
CornuStatus cornu__image_damaged(const CornuImageBytes *file, const CornuImageFormat *format,
                                 size_t at, const char *text, ...)
    __attribute__((format(printf, 4, 5)));

/* Memory for an image of `size` bytes a sample, not zeroed; NULL with CORNU_ERR_MEMORY. */
void *cornu__image_allocate(const CornuImageBytes *file, const CornuImageHeader *header,
                            size_t size);

/* The orientation of an EXIF block, which begins with TIFF's header: 1 to 8, 1 if it has none.
 * Source: JEITA CP-3451C (Exif 2.3), sections 4.5 and 4.6.4. */
int cornu__exif_orientation(const uint8_t *tiff, size_t size);

/* Numbers in a file, little-endian and big-endian. */
static inline uint32_t cornu__le16(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8; }
static inline uint32_t cornu__le32(const uint8_t *at)
{
    return cornu__le16(at) | cornu__le16(at + 2) << 16;
}
static inline uint32_t cornu__be16(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }
static inline uint32_t cornu__be32(const uint8_t *at)
{
    return cornu__be16(at) << 16 | cornu__be16(at + 2);
}

#endif
