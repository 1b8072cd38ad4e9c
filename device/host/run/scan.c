#include "scan.h"

#include <string.h>

void cornu__scan_copy(const CornuScanPlan *scan, CornuType slice, char *whole, char *own, int64_t t,
                      bool into_whole)
{
    size_t rows = 1, bytes = cornu_dtype_size(slice.dtype);
    for (int i = 0; i < slice.shape.rank; i++)
        *(i < scan->attributes.axis ? &rows : &bytes) *= (size_t)slice.shape.extent[i];
    const size_t step = bytes * (size_t)scan->attributes.steps;
    char        *at = whole + (size_t)t * bytes;
    for (size_t row = 0; row < rows; row++, at += step, own += bytes)
        memcpy(into_whole ? at : own, into_whole ? own : at, bytes);
}

/* Where everything is. */
typedef struct {
    const CornuScanPlan *scan;
    void               **addresses, **inputs, **outputs;   /* of the body */
    char                *scratch;
    int                  shard;
    CornuStepRunner     *run_step;
} Run;

/* Carries live in the memory of the last carries, which are results. */
static Run lay_out(const CornuScanPlan *scan, const void *const *in, void *const *out,
                   char *scratch)
{
    const CornuProgram *body = scan->plan.program;
    const int           carries = (int)scan->attributes.carries;
    Run                 run = { .scan = scan, .addresses = (void **)(void *)scratch,
                                .scratch = scratch + scan->scratch };
    run.inputs = run.addresses + scan->plan.operand_count;
    run.outputs = run.inputs + body->input_count;
    char *buffer = scratch + scan->buffers;
    for (int i = 0; i < body->input_count; i++) {
        run.inputs[i] = i < carries ? out[i] : (void *)(uintptr_t)in[i];
        if (!cornu__scan_is_sliced(scan, i)) continue;
        run.inputs[i] = buffer;
        buffer += cornu__aligned(cornu_type_bytes(cornu__scan_input_type(scan, i)));
    }
    for (int i = 0; i < body->output_count; i++) {
        run.outputs[i] = i < carries ? NULL : buffer;
        if (i >= carries)
            buffer += cornu__aligned(cornu_type_bytes(cornu__scan_output_type(scan, i)));
    }
    cornu__plan_addresses(&scan->plan, 0, run.inputs, run.outputs, &(CornuRegions){
        .arena = scratch + scan->arena, .packed = scratch + scan->packed,
        .fixed = scratch + scan->fixed }, run.addresses);
    return run;
}

/* The steps that read constants alone, or the others. */
static CornuStatus run_steps(const Run *run, bool fixed)
{
    const CornuPlan *plan = &run->scan->plan;
    for (int i = 0; i < plan->step_count; i++)
        if (plan->steps[i].fixed == fixed)
            CORNU__TRY(run->run_step(plan, &plan->steps[i], run->addresses, run->shard,
                                     run->scratch));
    return CORNU_OK;
}

static CornuStatus run_body(const Run *run, const void *const *in, void *const *out, int64_t t)
{
    const CornuScanPlan *scan = run->scan;
    const CornuProgram  *body = scan->plan.program;
    for (int i = 0; i < body->input_count; i++)
        if (cornu__scan_is_sliced(scan, i))
            cornu__scan_copy(scan, cornu__scan_input_type(scan, i), (char *)(uintptr_t)in[i],
                             run->inputs[i], t, false);
    CORNU__TRY(run_steps(run, false));
    for (int i = (int)scan->attributes.carries; i < body->output_count; i++)
        cornu__scan_copy(scan, cornu__scan_output_type(scan, i), out[i], run->outputs[i], t,
                         true);
    return CORNU_OK;
}

CornuStatus cornu__scan_run(const CornuPlanStep *step, const void *const *in, void *const *out,
                            int shard, char *scratch, CornuStepRunner *run_step)
{
    const CornuAttributes_SCAN *scan = &step->scan->attributes;
    Run                         run = lay_out(step->scan, in, out, scratch);
    run.shard = shard;
    run.run_step = run_step;
    for (int i = 0; i < scan->carries; i++) memcpy(out[i], in[i], cornu_type_bytes(step->types[i]));
    CORNU__TRY(run_steps(&run, true));
    for (int64_t k = 0; k < scan->steps; k++)
        CORNU__TRY(run_body(&run, in, out, scan->reverse ? scan->steps - 1 - k : k));
    return CORNU_OK;
}
