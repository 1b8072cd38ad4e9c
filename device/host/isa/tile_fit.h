/* Storing the tiles of product.h, of every kind. */
#ifndef CORNU_DEVICE_HOST_ISA_TILE_FIT_H
#define CORNU_DEVICE_HOST_ISA_TILE_FIT_H

#include "product.h"
#include "lanes.h"

/* Stores sums that cannot be stored straight from registers: bf16, and rows that end within a
 * register. `from` has `width` columns, whole registers. */
static void tile_fit(const CornuTile *tile, const float *from, int width)
{
    for (int m = 0; m < tile->rows; m++, from += width) {
        if (tile->narrow) {
            uint16_t *y = (uint16_t *)tile->y + m * tile->y_stride;
            for (int n = 0; n < width; n += LANES)
                store_narrow(y + n, load(from + n), tile->columns - n);
        } else {
            float *y = (float *)tile->y + m * tile->y_stride;
            for (int n = 0; n < tile->columns; n++) y[n] = from[n];
        }
    }
}

#endif
