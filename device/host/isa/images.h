/*
 * Packing of bf16 for sums over positions on tile registers, of which one multiplies
 * CORNU_IMAGES images at once: they are innermost, as neighbours along the sum. An image that does
 * not exist, from[i] NULL, is zeros.
 */
#ifndef CORNU_DEVICE_HOST_IMAGES_H
#define CORNU_DEVICE_HOST_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "../machine/isa.h"

enum { CORNU_IMAGES = 32 };

/* `columns` elements at each of so many positions, `step` apart, as a panel of `width` columns, 16
 * or 32, whose others are zero. */
typedef struct {
    const uint16_t *const *from;
    const uint8_t *const  *index;   /* of windows: as `from` */
    int64_t                positions, step, columns, width;
} CornuImagePanel;

typedef struct {
    /* to[e][i] = from[i][e] of `count` elements */
    void (*turn)(const uint16_t *const *from, int64_t count, uint16_t *to);
    /* to[p][i / 2][n][i % 2] = from[i][p step + n] */
    void (*pair)(const CornuImagePanel *panel, uint16_t *to);
    /* The same of both rows under windows of two by two, each of which has its value where index
     * says, otherwise zeros; columns after the last window are zero. False if an index named no
     * element of its window. */
    bool (*pair_windows)(const CornuImagePanel *panel, uint16_t *upper, uint16_t *lower);
} CornuImagePacks;

CORNU__TILE_ISAS(CORNU__DECLARE, const CornuImagePacks, cornu__image_packs)

#endif
