/* scan: a loop over its body. */
#include "emit.h"

static void scan(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuAttributes_SCAN *scan = &call->op.attributes->scan;
    bool is_sliced[CORNU_MAX_INPUTS];
    int  carried[CORNU_MAX_OUTPUTS];
    for (int i = 0; i < call->op.in_count; i++)
        is_sliced[i] = i >= scan->carries && i < scan->carries + scan->slices;
    for (int i = 0; i < scan->body->output_count; i++) carried[i] = i < scan->carries ? i : -1;
    cornu__hlo_loop(e, &(CornuHloLoop){
        .body = scan->body, .steps = scan->steps, .axis = (int)scan->axis,
        .reverse = scan->reverse, .is_sliced = is_sliced, .carried = carried }, call->in,
        call->out);
}
CornuEmit *const cornu__scan_stablehlo = scan;
