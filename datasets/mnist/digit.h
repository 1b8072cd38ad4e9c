/* A drawn or photographed digit as MNIST would have it. */
#ifndef CORNU_DATASETS_DIGIT_H
#define CORNU_DATASETS_DIGIT_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CORNU_DIGIT_SIZE = 28 };

/*
 * Makes any picture of one digit, u8 (H, W) or (H, W, 1), into a 28x28 one, white on black, as
 * the images of MNIST were made: a dark digit on light paper is inverted (the border tells), the
 * paper becomes 0 and the strongest ink 255, the ink's box is scaled to fit 20x20 keeping its
 * proportions, and its centre of mass is put in the middle.
 * A 28x28 image is taken to be so made: it is inverted if need be and otherwise left as it is.
 * CORNU_ERR_SHAPE for another type, CORNU_ERR_VALUE for a picture without any ink.
 * Source: LeCun, Cortes, Burges, "The MNIST database of handwritten digits".
 */
CornuStatus cornu_digit_prepare(CornuArray image,
                                uint8_t out[CORNU_DIGIT_SIZE * CORNU_DIGIT_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
