/* What ranks compute, kept as hashes, beside what one process computes: the same bits. */
#ifndef CORNU_TESTS_RESULTS_H
#define CORNU_TESTS_RESULTS_H

#include <stddef.h>
#include <stdint.h>

#include "ranks.h"

/* In a rank: keeps a result under a name. A rank need not have all that one process has. */
void result(const char *name, const void *data, size_t bytes);

/*
 * Runs the body in one process, with processes NULL, and then, for each of the counts, up to 0, in
 * so many ranks: each of these must keep at least `least` results, all of them those that the one
 * process kept under their names. All processes are children, as a process with threads cannot be
 * forked.
 */
void results_agree(const char *transport, const int *counts, int64_t least, RankBody *body);

#endif
