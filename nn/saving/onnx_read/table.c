/* Only the table of operators.def, so that no family depends on the others. */
#include "run_internal.h"

const CornuReadRow *const cornu__read_families[] = {
#define FAMILY(name) cornu__read_##name,
#include "operators.def"
#undef FAMILY
    NULL
};
