#include "planned.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

Planned *planned(CornuProgram *program, int shards, int threads, CornuMultiplier multiplier)
{
    Planned *made = calloc(1, sizeof *made);
    assert_non_null(made);
    made->host = (CornuHost){ .kernels = { cornu__host_kernels },
                              .vectors = cornu__vectors(),
                              .threads = cornu__threads_create(threads),
                              .multiplier = multiplier, .shards = shards };
    made->program = program;
    if (cornu__plan_build(&made->plan, &made->host, program) != CORNU_OK)
        fail_msg("%s", cornu_error_message());
    if (cornu__plan_verify(&made->plan) != CORNU_OK) fail_msg("%s", cornu_error_message());
    return made;
}

void release_planned(Planned *made)
{
    cornu__plan_free(&made->plan);
    cornu_program_free(made->program);
    cornu__threads_free(made->host.threads);
    free(made);
}

int count_steps(const Planned *made, CornuStepKind kind)
{
    int count = 0;
    for (int i = 0; i < made->plan.step_count; i++) count += made->plan.steps[i].kind == kind;
    return count;
}
