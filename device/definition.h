/*
 * Definitions: ops that a user registers at run time (tensor/custom.h), as devices see them.
 *
 * In a program they are ops CORNU_OP_CUSTOM, whose attributes have the definition, up to eight
 * numbers, and the body: a program of other ops that computes the same for operands of these types,
 * or none.
 */
#ifndef CORNU_DEVICE_DEFINITION_H
#define CORNU_DEVICE_DEFINITION_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuOpArguments CornuOpArguments;

/* A piece of the work of a kernel. */
typedef void CornuOpBlock(void *context, int64_t block);

/* A call of a registered op, as its functions see it. */
struct CornuOpArguments {
    const char      *name;
    const CornuType *in;             /* the operands */
    int              in_count;
    const double    *numbers;        /* those given to cornu_op_custom */
    int              number_count;
    /* For cornu_op_parallel; NULL: there are no threads. */
    void           (*run)(void *runner, int64_t blocks, CornuOpBlock *block, void *context);
    void            *runner;
};

/* In a kernel: calls `block` with the numbers 0 to blocks - 1, on the device's threads, in any
 * order, and returns when all have been called. So that the results do not depend on how many
 * threads there are, blocks depend on the shapes alone, and none reads what another writes. */
void cornu_op_parallel(const CornuOpArguments *call, int64_t blocks, CornuOpBlock *block,
                       void *context);

/* The functions of a definition that know nothing of tensors. Each returns CORNU_OK, or a status
 * after cornu_error_set() with a message of what was expected and what came; the op's name is put
 * in front. They may be called by several threads at the same time. */

/* Fills the types of the results, or refuses these operands and numbers. */
typedef CornuStatus CornuOpTypes(const CornuOpArguments *call, CornuType *out);

/* Floating-point operations: cornu_op_flops. */
typedef int64_t CornuOpFlops(const CornuOpArguments *call);

/* The op in double, in the shortest loops that can be checked by eye: every element of every dtype
 * is a double here, arrays are packed, row-major. */
typedef CornuStatus CornuOpReference(const CornuOpArguments *call, const double *const *in,
                                     const CornuType *out_type, double *const *out);

/* The op fast, on processors: packed, row-major arrays of the dtypes of their types, of which all
 * floats are f32. Results do not overlap operands. It allocates nothing that it does not free. */
typedef CornuStatus CornuOpKernel(const CornuOpArguments *call, const void *const *in,
                                  const CornuType *out_type, void *const *out);

#ifdef __cplusplus
}
#endif
#endif
