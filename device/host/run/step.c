#include "step.h"

#include <string.h>

#include "../kernels/collective.h"
#include "group.h"
#include "scan.h"

static const void *epilogue_operand(const CornuPlanStep *step, const void *const *in,
                                    CornuEpilogueOperand operand)
{
    const int k = step->epilogue_in[operand];
    return k > 0 ? in[k] : NULL;
}

static CornuStatus run_step(const CornuPlan *plan, const CornuPlanStep *step,
                            void *const *addresses, int shard, char *scratch)
{
    const void *const *in = (const void *const *)addresses + step->in_first;
    void *const       *out = addresses + step->out_first;
    const CornuType   *out_type = step->types + step->in_count;
    CornuEpilogue      epilogue = step->epilogue;
    CornuType          types[CORNU_CALL_TYPES], pool_types[CORNU_CALL_TYPES];
    const void        *operands[CORNU_MAX_INPUTS] = { NULL };
    CornuOpCall        call, pool;
    switch (step->kind) {
    case CORNU_STEP_GROUP:
        return cornu__group_run(step->group, in, out, plan->host->threads, scratch);
    case CORNU_STEP_KERNEL:
        call = cornu__plan_call(plan, step, types, &out_type);
        epilogue.bias = epilogue_operand(step, in, CORNU_EPILOGUE_BIAS);
        epilogue.scale = epilogue_operand(step, in, CORNU_EPILOGUE_SCALE);
        epilogue.shift = epilogue_operand(step, in, CORNU_EPILOGUE_SHIFT);
        epilogue.term = epilogue_operand(step, in, CORNU_EPILOGUE_TERM);
        epilogue.slope = epilogue_operand(step, in, CORNU_EPILOGUE_SLOPE);
        epilogue.gate = epilogue_operand(step, in, CORNU_EPILOGUE_GATE);
        return step->kernel->run(&(CornuKernelCall){
            .op = call, .out_type = out_type, .in = in, .out = out, .epilogue = &epilogue,
            .threads = plan->host->threads, .multiplier = plan->host->multiplier,
            .scratch = scratch, .shard = cornu__plan_own(plan).first + shard,
            .shards = cornu__plan_shards(plan),
            .shard_stride = plan->operand_count, .block = step->block,
            .packed = step->packed >= 0,
            .pool = cornu__plan_pool(plan, step, pool_types, &pool) });
    case CORNU_STEP_PACK:
        call = cornu__plan_call(plan, step, types, &out_type);
        operands[step->kernel->packs] = in[0];
        step->kernel->pack(&(CornuKernelCall){
            .op = call, .out_type = out_type, .in = operands,
            .out = out, .threads = plan->host->threads, .multiplier = plan->host->multiplier });
        break;
    case CORNU_STEP_REFERENCE:
        call = cornu__plan_call(plan, step, types, &out_type);
        return cornu__reference_run(&call, out_type, in, out, (double *)(void *)scratch);
    case CORNU_STEP_SCAN:
        return cornu__scan_run(step, in, out, shard, scratch, cornu__plan_run_step);
    case CORNU_STEP_SUM:
        cornu__block_add(out_type->dtype, cornu_type_count(*out_type), in[0], out[0],
                         step->out_count > 1 ? out[1] : NULL, shard, step->block,
                         cornu__plan_shards(plan));
        break;
    case CORNU_STEP_SEND: case CORNU_STEP_WAIT: case CORNU_STEP_LOOP:
        break;   /* the executor's (exchange.h, loop.h) */
    case CORNU_STEP_COPY: memcpy(out[0], in[0], cornu_type_bytes(*out_type)); break;
    }
    return CORNU_OK;
}

CornuStatus cornu__plan_run_step(const CornuPlan *plan, const CornuPlanStep *step,
                            void *const *addresses, int shard, char *scratch)
{
    CornuStatus status = run_step(plan, step, addresses, shard, scratch);
    if (status == CORNU_OK || step->op < 0) return status;   /* a group names its op itself */
    const CornuProgramOp *op = &plan->program->ops[step->op];
    if (step->kind != CORNU_STEP_REFERENCE) cornu__fail_prefix(status, cornu_program_op_name(op));
    return *op->scope ? cornu__fail_prefix(status, op->scope) : status;
}
