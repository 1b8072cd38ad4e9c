/* Preparing a drawn or photographed digit for a model trained on MNIST. */
#ifndef CORNU_DATASETS_DIGIT_H
#define CORNU_DATASETS_DIGIT_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CORNU_DIGIT_SIZE = 28 };

/*
 * Converts a picture of one digit, u8 (H, W) or (H, W, 1), to 28x28, white on black, the way the
 * images of MNIST were made: a dark digit on light paper, as seen from the border, is inverted; the
 * paper becomes 0 and the strongest ink 255; the bounding box of the ink is scaled to fit 20x20,
 * keeping its aspect ratio; and its centre of mass is moved to the centre.
 * A 28x28 image is assumed to be in this form and only inverted if necessary.
 * CORNU_ERR_SHAPE for other types, CORNU_ERR_VALUE for a picture without ink.
 * Source: LeCun, Cortes, Burges, "The MNIST database of handwritten digits".
 */
CornuStatus cornu_digit_prepare(CornuArray image,
                                uint8_t out[CORNU_DIGIT_SIZE * CORNU_DIGIT_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
