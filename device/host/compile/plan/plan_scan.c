#include "plan.h"

bool cornu__scan_is_sliced(const CornuScanPlan *scan, int i)
{
    return i >= scan->attributes.carries && i < scan->attributes.carries + scan->attributes.slices;
}

CornuType cornu__scan_input_type(const CornuScanPlan *scan, int i)
{
    return cornu_program_type(scan->plan.program, scan->plan.program->inputs[i]);
}

CornuType cornu__scan_output_type(const CornuScanPlan *scan, int i)
{
    return cornu_program_type(scan->plan.program, scan->plan.program->outputs[i].value);
}

void cornu__scan_lay_out(CornuScanPlan *scan)
{
    const CornuPlan *plan = &scan->plan;
    const int        in_count = plan->program->input_count;
    const int        out_count = plan->program->output_count;
    const size_t     addresses = (size_t)(plan->operand_count + in_count + out_count);
    scan->buffers = scan->arena = cornu__aligned(addresses * sizeof(void *));
    for (int i = 0; i < in_count; i++)
        if (cornu__scan_is_sliced(scan, i))
            scan->arena += cornu__aligned(cornu_type_bytes(cornu__scan_input_type(scan, i)));
    for (int i = (int)scan->attributes.carries; i < out_count; i++)
        scan->arena += cornu__aligned(cornu_type_bytes(cornu__scan_output_type(scan, i)));
    scan->packed = scan->arena + cornu__aligned(cornu__plan_bytes(plan, plan->arena));
    scan->fixed = scan->packed + cornu__aligned(cornu__plan_bytes(plan, plan->packed));
    scan->scratch = scan->fixed + cornu__aligned(cornu__plan_bytes(plan, plan->fixed));
}
