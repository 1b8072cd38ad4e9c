/* The tables of families.def and nothing else, so that no rule depends on the others. */
#include "rules_internal.h"

const CornuOnnxRow *const cornu__onnx_families[] = {
#define FAMILY(name) cornu__onnx_##name,
#include "families.def"
#undef FAMILY
    NULL
};
