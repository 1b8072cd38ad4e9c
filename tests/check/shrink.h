/* The smallest trial that still fails: fewest outputs and ops, short axes, plain numbers. */
#ifndef CORNU_TESTS_CHECK_SHRINK_H
#define CORNU_TESTS_CHECK_SHRINK_H

#include "trial.h"

/* Shrinks a trial that fails in this setting, for at most so many seconds. */
void shrink(Trial *c, const Setting *setting, double seconds);

#endif
