/* The table of optimizers.def, apart so that no optimizer depends on the others. */
#include "optimizer_internal.h"

const CornuOptimizerRow cornu__optimizers[] = {
#define OPTIMIZER(name) { #name, &cornu__##name##_class },
#include "optimizers.def"
#undef OPTIMIZER
    { 0 }
};
