/* Running one step of a plan. */
#ifndef CORNU_DEVICE_HOST_STEP_H
#define CORNU_DEVICE_HOST_STEP_H

#include "../compile/plan.h"

/* Runs the step on a shard whose operands are at `addresses`, those of plan->operands; `scratch` has
 * plan->scratch_bytes. The message of a failure names the op. */
CornuStatus cornu__plan_run_step(const CornuPlan *plan, const CornuPlanStep *step,
                            void *const *addresses, int shard, char *scratch);

#endif
