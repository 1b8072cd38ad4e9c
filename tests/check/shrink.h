/* The smallest trial that still fails: fewest outputs and ops, short axes, plain numbers. */
#ifndef CORNU_TESTS_CHECK_SHRINK_H
#define CORNU_TESTS_CHECK_SHRINK_H

#include "trial.h"

/* Shrinks a trial that fails in this setting, for at most so many seconds. */
void shrink(Trial *c, const Setting *setting, double seconds);

/* The passes without each of which the trial does not fail (CORNU_PASSES=-NAME): "fuse, plan"; "none
 * alone" if there is none. */
void guilty_passes(const Trial *c, const Setting *setting, char *text, size_t size);

#endif
