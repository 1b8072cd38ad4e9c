/* Times whole training steps, for the groups "steps" and "scaling". */
#ifndef CORNU_TESTS_BENCH_STEPS_H
#define CORNU_TESTS_BENCH_STEPS_H

#include "bench.h"
#include "subject.h"

/* Times the step on all devices, alternating, and adds a row for each to the group: time, samples
 * per second, arithmetic, allocations, and time and bytes by class of op. */
CornuStatus steps_measure(Bench *bench, const char *group, const SubjectConfig *config);

/* Prints the rows, each with the fraction of the limit for its threads and dtype. */
void steps_print(const Bench *bench, const char *group);

#endif
