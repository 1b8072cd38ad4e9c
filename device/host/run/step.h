/* Running one step of a plan. */
#ifndef CORNU_DEVICE_HOST_STEP_H
#define CORNU_DEVICE_HOST_STEP_H

#include "../compile/plan/plan.h"

/* Runs the step on a shard with plan->operands at `addresses` and plan->scratch_bytes of scratch
 * memory. The message of a failure names the op. */
CornuStatus cornu__plan_run_step(const CornuPlan *plan, const CornuPlanStep *step,
                            void *const *addresses, int shard, char *scratch);

#endif
