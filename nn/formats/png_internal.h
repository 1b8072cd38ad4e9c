/* Pictures in PNG. */
#ifndef CORNU_NN_PNG_INTERNAL_H
#define CORNU_NN_PNG_INTERNAL_H

#include <stdint.h>

#include "../../device/status_internal.h"

/* Gives `write` the bytes of a PNG of pixels (height, width, channels), 1 to 4 of grey, alpha,
 * red green blue, alpha. CORNU_ERR_MEMORY if there is no room. */
typedef void CornuWriteBytes(void *context, void *bytes, int size);
CornuStatus cornu__png_write(int width, int height, int channels, const uint8_t *pixels,
                             CornuWriteBytes *write, void *context);

#endif
