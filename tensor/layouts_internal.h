/* A step of rewrite.c: transposes of images move past the ops that read them, and cancel. */
#ifndef CORNU_TENSOR_LAYOUTS_INTERNAL_H
#define CORNU_TENSOR_LAYOUTS_INTERNAL_H

#include "graph_internal.h"

/* Records an op whose operands in `to` are images with channels first, made by transposes, on those
 * with channels last, and transposes the result instead; sets out[0] and *moved. Otherwise records
 * nothing. */
CornuStatus cornu__move_transpose(CornuProgram *to, const CornuProgramOp *op, const CornuValue *in,
                                  CornuValue *out, bool *moved);

#endif
