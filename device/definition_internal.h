/* The definitions of all registered ops. */
#ifndef CORNU_DEVICE_DEFINITION_INTERNAL_H
#define CORNU_DEVICE_DEFINITION_INTERNAL_H

#include "definition.h"
#include "status_internal.h"

/* Never changed or freed once it is registered: programs point to it. */
typedef struct CornuDefinition {
    const char             *name;
    int                     inputs;      /* -1: one or more */
    int                     outputs;
    CornuOpTypes           *type;        /* NULL: of operand 0 */
    CornuOpFlops           *flops;       /* NULL: of the body, or one per element of operand 0 */
    CornuOpReference       *reference;   /* NULL: by the body */
    CornuOpKernel          *kernel;      /* or NULL */
    bool                    is_composed; /* ops of it have a body */
    bool                    by_body;     /* results have the types of the body's, type is NULL */
    struct CornuDefinition *next;
} CornuDefinition;

/* Checks the definition and adds it to those that are found; thread-safe. CORNU_ERR_ARGUMENT for a
 * name that is not one or is taken, for counts out of range, and if nothing says what it means. */
CornuStatus cornu__definition_add(CornuDefinition *definition);

/* NULL if no op is registered by this name. */
CornuDefinition *cornu__definition_find(const char *name);

/* The call of an op CORNU_OP_CUSTOM, as its functions see it. */
CornuOpArguments cornu__definition_arguments(const CornuOpCall *call);

#endif
