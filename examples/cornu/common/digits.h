/*
 * Draws test digits and their predictions in the terminal, wrong ones first.
 */
#ifndef CORNU_EXAMPLES_DIGITS_H
#define CORNU_EXAMPLES_DIGITS_H

#include <cornu/cornu.h>

/* Prints how many predictions, f32 (N, 10) of all test digits, are wrong, and draws a dozen digits
 * with the prediction and the label below: in greys on a terminal with colours, else in letters. */
void digits_show(CornuArray predictions, const CornuTrainTest *mnist);

#endif
