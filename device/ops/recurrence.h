/* What the rules of recurrent ops share: checks of operands (B, T, ..), and bodies of scans, built
 * like decompositions (build.h). */
#ifndef CORNU_DEVICE_OPS_RECURRENCE_H
#define CORNU_DEVICE_OPS_RECURRENCE_H

#include "build.h"

typedef struct { int64_t batch, steps, units; } CornuExtents;

/* Batch, steps and units of operand `i`, a float (B, T, parts U). */
CornuStatus cornu__expect_steps(const CornuOpCall *call, int i, int64_t parts, const char *names,
                                CornuExtents *e);

/* Refuses operand i unless it is of this type. */
CornuStatus cornu__expect_type(const CornuOpCall *call, int i, CornuType wanted,
                               const char *names);

/* Expects `without_mask` operands, or one more, the mask. */
CornuStatus cornu__expect_count(const CornuOpCall *call, int without_mask, const char *names);

/* Operand i, if present, must be a mask (B, T). */
CornuStatus cornu__expect_mask(const CornuOpCall *call, int i, CornuExtents e, const char *names);

/* The type of one step of an operand (B, T, ..). */
CornuType cornu__step_type(CornuType type);

/* The dtype of sums of this dtype: f32 at least. */
CornuDtype cornu__sums_dtype(CornuDtype dtype);

/* ---- Gates ----
 *
 * sigmoid(a), or with the attribute gate_slope the hard sigmoid min(max(gate_slope a + 0.5, 0), 1),
 * whose slope is 0 where the gate is fully closed or open. */

double cornu__gate(const CornuOpCall *call, double a);
double cornu__gate_slope(const CornuOpCall *call, double gate);

CornuValue cornu__build_gate(CornuBuilder *b, const CornuOpCall *call, CornuValue a);
/* The slope as a function of the gate. */
CornuValue cornu__build_gate_slope(CornuBuilder *b, const CornuOpCall *call, CornuValue gate);

/* ---- Bodies ---- */

/* Starts a body for a scan in `program`, with the same rules. */
CornuStatus cornu__body_open(CornuBuilder *body, const CornuProgram *program);
CornuValue  cornu__body_input(CornuBuilder *b, CornuType type);
void        cornu__body_output(CornuBuilder *b, CornuValue value);

/* Records the scan of a body and frees the body. */
CornuStatus cornu__body_record(CornuProgram *program, CornuBuilder *body, CornuAttributes scan,
                               const CornuValue *in, int in_count, CornuValue *out);

/* Columns first to first + count - 1 of x (B, N); parts (B, N) joined along axis 1. */
CornuValue cornu__build_columns(CornuBuilder *b, CornuValue x, int64_t first, int64_t count);
CornuValue cornu__build_beside(CornuBuilder *b, const CornuValue *parts, int count);

/* x y, or x y^T, in `dtype`. */
CornuValue cornu__build_product(CornuBuilder *b, CornuValue x, CornuValue y, bool transposed,
                                CornuDtype dtype);

/* x where the mask (B) is true, else y; x if the mask is CORNU_NO_VALUE. */
CornuValue cornu__build_where(CornuBuilder *b, CornuValue mask, CornuValue x, CornuValue y);

/* The state before each step: first (B, U), then all but the last of x (B, T, U). */
CornuValue cornu__build_before(CornuBuilder *b, CornuValue first, CornuValue x, bool reverse);

static inline CornuValue times(CornuBuilder *b, CornuValue x, CornuValue y)
{
    return cornu__build2(b, CORNU_OP_MULTIPLY, x, y);
}

static inline CornuValue plus(CornuBuilder *b, CornuValue x, CornuValue y)
{
    return cornu__build2(b, CORNU_OP_ADD, x, y);
}

static inline CornuValue slope(CornuBuilder *b, const CornuOpCall *call, CornuValue gate)
{
    return cornu__build_gate_slope(b, call, gate);
}

/* 1 - x^2 */
static inline CornuValue one_less_square(CornuBuilder *b, CornuValue x)
{
    return cornu__build2(b, CORNU_OP_SUBTRACT, cornu__build_constant(b, 1.0, x), times(b, x, x));
}

#endif
