#include "passes.h"

#include "../../memory_internal.h"

/* Frees `from`; NULL gives NULL, so that a chain of passes is checked once, at its end. */
static CornuProgram *after(CornuProgram *from, CornuProgram *to)
{
    cornu_program_free(from);
    return to;
}

static void dump(const CornuProgram *program, const char *title)
{
    if (!program || !cornu__dumps("program")) return;
    fprintf(stderr, "%s:\n", title);
    cornu_program_print(program, stderr);
}

/* The passes from programs to programs; NULL after a failure. */
static CornuProgram *transform(const CornuHost *host, const CornuProgram *recorded)
{
    CornuProgram *p = cornu__simplify(host, recorded);
    if (p) p = after(p, cornu__decompose(host, p));
    dump(p, "decomposed");
    if (p) p = after(p, cornu__simplify(host, p));
    if (p) p = after(p, cornu__distribute(host, p));
    if (p) p = after(p, cornu__share(host, p));
    if (p) p = after(p, cornu__combine(host, p));
    dump(p, "simplified");
    return p;
}

/* The body of a scan with its carries written into the inputs that they came from, unless shards
 * meet in it. Its constants are the same in all runs of it: what depends on them alone is computed
 * before the first. */
static CornuStatus plan_scan(CornuPlan *plan, CornuPlanStep *step)
{
    const CornuAttributes_SCAN *attributes = &plan->program->ops[step->op].attributes.scan;
    CornuScanPlan              *scan = step->scan = cornu__allocate(1, sizeof *scan);
    CornuProgram               *body = cornu_program_copy(attributes->body);
    CornuStatus                 status = scan && body ? CORNU_OK : CORNU_ERR_MEMORY;
    const bool                  meets = step->kind == CORNU_STEP_LOOP;
    for (int i = 0; status == CORNU_OK && i < attributes->carries && !meets; i++)
        body->outputs[i].alias = i;
    for (int i = (int)(attributes->carries + attributes->slices);
         status == CORNU_OK && i < body->input_count; i++)
        cornu_program_fix_input(body, body->inputs[i]);
    if (status == CORNU_OK) {
        scan->host = *plan->host;
        if (!meets) {
            scan->host.shards = 1;
            scan->host.own = (CornuRange){ 0, 1 };
            scan->host.processes = NULL;
        }
        scan->attributes = *attributes;
        status = cornu__plan_build(&scan->plan, &scan->host, body);
    }
    if (status == CORNU_OK) cornu__scan_lay_out(scan);
    cornu_program_free(body);
    return status;
}

static size_t scratch_of(const CornuPlan *plan, const CornuPlanStep *step)
{
    const CornuMachine machine = cornu__machine(plan->host);
    const CornuType   *out_type;
    CornuType          types[CORNU_CALL_TYPES], pool_types[CORNU_CALL_TYPES];
    CornuOpCall        call, pool;
    switch (step->kind) {
    case CORNU_STEP_GROUP: return cornu__group_scratch(step->group, machine.threads);
    case CORNU_STEP_KERNEL:
        if (!step->kernel->scratch) return 0;
        call = cornu__plan_call(plan, step, types, &out_type);
        return step->kernel->scratch(&(CornuQuery){
            &call, out_type, machine, cornu__plan_pool(plan, step, pool_types, &pool), 0 });
    case CORNU_STEP_REFERENCE:
        call = cornu__plan_call(plan, step, types, &out_type);
        return (size_t)cornu__reference_scratch(&call, out_type) * sizeof(double);
    case CORNU_STEP_SCAN: return step->scan->scratch + step->scan->plan.scratch_bytes;
    case CORNU_STEP_PACK: case CORNU_STEP_COPY: case CORNU_STEP_SUM: case CORNU_STEP_SEND:
    case CORNU_STEP_WAIT: case CORNU_STEP_LOOP: break;
    }
    return 0;
}

CornuStatus cornu__plan_build(CornuPlan *plan, const CornuHost *host, const CornuProgram *program)
{
    plan->host = host;
    CORNU__TRY(cornu__plan_check_program(host, program));
    plan->program = transform(host, program);
    if (!plan->program) return CORNU_ERR_MEMORY;
    CORNU__TRY(cornu__fuse(plan));
    CORNU__TRY(cornu__plan_sums(plan));
    CORNU__TRY(cornu__plan_exchange(plan));
    CORNU__TRY(cornu__plan_memory(plan));
    CORNU__TRY(cornu__plan_check_exchanges(plan));
    for (int i = 0; i < plan->step_count; i++) {
        CornuPlanStep *step = &plan->steps[i];
        if (step->kind == CORNU_STEP_SCAN || step->kind == CORNU_STEP_LOOP)
            CORNU__TRY(plan_scan(plan, step));
        const size_t bytes = scratch_of(plan, step);
        if (bytes > plan->scratch_bytes) plan->scratch_bytes = bytes;
    }
    plan->scratch_bytes = cornu__aligned(plan->scratch_bytes);
    if (cornu__dumps("plan") || cornu__dumps("kernels")) cornu__plan_print(plan, stderr);
    return cornu__verifies() ? cornu__plan_verify(plan) : CORNU_OK;
}
