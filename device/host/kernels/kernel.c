#include "kernel.h"

#include <inttypes.h>
#include <stdio.h>

#include "../machine/vector.h"

CornuDecline cornu__takes_all(const CornuQuery *q)
{
    (void)q;
    return CORNU_TAKES;
}

static bool is_f32(CornuDtype dtype) { return !cornu_dtype_is_float(dtype) || dtype == CORNU_F32; }

CornuDecline cornu__takes_f32(const CornuQuery *q)
{
    bool are_f32 = true;
    for (int i = 0; i < q->op->in_count; i++) are_f32 = are_f32 && is_f32(q->op->in[i].dtype);
    for (int i = 0; i < cornu__result_count(q->op->id, q->op->attributes); i++)
        are_f32 = are_f32 && is_f32(q->out_type[i].dtype);
    return cornu__needs(are_f32, "floats of f32");
}

CornuDecline cornu__takes_f32_or_bf16(const CornuQuery *q)
{
    const CornuDtype dtype = q->op->in[0].dtype;
    return cornu__needs((dtype == CORNU_F32 || dtype == CORNU_BF16) && q->out_type->dtype == dtype,
                        "f32 or bf16");
}

CornuDecline cornu__sum_declines(const CornuQuery *q)
{
    const int64_t elements = cornu_type_count(*q->out_type);
    if (q->machine.shards < 2) return cornu__needs_least(2, "shards", q->machine.shards);
    if (q->machine.shards > CORNU_SUM_ROWS)
        return cornu__needs_most(CORNU_SUM_ROWS, "shards", q->machine.shards);
    return elements >= CORNU_SUMMED_ELEMENTS
         ? CORNU_TAKES : cornu__needs_least(CORNU_SUMMED_ELEMENTS, "elements", elements);
}

CornuDecline cornu__kernel_declines(const CornuKernel *kernel, const CornuKernel *last,
                                    const CornuQuery *q)
{
    if (q->pool && !kernel->joins) return cornu__needs(false, "a step of its own for the pooling");
    CornuDecline decline = kernel->declines ? kernel->declines(q) : cornu__takes_f32(q);
    if (!decline.needs && q->pool) decline = kernel->joins(q);
    if (decline.needs || !kernel->cost || kernel == last) return decline;
    const double own = kernel->cost(q, kernel->compares);
    const double other = last->cost(q, kernel->compares);
    if (kernel->gain_percent ? other * 100 >= own * kernel->gain_percent : other > own)
        return decline;
    return (CornuDecline){ .needs = "a lower cost", .than = last,
                           .cost = other > 0.0 ? own / other : 1.0,
                           .most_cost = kernel->gain_percent ? 100.0 / kernel->gain_percent : 1.0 };
}

void cornu__decline_print(CornuDecline decline, char text[CORNU_DECLINED_TEXT])
{
    const size_t size = CORNU_DECLINED_TEXT;
    if (decline.than)
        snprintf(text, size, "costs %.2f of %s, estimated (at most %.2f pays)", decline.cost,
                 decline.than->name, decline.most_cost);
    else if (decline.least)
        snprintf(text, size, "needs at least %" PRId64 " %s, has %" PRId64, decline.least,
                 decline.needs, decline.has);
    else if (decline.most)
        snprintf(text, size, "needs at most %" PRId64 " %s, has %" PRId64, decline.most,
                 decline.needs, decline.has);
    else snprintf(text, size, "needs %s", decline.needs);
}
