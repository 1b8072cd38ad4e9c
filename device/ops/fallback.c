/* One op by its reference kernel, on packed host arrays. */
#include "rules.h"

void cornu__widen(CornuArray from, double *to)
{
    int64_t count = cornu_type_count(from.type);
    for (int64_t i = 0; i < count; i++) to[i] = cornu_array_get(from, i);
}

void cornu__narrow(const double *from, CornuArray to)
{
    int64_t count = cornu_type_count(to.type);
    for (int64_t i = 0; i < count; i++) cornu_array_set(to, i, from[i]);
}

int64_t cornu__reference_scratch(const CornuOpCall *call, const CornuType *out_type)
{
    int64_t count = 0;
    for (int i = 0; i < call->in_count; i++) count += cornu_type_count(call->in[i]);
    for (int i = 0; i < cornu__result_count(call->id, call->attributes); i++)
        count += cornu_type_count(out_type[i]);
    return count + call->in_count; /* and the operands' addresses */
}

CornuStatus cornu__reference_run(const CornuOpCall *call, const CornuType *out_type,
                                 const void *const *in, void *const *out, double *scratch)
{
    _Static_assert(sizeof(double *) <= sizeof(double), "an address fits where a double does");
    const double **wide_in = (const double **)(void *)scratch;
    double        *wide_out[CORNU_MAX_OUTPUTS];
    scratch += call->in_count;
    for (int i = 0; i < call->in_count; i++) {
        /* Only read, but CornuArray is not const. */
        cornu__widen((CornuArray){ call->in[i], (void *)in[i] }, scratch);
        wide_in[i] = scratch;
        scratch += cornu_type_count(call->in[i]);
    }
    for (int i = 0; i < cornu__result_count(call->id, call->attributes); i++) {
        wide_out[i] = scratch;
        scratch += cornu_type_count(out_type[i]);
    }
    CORNU__TRY(cornu__op_reference(&(CornuReferenceCall){
        .op = *call, .in = wide_in, .out = wide_out, .out_type = out_type,
        .count = cornu_type_count(out_type[0]),
    }));
    for (int i = 0; i < cornu__result_count(call->id, call->attributes); i++)
        cornu__narrow(wide_out[i], (CornuArray){ out_type[i], out[i] });
    return CORNU_OK;
}
