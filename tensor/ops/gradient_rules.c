/* The table of gradient rules, one for each op; each rule is in its op's file. */
#include "../tensor_internal.h"

CornuGradient *const *const cornu__gradient_rules[CORNU_OP_COUNT] = {
#define CORNU_OP(ID, name, ...) [CORNU_OP_##ID] = &cornu__##name##_gradient,
#include "../../device/ops/ops.def"
#undef CORNU_OP
};
