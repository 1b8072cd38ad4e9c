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
 */
#ifndef CORNU_NN_KEYWORDS_H
#define CORNU_NN_KEYWORDS_H

#include <stdint.h>

/* Zero, where a field's 0 means its default. Exact as a double too. */
#define CORNU_ZERO INT64_MIN

#endif
