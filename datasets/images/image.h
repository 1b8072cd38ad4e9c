/* Image files as host arrays. */
#ifndef CORNU_DATASETS_IMAGE_H
#define CORNU_DATASETS_IMAGE_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An image has at most this many pixels, and along an axis. An image file can be far smaller than
 * what it decodes to: no more than 512 MiB are taken for a part of that, nor more than memory.h
 * says. A JPEG of so many pixels has at most 16 scans, a smaller one as many times more. */
enum { CORNU_IMAGE_PIXELS = 1 << 26, CORNU_IMAGE_EXTENT = 16384 };

/*
 * Reads a PNG or JPEG file into u8 (H, W, C): C = 1 is grey, 3 is red, green, blue, 0 is what the
 * file has of the two. Transparent parts are shown on white; 16 bits become 8.
 * The data are freed with free(). CORNU_ERR_FILE if the file cannot be opened,
 * CORNU_ERR_FORMAT if it is no such image, is damaged, or is larger than said above,
 * CORNU_ERR_MEMORY beyond the limit of memory.h.
 */
CornuStatus cornu_image_load(const char *path, int channels, CornuArray *image);

/* The size of an image by the file's header alone. Errors as above, but for damage behind it. */
CornuStatus cornu_image_size(const char *path, int64_t *height, int64_t *width);

/* Between pixels linearly, or the nearest pixel. */
typedef enum { CORNU_IMAGE_BILINEAR, CORNU_IMAGE_NEAREST } CornuImageInterpolation;

/*
 * Resizes u8 (H, W, C) to u8 (height, width, C), the type of `to`, whose data are filled. Pixels
 * are sampled at their centres: an image that becomes much smaller is not smoothed first.
 * crop_to_aspect_ratio takes the largest part in the middle that has the shape of `to`.
 * CORNU_ERR_SHAPE for other arrays. Sources: keras.ops.image.resize with antialias = False, whose
 * floats are rounded here; keras.preprocessing.image.smart_resize for the part.
 */
CornuStatus cornu_image_resize(CornuArray image, CornuImageInterpolation interpolation,
                               bool crop_to_aspect_ratio, CornuArray to);

#ifdef __cplusplus
}
#endif
#endif
