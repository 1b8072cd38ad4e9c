/* The table of rules, made from ops.def. */
#include "emit.h"

const CornuEmitTable cornu__emit_table = {
#define CORNU_OP(ID, name, inputs, outputs, LIST) &cornu__##name##_stablehlo,
#include "../../ops/ops.def"
#undef CORNU_OP
};
