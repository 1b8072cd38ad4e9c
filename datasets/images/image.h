/* Image files as host arrays. */
#ifndef CORNU_DATASETS_IMAGE_H
#define CORNU_DATASETS_IMAGE_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Limits on the number of pixels of an image and on its extents, as a small file may decode to a
 * huge image. A single allocation of the decoder is limited to 512 MiB and by the limit of
 * memory.h. A JPEG of the maximum size has at most 16 scans, a smaller one proportionally more. */
enum { CORNU_IMAGE_PIXELS = 1 << 26, CORNU_IMAGE_EXTENT = 16384 };

/*
 * Reads a PNG or JPEG file into u8 (H, W, C): C = 1 is grey, 3 is red, green, blue; 0 selects the
 * one that the file has. Transparent images are blended with white; 16 bits are reduced to 8. A
 * JPEG of four components is read as Adobe's CMYK or YCCK, the former where no marker says which.
 * The data are freed with free(). CORNU_ERR_FILE if the file cannot be opened,
 * CORNU_ERR_FORMAT if it is not such an image, is damaged, or exceeds the limits above,
 * CORNU_ERR_MEMORY beyond the limit of memory.h.
 */
CornuStatus cornu_image_load(const char *path, int channels, CornuArray *image);

/* The same from the `size` bytes of such a file, which `name` stands for in messages. */
CornuStatus cornu_image_decode(const char *name, const void *bytes, size_t size, int channels,
                               CornuArray *image);

/* The size of an image, from the file's header. Errors as above, except that damage after the
 * header is not noticed. */
CornuStatus cornu_image_size(const char *path, int64_t *height, int64_t *width);

/* Linear between pixels, or the nearest pixel. */
typedef enum { CORNU_IMAGE_BILINEAR, CORNU_IMAGE_NEAREST } CornuImageInterpolation;

/*
 * Resizes u8 (H, W, C) to u8 (height, width, C), the type of `to`, and writes its data. Pixels are
 * sampled at their centres, without antialiasing. crop_to_aspect_ratio crops to the largest centred
 * part with the aspect ratio of `to` first. CORNU_ERR_SHAPE for other arrays. Sources:
 * keras.ops.image.resize with antialias = False, whose floats are rounded here;
 * keras.preprocessing.image.smart_resize for the crop.
 */
CornuStatus cornu_image_resize(CornuArray image, CornuImageInterpolation interpolation,
                               bool crop_to_aspect_ratio, CornuArray to);

#ifdef __cplusplus
}
#endif
#endif
