/*
 * What a model reads in the test digits, drawn in the terminal: those it gets wrong first.
 */
#ifndef CORNU_EXAMPLES_DIGITS_H
#define CORNU_EXAMPLES_DIGITS_H

#include <cornu/cornu.h>
#include <cornu/datasets/mnist.h>

/* Predicts all test digits, prints how many are read wrongly, and draws a dozen with what is read
 * and what is true below: greys on a terminal with colours, letters elsewhere. */
CornuStatus digits_show(CornuModel *model, const CornuTrainTest *mnist);

#endif
