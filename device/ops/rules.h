/* The rules that give each row of ops.def its meaning, and helpers to write them with. */
#ifndef CORNU_DEVICE_OPS_RULES_H
#define CORNU_DEVICE_OPS_RULES_H

#include "../program_internal.h"

/* Fills the types of the op's outputs, or fails with a message naming both sides ("a is …, b is
 * …"). The number of operands and the attributes have been checked. */
typedef CornuStatus CornuTypeRule(const CornuOpCall *call, CornuType *out);

typedef int64_t CornuFlopRule(const CornuOpCall *call);

/* Records the op's meaning in other ops: `in` are its operands in `program`, `out` receives the
 * values that replace its outputs. */
typedef CornuStatus CornuDecompose(CornuProgram *program, const CornuOpCall *call,
                                   const CornuValue *in, CornuValue *out);

/* Reference kernels compute in double: every element of every dtype is a double here. */
typedef struct {
    CornuOpCall          op;
    const double *const *in;
    double *const       *out;
    const CornuType     *out_type;
    int64_t              count;   /* elements of out[0] */
} CornuReferenceCall;

typedef CornuStatus CornuReference(const CornuReferenceCall *call);

typedef struct CornuOpRules {
    CornuTypeRule  *type;
    CornuFlopRule  *flops;        /* or CORNU_NO_FLOPS  */
    CornuDecompose *decompose;    /* or CORNU_PRIMITIVE or CORNU_BODY */
    CornuReference *reference;
} CornuOpRules;

/* Markers for an op that only moves data, and for one that has no decomposition. */
CornuFlopRule  cornu__no_flops;
CornuDecompose cornu__primitive;
/* An op whose decomposition is the program among its attributes; without one it is primitive
 * (body.c). */
CornuDecompose cornu__decompose_body;
#define CORNU_BODY      cornu__decompose_body
#define CORNU_NO_FLOPS  cornu__no_flops
#define CORNU_PRIMITIVE cornu__primitive

#define CORNU_OP(ID, name, ...) extern const CornuOpRules cornu__##name##_rules;
#include "ops.def"
#undef CORNU_OP

/* The rules of every op (table.c). Rules, and what they call, must not refer to it: they find the
 * rules of other ops in the program they are given. */
extern const CornuOpRules *const cornu__op_table[CORNU_OP_COUNT];

/* ---- Lookups in the table (rules.c) ---- */

const CornuOpRules *cornu__op_rules(CornuOpId id);

/* Whether the op has no decomposition. */
bool cornu__is_primitive(CornuOpId id, const CornuAttributes *attributes);

/* The types of the results, after the checks of cornu__check_call. */
CornuStatus cornu__op_type(const CornuOpCall *call, CornuType *out);

/* Runs the reference kernel of one op without checks. Bad data (a label out of range) is
 * CORNU_ERR_VALUE with the row in the message. */
CornuStatus cornu__op_reference(const CornuReferenceCall *call);

/* As cornu__op_reference, on packed host arrays of the declared dtypes, for a device without a
 * kernel of its own (fallback.c): operands are converted to double, results rounded. Allocates
 * nothing; `scratch` has room for cornu__reference_scratch() doubles. */
CornuStatus cornu__reference_run(const CornuOpCall *call, const CornuType *out_type,
                                 const void *const *in, void *const *out, double *scratch);
int64_t cornu__reference_scratch(const CornuOpCall *call, const CornuType *out_type);

/* Converts an array to doubles, and doubles to an array. */
void cornu__widen(CornuArray from, double *to);
void cornu__narrow(const double *from, CornuArray to);

/* ---- Programs by reference kernels (reference.c) ---- */

/* value[v] has room for the elements of value v, those of the inputs filled in; in and in_type have
 * room for cornu__most_operands() operands. */
CornuStatus cornu__reference_program(const CornuProgram *program, double *const *value,
                                     const double **in, CornuType *in_type);
/* One op of it, as cornu__op_reference. */
CornuStatus cornu__reference_program_op(const CornuProgram *program, const CornuProgramOp *op,
                                        double *const *value, const double **in,
                                        CornuType *in_type);
int         cornu__most_operands(const CornuProgram *program);   /* of one op; at least 1 */

/* ---- Helpers to write rules with (operands.c) ---- */

/* Type rules and FLOP rules that many ops share. */
CornuTypeRule cornu__same_type;             /* outputs have the type of operand 0 */
CornuFlopRule cornu__flops_per_element;     /* one per element of operand 0       */

/* The product of non-negative factors, INT64_MAX if it overflows. */
int64_t cornu__flops(int count, const int64_t *factors);

/* Refuses a call: "x is f32 (2, 3), count is i32 (): " and then the reason. `names` are those
 * of the operands, separated by blanks; further operands are left out. */
CornuStatus cornu__refuse(const CornuOpCall *call, CornuStatus status, const char *names,
                          const char *format, ...) CORNU__PRINTF(4, 5);

/* Where the next operand of a pack begins, if the last one ended at `end`. */
int64_t cornu__pack_start(const CornuAttributes_PACK *pack, int64_t end);

/* Integers and floats are numbers, bool is not. */
bool cornu__is_number(CornuDtype dtype);
bool cornu__is_integer(CornuDtype dtype);

/* An integer that the reference has as a double: 2^63 - 1 is 2^63 there. */
static inline int64_t cornu__as_integer(double x) { return x >= 0x1p63 ? INT64_MAX : (int64_t)x; }

/* CORNU_ERR_DTYPE unless operand i is a float; unless it has this dtype. */
CornuStatus cornu__expect_float(const CornuOpCall *call, int i, const char *names);
CornuStatus cornu__expect_dtype(const CornuOpCall *call, int i, CornuDtype dtype,
                                const char *names);
/* CORNU_ERR_SHAPE unless operand i has this rank. */
CornuStatus cornu__expect_rank(const CornuOpCall *call, int i, int rank, const char *names);
/* CORNU_ERR_DTYPE or CORNU_ERR_SHAPE unless operands i and j have the same dtype and shape. */
CornuStatus cornu__expect_alike(const CornuOpCall *call, int i, int j, const char *names);

#endif
