/*
 * Layers are written op by op: the layer is recorded in a graph that is never run (recorded.c), and
 * each op, or function that has operators of its own (functions.c), becomes operators (op_values.c)
 * by a writer (ops.c, op_products.c, op_scan.c), or a constant where its operands are constants
 * (known.c).
 *
 * The batch may be open, and programs have no open extents: the layer is recorded for two sizes of
 * the batch, and what differs between the programs depends on it.
 */
#ifndef CORNU_NN_LITE_RECORDED_INTERNAL_H
#define CORNU_NN_LITE_RECORDED_INTERNAL_H

#include "../../../device/program_internal.h"
#include "rules_internal.h"

enum { CORNU_LITE_WORLDS = 2 };
extern const int64_t cornu__lite_batches[CORNU_LITE_WORLDS];   /* sizes of an open batch */

/* Each value of the program has a tensor, which may be smaller than its type says where that is the
 * same along an axis: elementwise operators broadcast it. */
typedef struct {
    CornuLite          *to;
    const CornuProgram *worlds[CORNU_LITE_WORLDS], *program;   /* the first of them */
    int                *tensors;
} CornuLiteProgram;

/* An op as its writer sees it. */
typedef struct {
    CornuLiteProgram      *program;
    CornuLite             *to;
    const CornuProgramOp  *op;
    int                    number;
    const CornuAttributes *attributes;
    const CornuValue      *in;
    CornuValue             out;
} CornuLiteOp;

typedef CornuStatus CornuLiteWriter(const CornuLiteOp *op);

/* Tables of writers, each ended by a row without one: elementwise ops and those of shapes, products
 * and lookups, loops step by step; NULL ends the list. An op without a row is refused. */
typedef struct { CornuOpId id; CornuLiteWriter *write; } CornuLiteOpRow;
extern const CornuLiteOpRow cornu__lite_writers_ops[], cornu__lite_writers_products[],
    cornu__lite_writers_scan[], cornu__lite_writers_functions[];
extern const CornuLiteOpRow *const cornu__lite_op_families[];

CornuStatus cornu__lite_ops(CornuLiteProgram *program);
bool        cornu__lite_has_writer(CornuOpId id);

/* The product of functions.c with a kernel, plus a bias: op_products.c. */
CornuLiteWriter cornu__lite_dense;

/* Gives the op's value as a constant if it is `known`: known.c. */
CornuStatus cornu__lite_known(const CornuLiteOp *op, bool *known);

/* Whether the call is of a function that has an operator: functions.c. */
bool cornu__lite_has_function(const CornuOpCall *call);

/* Recurrent layers, which functions.c lists: recurrent.c. */
CornuLiteWriter cornu__lite_recurrence;
bool            cornu__lite_takes_recurrence(const CornuOpCall *call);

/* ---- For writers ---- */

/* The shape of a value: CORNU_NONE for an extent that depends on the batch. */
CornuShape cornu__lite_value_shape(const CornuLiteProgram *program, CornuValue value);
CornuDtype cornu__lite_value_dtype(const CornuLiteOp *op, CornuValue value);

/* Operand i in full; or the tensor that broadcasts to it. */
CornuStatus cornu__lite_full(const CornuLiteOp *op, int i, int *tensor);
int         cornu__lite_small(const CornuLiteOp *op, int i);

/* The extents of a value, or of a shape in both worlds, i32 (rank), computed where they depend on
 * the batch. */
CornuStatus cornu__lite_extents(const CornuLiteOp *op, CornuValue value, int *tensor);
CornuStatus cornu__lite_extents_of(const CornuLiteOp *op, const CornuShape *worlds, int *tensor);

CornuStatus cornu__lite_op_give(const CornuLiteOp *op, int tensor);
CornuStatus cornu__lite_op_refuse(const CornuLiteOp *op, const char *why);

/* How values of this dtype are kept: f32, i32 or bool; and element i of such data. */
CornuLiteDtype cornu__lite_kept(CornuDtype dtype);

static inline void cornu__lite_set(void *data, CornuLiteDtype kept, int64_t i, double value)
{
    if (kept == CORNU_LITE_F32)      ((float *)data)[i] = (float)value;
    else if (kept == CORNU_LITE_I32) ((int32_t *)data)[i] = (int32_t)value;
    else                             ((bool *)data)[i] = value != 0.0;
}

static inline double cornu__lite_get(const void *data, CornuLiteDtype kept, int64_t i)
{
    return kept == CORNU_LITE_F32   ? (double)((const float *)data)[i]
         : kept == CORNU_LITE_I32   ? (double)((const int32_t *)data)[i]
                                    : (double)((const bool *)data)[i];
}

#endif
