#include "kernel.h"

bool cornu__accepts_all(const CornuOpCall *call, const CornuType *out_type,
                        const CornuMachine *machine)
{
    (void)call, (void)out_type, (void)machine;
    return true;
}

bool cornu__floats_are_f32(const CornuOpCall *call, const CornuType *out_type)
{
    for (int i = 0; i < call->in_count; i++)
        if (cornu_dtype_is_float(call->in[i].dtype) && call->in[i].dtype != CORNU_F32)
            return false;
    for (int i = 0; i < cornu__result_count(call->id, call->attributes); i++)
        if (cornu_dtype_is_float(out_type[i].dtype) && out_type[i].dtype != CORNU_F32)
            return false;
    return true;
}

bool cornu__kernel_accepts(const CornuKernel *kernel, const CornuOpCall *call,
                           const CornuType *out_type, const CornuMachine *machine)
{
    return kernel->accepts ? kernel->accepts(call, out_type, machine)
                           : cornu__floats_are_f32(call, out_type);
}
