/* Running a scan step: its body's steps, once for each slice. */
#ifndef CORNU_DEVICE_HOST_SCAN_H
#define CORNU_DEVICE_HOST_SCAN_H

#include "../compile/plan/plan.h"

/* Runs a step of the body: cornu__plan_run_step, passed in because it calls this for scans. */
typedef CornuStatus CornuStepRunner(const CornuPlan *plan, const CornuPlanStep *step,
                                    void *const *addresses, int shard, char *scratch);

/* Copies between slice t of `whole`, whose extent along the scan's axis is the steps, and a buffer
 * of its own. */
void cornu__scan_copy(const CornuScanPlan *scan, CornuType slice, char *whole, char *own, int64_t t,
                      bool into_whole);

/* in and out: the step's operands and results; scratch: memory as CornuScanPlan says. */
CornuStatus cornu__scan_run(const CornuPlanStep *step, const void *const *in, void *const *out,
                            int shard, char *scratch, CornuStepRunner *run_step);

#endif
