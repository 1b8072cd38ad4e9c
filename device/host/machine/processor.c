#include "processor.h"

#include "../../status_internal.h"
#include "cpu.h"

CornuStatus cornu_processor_describe(CornuProcessor *processor)
{
    CornuIsa    isa;
    CornuStatus status = cornu__cpu_isa(&isa);
    if (!status && !processor)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "cornu_processor_describe: expected a "
                             "CornuProcessor to fill in, got NULL");
    if (status) return status;
    const CornuCpu *cpu = cornu__cpu();
    *processor = (CornuProcessor){
        .name = cpu->name, .isa = cornu__isa_name(isa), .best_isa = cornu__isa_name(cpu->best),
        .l1d = cpu->l1d, .l2 = cpu->l2, .l3 = cpu->l3, .threads = cornu__cpu_threads(),
    };
    return CORNU_OK;
}
