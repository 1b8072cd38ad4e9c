/* lower: replaces the ops that have no rule of their own by their decompositions. */
#ifndef CORNU_DEVICE_PJRT_LOWER_H
#define CORNU_DEVICE_PJRT_LOWER_H

#include "emit.h"

/* NULL after a failure; the caller frees it. */
CornuProgram *cornu__lower(const CornuProgram *program, const CornuEmitTable *table);

#endif
