/* What a registered op is, in full. */
#ifndef CORNU_TENSOR_CUSTOM_INTERNAL_H
#define CORNU_TENSOR_CUSTOM_INTERNAL_H

#include "../../device/definition_internal.h"
#include "../custom.h"

/* `base` comes first: programs point to it. */
struct CornuOp {
    CornuDefinition     base;
    CornuOpComposition *composition;
    CornuOpGradient    *gradient;
    char                name[];
};

/* A graph whose program is the op's body for this call, of an op that has a composition; the caller
 * frees it. NULL, pending, after a failure. */
CornuGraph *cornu__op_compose(const CornuOp *op, CornuDevice *device,
                              const CornuOpArguments *call);

#endif
