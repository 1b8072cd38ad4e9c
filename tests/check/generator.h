/*
 * Random programs of all ops. An op is recorded only if its results can be compared: they are
 * finite, in the range of their dtype, and their bounds are small beside them. So the domain of a
 * logarithm, labels within a table, well-conditioned quotients need no rules of their own.
 */
#ifndef CORNU_TESTS_CHECK_GENERATOR_H
#define CORNU_TESTS_CHECK_GENERATOR_H

#include "trial.h"

/* Uniform in [0, count), from a state that is advanced. */
int64_t pick(uint64_t *state, int64_t count);

/* The program of a seed, with its inputs; false if it has no op. */
bool generate(uint64_t seed, Trial *c);

/* How many shards that program has. */
int generated_shards(uint64_t seed);

/* Setting number `i` to try it in, by the seed; false past the last. */
bool generated_setting(uint64_t seed, const Trial *c, int i, Setting *setting);

#endif
