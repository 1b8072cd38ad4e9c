/*
 * Keyword arguments. A constructor is called through a macro that fills its config struct:
 *
 *     cornu_dense(10, .activation = CORNU_SOFTMAX)
 *     cornu_dense_from(&(CornuDenseConfig){ .unset = 0, 10, .activation = CORNU_SOFTMAX })
 *
 * Fields are in Keras' order, so the first ones may be given by position. Omitted fields are zero,
 * and zero means Keras' default; where zero itself is meaningful and differs from the default, the
 * field says so and takes CORNU_ZERO. A flag that Keras sets to true is named by its opposite.
 * Lists end at their first zero.
 *
 * Where a config has a field `written`, the macro also passes the source of the call, so that a
 * zero written there is told from an omitted field: cornu_adam(.learning_rate = rates[i]) has the
 * rate 0 where rates[i] is 0. This applies to the numbers of optimizers and, for fit, to .epochs
 * and .verbose. Inside a macro of the program, and in the _from functions, zero is the default.
 */
#ifndef CORNU_NN_KEYWORDS_H
#define CORNU_NN_KEYWORDS_H

#include <stdint.h>

/* Zero, where a field's 0 means its default. Exact as a double too. */
#define CORNU_ZERO INT64_MIN

#endif
