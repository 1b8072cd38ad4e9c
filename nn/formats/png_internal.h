/* PNG images. */
#ifndef CORNU_NN_PNG_INTERNAL_H
#define CORNU_NN_PNG_INTERNAL_H

#include <stdint.h>

#include "../../device/status_internal.h"

/* Encodes pixels (height, width, channels) and passes the bytes to `write`. 1 channel is grey, 2
 * are grey and alpha, 3 RGB, 4 RGBA. CORNU_ERR_MEMORY. */
typedef void CornuWriteBytes(void *context, void *bytes, int size);
CornuStatus cornu__png_write(int width, int height, int channels, const uint8_t *pixels,
                             CornuWriteBytes *write, void *context);

#endif
