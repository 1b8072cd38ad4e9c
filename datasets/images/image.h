/*
 * Image files as host arrays: PNG, JPEG, BMP, GIF (its first frame), PBM, PGM and PPM, and DICOM,
 * recognized by their first bytes.
 *
 * A dtype holds the image's own numbers or a picture of them:
 *
 *     u8    0 to 255: of 16 bits the upper 8; of a DICOM file what its window shows
 *     f32   the numbers of the file: 0 to 255 of 8 bits, 0 to 65535 of 16 (which f32 holds exactly,
 *           and there is no u16), of a DICOM file what the rescale slope and intercept make of the
 *           samples, such as Hounsfield units
 *
 * Channels are 1 (grey), 3 (red, green, blue), 4 (these and alpha) or 0: 1 or 3, as the file has.
 * Grey becomes colour by repetition, colour grey by the luma of ITU-R BT.601. With 1 and 3 a
 * transparent image is blended with white; with 4 alpha is kept, and 255 (65535 of 16 bits) where
 * the file has none. Palettes are looked up; one of greys alone is grey in BMP and GIF.
 *
 * An image is turned as its EXIF orientation says, as viewers show it. Keras and TensorFlow leave
 * it as the camera stored it.
 */
#ifndef CORNU_DATASETS_IMAGE_H
#define CORNU_DATASETS_IMAGE_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Limits on the number of pixels of an image and on its extents, as a small file may decode to a
 * huge image. A file and a single allocation of the decoder are limited to 512 MiB and by the
 * limit of memory.h. A JPEG of the maximum size has at most 16 scans, a smaller one proportionally
 * more. */
enum { CORNU_IMAGE_PIXELS = 1 << 26, CORNU_IMAGE_EXTENT = 16384 };

/*
 * Reads a file into u8 (H, W, C). The data are freed with free(). CORNU_ERR_FILE if the file cannot
 * be opened; CORNU_ERR_FORMAT if it is no such image, exceeds the limits above, or is damaged, with
 * the byte; CORNU_ERR_UNSUPPORTED for a kind that is not read, such as DICOM with JPEG 2000;
 * CORNU_ERR_MEMORY beyond the limit of memory.h.
 *
 *   JPEG   baseline and progressive. Four components are read as Adobe's CMYK or YCCK, the former
 *          where no marker says which. A file that ends before its image does is damaged.
 *   BMP    1, 4, 8, 16, 24 and 32 bits, not compressed; alpha only where a mask says so
 *   GIF    87a and 89a; what the first frame leaves out of the canvas is transparent
 *   PNM    P1 to P6; samples are scaled from the file's maximum to 255, or 65535 above that
 *   DICOM  see dicom.c for the tags: little-endian, not compressed, or JPEG baseline; grey of up to
 *          16 bits, signed or not, or RGB; the first frame
 */
CornuStatus cornu_image_load(const char *path, int channels, CornuArray *image);

/* The same from the `size` bytes of such a file, which `name` stands for in messages. */
CornuStatus cornu_image_decode(const char *name, const void *bytes, size_t size, int channels,
                               CornuArray *image);

/* As cornu_image_load, into f32 (H, W, C), the numbers of the file. */
CornuStatus cornu_image_load_f32(const char *path, int channels, CornuArray *image);

typedef struct {
    const char *format;          /* "PNG", static */
    int64_t     height, width;   /* as the image is read, turned */
    int         channels;        /* 1 grey, 2 and alpha, 3 red, green, blue, 4 and alpha */
    int         bits;            /* 8, or 16 if samples have more than 8 */
} CornuImageInfo;

/* What the header of a file says. Errors as above, except that damage after the header is not
 * noticed. */
CornuStatus cornu_image_info(const char *path, CornuImageInfo *info);

/* Likewise the size alone. */
CornuStatus cornu_image_size(const char *path, int64_t *height, int64_t *width);

/* Linear between pixels, or the nearest pixel. */
typedef enum { CORNU_IMAGE_BILINEAR, CORNU_IMAGE_NEAREST } CornuImageInterpolation;

/*
 * Resizes (H, W, C), u8 or f32, to (height, width, C), the type of `to`, and writes its data.
 * Pixels are sampled at their centres, without antialiasing. crop_to_aspect_ratio crops to the
 * largest centred part with the aspect ratio of `to` first. CORNU_ERR_SHAPE for other arrays.
 * Sources: keras.ops.image.resize with antialias = False, whose floats are rounded here for u8;
 * keras.preprocessing.image.smart_resize for the crop.
 */
CornuStatus cornu_image_resize(CornuArray image, CornuImageInterpolation interpolation,
                               bool crop_to_aspect_ratio, CornuArray to);

#ifdef __cplusplus
}
#endif
#endif
