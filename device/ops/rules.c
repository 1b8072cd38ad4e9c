/* What is looked up in the table of ops by id. */
#include "rules.h"

CornuProgram *cornu_program_create(void) { return cornu__program_create(cornu__op_table); }

const CornuOpRules *cornu__op_rules(CornuOpId id) { return cornu__op_table[id]; }

bool cornu__is_primitive(CornuOpId id, const CornuAttributes *attributes)
{
    CornuDecompose *decompose = cornu__op_table[id]->decompose;
    return decompose == CORNU_BODY ? !cornu__attributes_program(id, attributes)
                                   : decompose == CORNU_PRIMITIVE;
}

int64_t cornu_op_flops(const CornuOpCall *call) { return cornu__op_table[call->id]->flops(call); }

CornuStatus cornu__op_type(const CornuOpCall *call, CornuType *out)
{
    return cornu__check_call(cornu__op_table, call, out);
}

CornuStatus cornu__op_reference(const CornuReferenceCall *call)
{
    return cornu__fail_prefix(cornu__op_table[call->op.id]->reference(call),
                              cornu__called(call->op.id, call->op.attributes));
}
