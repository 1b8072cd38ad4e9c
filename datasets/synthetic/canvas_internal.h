/*
 * A small grey canvas for the synthetic images: strokes and filled outlines, antialiased.
 *
 * It uses only sums, products, quotients and square roots, which are correctly rounded, so that
 * every machine gives the same bits.
 */
#ifndef CORNU_DATASETS_CANVAS_INTERNAL_H
#define CORNU_DATASETS_CANVAS_INTERNAL_H

#include <stdint.h>

#include "synthetic.h"

enum { CORNU__CANVAS = CORNU_SYNTHETIC_SIZE };

/* In pixels: (0, 0) is the upper left corner of the canvas, x goes right, y down. */
typedef struct {
    float x, y;
} CornuPoint;

typedef struct {
    float grey[CORNU__CANVAS * CORNU__CANVAS]; /* row by row; 0 is black, 1 white */
} CornuCanvas;

/* The random numbers of one image, in sequence. */
typedef struct {
    uint64_t seed;
    uint32_t generator, image, used, word[4];
} CornuChance;

CornuChance cornu__chance(uint64_t seed, uint32_t generator, int64_t image);
uint32_t    cornu__chance_bits(CornuChance *chance);
float       cornu__chance_between(CornuChance *chance, float low, float high);

/* Maps the unit square to pixels: p -> centre + matrix (p - 1/2). */
typedef struct {
    float      matrix[2][2];
    CornuPoint centre;
} CornuPose;

/* Scaled to width and height in pixels, then slanted (dx = slant * dy), then rotated by
 * 2 atan(turn). */
CornuPose  cornu__pose(CornuPoint centre, float width, float height, float slant, float turn);
CornuPoint cornu__place(const CornuPose *pose, CornuPoint p);

/* Draws lines through count points, of width 2 radius, with round ends, over the existing image. */
void cornu__canvas_lines(CornuCanvas *canvas, const CornuPoint *points, int count, float radius,
                         float grey);

/* Fills an outline of up to 32 points, which may intersect itself (even-odd rule). */
void cornu__canvas_fill(CornuCanvas *canvas, const CornuPoint *points, int count, float grey);

/* Rounds to u8, after adding noise in [-noise, noise] to pixels that are not black. */
void cornu__canvas_finish(const CornuCanvas *canvas, CornuChance *chance, float noise,
                          uint8_t *pixels);

#endif
