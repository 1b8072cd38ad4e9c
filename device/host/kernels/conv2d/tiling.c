#include "tiling.h"

#include "../../../integer_internal.h"

CornuPlace cornu__tile_place(const CornuTiling *tiling, int64_t tile)
{
    const int64_t row = tile / tiling->tiles[1];
    return (CornuPlace){ row / tiling->tiles[0], row % tiling->tiles[0] * tiling->step,
                         tile % tiling->tiles[1] * tiling->step };
}

void cornu__tile_elements(const CornuTiling *tiling, const float *image, const CornuPlace *place,
                          int64_t group, const float *zeros, const float **elements)
{
    const int64_t C = tiling->groups.channels, size = tiling->size;
    const int64_t height = tiling->extent[0], width = tiling->extent[1];
    const int64_t top = place->i - tiling->low[0], left = place->j - tiling->low[1];
    const int64_t row = tiling->groups.groups * width;   /* positions between rows of a group */
    const float  *from = image + (top * row + group * width + left) * C;
    const bool    inside = top >= 0 && top + size <= height && left >= 0 && left + size <= width;
    for (int64_t i = 0; i < size; i++, from += row * C)
        for (int64_t j = 0; j < size; j++) {
            const bool exists = inside || (top + i >= 0 && top + i < height && left + j >= 0 &&
                                           left + j < width);
            *elements++ = exists ? from + j * C : zeros;
        }
}

int64_t cornu__tiling_image(const CornuTiling *tiling)
{
    return tiling->extent[0] * tiling->groups.groups * tiling->extent[1] * tiling->groups.channels;
}

int64_t cornu__point_floats(int64_t floats)
{
    const int64_t line = CORNU_LINE_BYTES / (int64_t)sizeof(float);
    return (ceil_divide(floats, line) | 1) * line;
}

static int64_t in_registers(int64_t filters)
{
    const int64_t lanes = cornu__products()->lanes;
    return ceil_multiple(filters, lanes);
}

double cornu__winograd_multiplies(const CornuWinograd *winograd, const CornuTiling *tiling,
                                  int64_t channels, int64_t filters)
{
    const double each = 2.5;   /* for an element of a transform's matrix and a row; measured */
    const double rows = winograd->in, C = (double)channels, F = (double)filters;
    const double tiles = (double)(tiling->tiles[0] * tiling->tiles[1]);
    return tiles * rows * rows * (C * (double)in_registers(filters) + each * rows * (C + F));
}

double cornu__direct_multiplies(const CornuWalk *walk)
{
    return (double)cornu__taps_met(&walk->axis[0]) * (double)cornu__taps_met(&walk->axis[1]) *
           (double)(walk->in_channels * in_registers(walk->out_channels));
}
