/*
 * What a model reads in the test digits, drawn in the terminal: those it gets wrong first.
 */
#ifndef CORNU_EXAMPLES_DIGITS_H
#define CORNU_EXAMPLES_DIGITS_H

#include <cornu/cornu.h>

/* Of predictions f32 (N, 10) of all test digits, prints how many are wrong, and draws a dozen with
 * what is read and what is true below: greys on a terminal with colours, letters elsewhere. */
void digits_show(CornuArray predictions, const CornuTrainTest *mnist);

#endif
