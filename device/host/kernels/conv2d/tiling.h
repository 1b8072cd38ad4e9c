/*
 * Maps cut into tiles of neighbouring positions, as Winograd's minimal filtering reads them
 * (isa/winograd.h): so many from tile to tile along both axes, each with some of the next ones'.
 */
#ifndef CORNU_DEVICE_HOST_TILING_H
#define CORNU_DEVICE_HOST_TILING_H

#include "../../isa/winograd.h"
#include "convolution.h"

typedef struct {
    int64_t     extent[2];   /* rows and columns of the map, of each group    */
    CornuPhases groups;      /* of its rows                                   */
    int64_t     low[2];      /* rows and columns before it that tiles read    */
    int64_t     step, size;  /* positions from tile to tile; that a tile reads */
    int64_t     tiles[2];    /* along the height and the width                */
} CornuTiling;

/* Where a tile is: its image, and the first row and column of its step. */
typedef struct { int64_t b, i, j; } CornuPlace;

CornuPlace cornu__tile_place(const CornuTiling *tiling, int64_t tile);

static inline void cornu__next_place(const CornuTiling *tiling, CornuPlace *place)
{
    place->j += tiling->step;
    if (place->j < tiling->tiles[1] * tiling->step) return;
    place->j = 0;
    place->i += tiling->step;
    if (place->i < tiling->tiles[0] * tiling->step) return;
    place->i = 0;
    place->b++;
}

/* The elements, size x size, that a tile reads of a group of its image: addresses of the first
 * channel, that of `zeros` for those beside it. */
void cornu__tile_elements(const CornuTiling *tiling, const float *image, const CornuPlace *place,
                          int64_t group, const float *zeros, const float **elements);

/* Elements of an image. */
int64_t cornu__tiling_image(const CornuTiling *tiling);

/* Floats between two points of transformed tiles, at least so many: an odd number of lines, so that
 * transforms, which touch one line of each point, find them in sets of their own of a cache. */
int64_t cornu__point_floats(int64_t floats);

/* Multiply-adds of an image, filters in whole registers: those of all points, and those that the
 * transforms of its channels take as long as; and the ones of a convolution's taps. */
double cornu__winograd_multiplies(const CornuWinograd *winograd, const CornuTiling *tiling,
                                  int64_t channels, int64_t filters);
double cornu__direct_multiplies(const CornuWalk *walk);

#endif
