/* The table of ops, made from ops.def: a missing rule does not link. */
#include "rules.h"

const CornuOpRules *const cornu__op_table[CORNU_OP_COUNT] = {
#define CORNU_OP(ID, name, ...) [CORNU_OP_##ID] = &cornu__##name##_rules,
#include "ops.def"
#undef CORNU_OP
};
