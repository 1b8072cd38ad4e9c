/*
 * Sources: LiteRT, tflite/kernels/internal/reference/{pad,strided_slice,transpose,concatenation,
 * resize_nearest_neighbor}.h.
 */
#include <math.h>
#include <string.h>

#include "kernels.h"

static int64_t count_of(int rank, const int64_t *extents)
{
    int64_t count = 1;
    for (int d = 0; d < rank; d++) count *= extents[d];
    return count;
}

/* The next index in row-major order. */
static void next(int rank, const int64_t *extents, int64_t *index)
{
    for (int d = rank - 1; d >= 0 && ++index[d] == extents[d]; d--) index[d] = 0;
}

void cornu__int8_pad(int rank, const int64_t *x_extents, const int64_t *before,
                     const int64_t *y_extents, int8_t value, const int8_t *x, int8_t *y)
{
    memset(y, value, (size_t)count_of(rank, y_extents));
    const int64_t inner = rank > 0 ? x_extents[rank - 1] : 1;
    const int64_t rows = rank > 0 ? count_of(rank - 1, x_extents) : 1;
    int64_t       index[CORNU_INT8_RANK] = { 0 };
    for (int64_t row = 0; row < rows; row++, x += inner) {
        int64_t at = 0;
        for (int d = 0; d < rank; d++) at = at * y_extents[d] + index[d] + before[d];
        memcpy(y + at, x, (size_t)inner);
        next(rank - 1, x_extents, index);
    }
}

void cornu__int8_strided_slice(int rank, const int64_t *x_extents, const int64_t *begin,
                               const int64_t *strides, const int64_t *y_extents, const int8_t *x,
                               int8_t *y)
{
    const int64_t count = count_of(rank, y_extents);
    int64_t       index[CORNU_INT8_RANK] = { 0 };
    for (int64_t i = 0; i < count; i++) {
        int64_t at = 0;
        for (int d = 0; d < rank; d++) at = at * x_extents[d] + begin[d] + index[d] * strides[d];
        y[i] = x[at];
        next(rank, y_extents, index);
    }
}

void cornu__int8_transpose(int rank, const int64_t *x_extents, const int32_t *permutation,
                           const int8_t *x, int8_t *y)
{
    int64_t extents[CORNU_INT8_RANK], steps[CORNU_INT8_RANK], index[CORNU_INT8_RANK] = { 0 };
    for (int d = 0; d < rank; d++) {
        const int from = permutation[d];
        extents[d] = x_extents[from];
        steps[d] = count_of(rank - from - 1, x_extents + from + 1);
    }
    const int64_t count = count_of(rank, extents);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = 0;
        for (int d = 0; d < rank; d++) at += index[d] * steps[d];
        y[i] = x[at];
        next(rank, extents, index);
    }
}

void cornu__int8_place(int64_t outer, int64_t inner, int64_t y_inner, int64_t at, const int8_t *x,
                       int8_t *y)
{
    for (int64_t i = 0; i < outer; i++)
        memcpy(y + i * y_inner + at, x + i * inner, (size_t)inner);
}

int64_t cornu__int8_nearest(int64_t i, int64_t in, int64_t out, bool align_corners,
                            bool half_pixel)
{
    const float scale = align_corners && out > 1 ? (float)(in - 1) / (float)(out - 1)
                                                 : (float)in / (float)out;
    const float at = ((float)i + (half_pixel ? 0.5f : 0.0f)) * scale;
    const int64_t from = (int64_t)(align_corners ? roundf(at) : floorf(at));
    return from < in - 1 ? from : in - 1;
}

void cornu__int8_resize_nearest(const CornuInt8Window *w, bool align_corners,
                                bool half_pixel_centers, const int8_t *x, int8_t *y)
{
    const int64_t channels = w->in_channels;
    for (int64_t b = 0; b < w->batch; b++, x += w->in_height * w->in_width * channels)
        for (int64_t i = 0; i < w->out_height; i++) {
            const int64_t row = cornu__int8_nearest(i, w->in_height, w->out_height, align_corners,
                                                    half_pixel_centers);
            for (int64_t j = 0; j < w->out_width; j++, y += channels) {
                const int64_t column = cornu__int8_nearest(j, w->in_width, w->out_width,
                                                           align_corners, half_pixel_centers);
                memcpy(y, x + (row * w->in_width + column) * channels, (size_t)channels);
            }
        }
}
