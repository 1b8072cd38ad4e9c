/* The tables of families.def and nothing else, so that no rule depends on the others. */
#include "rules_internal.h"

const CornuLiteRow *const cornu__lite_families[] = {
#define FAMILY(name) cornu__lite_##name,
#include "families.def"
#undef FAMILY
    NULL
};
