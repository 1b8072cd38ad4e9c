/* Whole training steps, timed in turn: what the groups "steps" and "scaling" share. */
#ifndef CORNU_TESTS_BENCH_STEPS_H
#define CORNU_TESTS_BENCH_STEPS_H

#include "bench.h"
#include "subject.h"

/* Times the step on each device in turn and adds a row for each to the group: time, samples per
 * second, arithmetic, allocations, and time and bytes by class of op. */
CornuStatus steps_measure(Bench *bench, const char *group, const SubjectConfig *config);

/* The rows, with what part of the limit of their threads and dtype is reached. */
void steps_print(const Bench *bench, const char *group);

#endif
