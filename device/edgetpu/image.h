/* Images as products read them: each element plus 128, of the width of the instruction set's loops,
 * with their padding; and the part of the work of one thread. */
#ifndef CORNU_DEVICE_EDGETPU_IMAGE_H
#define CORNU_DEVICE_EDGETPU_IMAGE_H

#include "isa/int8.h"
#include "kernels.h"

/* Extents with the padding, as far as windows reach. */
typedef struct {
    int64_t   height, width;
    ptrdiff_t pitch;   /* bytes of a row */
    size_t    bytes;
} CornuInt8Image;

CornuInt8Image cornu__int8_image(const CornuInt8Window *window, int width);

/* Rows [first, end) of the image with its padding, which is x's zero point. */
void cornu__int8_image_fill(const CornuInt8Conv *conv, const CornuInt8Loops *loops, int64_t first,
                            int64_t end, const int8_t *x, uint8_t *to);

/* Bytes that may be read past the last image, by the last group of a segment or by registers for a
 * block of channels. */
enum { CORNU_INT8_PAST = 2 * CORNU_INT8_BLOCK };

typedef struct {
    int64_t begin, end;
} CornuInt8Range;

static inline CornuInt8Range cornu__int8_share(int64_t count, CornuInt8Part part)
{
    return (CornuInt8Range){ count * part.index / part.count,
                             count * (part.index + 1) / part.count };
}

#endif
