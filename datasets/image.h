/* Image files as host arrays. */
#ifndef CORNU_DATASETS_IMAGE_H
#define CORNU_DATASETS_IMAGE_H

#include "../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reads a PNG or JPEG file into u8 (H, W, C): C = 1 is grey, 3 is red, green, blue, 0 is what the
 * file has of the two. Transparent parts are shown on white; 16 bits become 8.
 * The data are freed with free(). CORNU_ERR_FILE if the file cannot be opened,
 * CORNU_ERR_FORMAT if it is no such image, is damaged, or exceeds 16384 along an axis.
 */
CornuStatus cornu_image_load(const char *path, int channels, CornuArray *image);

#ifdef __cplusplus
}
#endif
#endif
