/* The part of a window that lies within the image, along one axis. */
#ifndef CORNU_DEVICE_EDGETPU_WINDOW_H
#define CORNU_DEVICE_EDGETPU_WINDOW_H

#include <stdint.h>

/* Taps [first, end) meet elements begin + tap * dilation of an axis of `extent` elements; begin
 * may be negative. */
typedef struct {
    int64_t begin, first, end;
} CornuTaps;

static inline CornuTaps cornu__taps(int64_t output, int64_t stride, int64_t pad, int64_t size,
                                    int64_t dilation, int64_t extent)
{
    const int64_t begin = output * stride - pad;
    const int64_t first = begin < 0 ? (-begin + dilation - 1) / dilation : 0;
    const int64_t fit = begin < extent ? (extent - begin + dilation - 1) / dilation : 0;
    const int64_t end = fit < size ? fit : size;
    return (CornuTaps){ begin, first < end ? first : end, end };
}

#endif
