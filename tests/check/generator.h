/*
 * Random programs of all ops. An op is recorded only if its results can be compared: they are
 * finite, hold in their dtype, and their bounds are small beside them. So operands in the domain of
 * a logarithm, labels within a table, well-conditioned quotients need no rules of their own.
 */
#ifndef CORNU_TESTS_CHECK_GENERATOR_H
#define CORNU_TESTS_CHECK_GENERATOR_H

#include "trial.h"

/* Uniform in [0, count), from a state that is advanced. */
int64_t pick(uint64_t *state, int64_t count);

/* The program that the seed stands for, with its numbers; false if it has no op. */
bool generate(uint64_t seed, Trial *c);

/* The setting number `i` to try it in, as the seed says; false past the last. */
bool generated_setting(uint64_t seed, const Trial *c, int i, Setting *setting);

#endif
