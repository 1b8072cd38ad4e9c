/*
 * Running a loop step: a scan within which shards meet, as in a recurrence whose units are dealt to
 * them. Its body is an executable of its own, for all own shards, that runs once for each step.
 */
#ifndef CORNU_DEVICE_HOST_LOOP_H
#define CORNU_DEVICE_HOST_LOOP_H

#include "executor_internal.h"

/* For a loop step of the plan, which must outlive it. NULL without memory. */
CornuLoop *cornu__loop_create(const CornuPlan *plan, const CornuPlanStep *step);
void       cornu__loop_free(CornuLoop *loop);

/* addresses: of plan->operands on the first own shard; those of the others follow. */
CornuStatus cornu__loop_run(CornuLoop *loop, void *const *addresses);

#endif
