/* Plans of the cpu device's kernels, verified, for tests of what programs are compiled to. */
#ifndef CORNU_TESTS_DEVICE_PLANNED_H
#define CORNU_TESTS_DEVICE_PLANNED_H

#include <cornu/device/host/compile/passes.h>
#include <cornu/device/host/kernels/kernels.h>

typedef struct {
    CornuHost     host;      /* with threads of its own */
    CornuProgram *program;
    CornuPlan     plan;
} Planned;

/* Takes the program; the caller releases the plan. */
Planned *planned(CornuProgram *program, int shards, int threads, CornuMultiplier multiplier);
void     release_planned(Planned *made);

/* Steps of this kind. */
int count_steps(const Planned *made, CornuStepKind kind);

#endif
