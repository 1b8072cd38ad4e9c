/* The table of rules, made from ops.def. */
#include "emit.h"

const CornuEmitTable cornu__emit_table = {
#define CORNU_OP(ID, name, ...) &cornu__##name##_stablehlo,
#include "../../ops/ops.def"
#undef CORNU_OP
};
