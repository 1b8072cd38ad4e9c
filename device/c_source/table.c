/* The table of rules, made from ops.def. */
#include "source_internal.h"

const CornuCRule *const *const cornu__c_table[CORNU_OP_COUNT] = {
#define CORNU_OP(ID, name, ...) &cornu__##name##_c,
#include "../ops/ops.def"
#undef CORNU_OP
};
