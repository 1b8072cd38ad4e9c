/*
 * Keyword arguments. A constructor is called through a macro that fills its config struct:
 *
 *     cornu_dense(10, .activation = CORNU_SOFTMAX)
 *     cornu_dense_from(&(CornuDenseConfig){ .unset = 0, 10, .activation = CORNU_SOFTMAX })
 *
 * Fields stand in Keras' order, so the first ones may be given by position. What is left out is
 * zero, and zero means Keras' default; where zero itself is meaningful and differs from the
 * default, the field says so and takes CORNU_ZERO. A flag that Keras sets to true is named by
 * its opposite. Lists end at their first zero.
 *
 * Where a config has a field `written`, the macro also hands over the text of the call, so that a
 * zero that stands there is told from what is left out: cornu_adam(.learning_rate = rates[i]) has
 * the rate 0 where rates[i] is 0. These are the numbers of optimizers and, of fit, .epochs and
 * .verbose. Behind a macro of the program's own, and in the _from functions, zero is the default.
 */
#ifndef CORNU_NN_KEYWORDS_H
#define CORNU_NN_KEYWORDS_H

#include <stdint.h>

/* Zero, where a field's 0 means its default. Exact as a double too. */
#define CORNU_ZERO INT64_MIN

#endif
