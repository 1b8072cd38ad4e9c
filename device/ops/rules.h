/* The rules of an op, which say what its row of ops.def means, and what rules are written with. */
#ifndef CORNU_DEVICE_OPS_RULES_H
#define CORNU_DEVICE_OPS_RULES_H

#include "../program_internal.h"

/* Fills the types of the op's outputs, or fails naming both sides ("a is …, b is …"). The
 * operands' number and dtypes' validity are checked before. */
typedef CornuStatus CornuTypeRule(const CornuOpCall *call, CornuType *out);

typedef int64_t CornuFlopRule(const CornuOpCall *call);

/* Records what the op means in other ops: `in` are its operands in `program`, `out` receives
 * the values that stand for its outputs. */
typedef CornuStatus CornuDecompose(CornuProgram *program, const CornuOpCall *call,
                                   const CornuValue *in, CornuValue *out);

/* The reference computes in double: every element of every dtype is a double here. */
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
    CornuDecompose *decompose;    /* or CORNU_PRIMITIVE */
    CornuReference *reference;
} CornuOpRules;

/* The explicit markers for "there is nothing to say here". */
CornuFlopRule  cornu__no_flops;
CornuDecompose cornu__primitive;
#define CORNU_NO_FLOPS  cornu__no_flops
#define CORNU_PRIMITIVE cornu__primitive

#define CORNU_OP(ID, name, inputs, outputs, LIST) extern const CornuOpRules cornu__##name##_rules;
#include "ops.def"
#undef CORNU_OP

/* The rules of every op (table.c). Nothing that rules call may refer to it: they find those of other
 * ops in the program that they are given. */
extern const CornuOpRules *const cornu__op_table[CORNU_OP_COUNT];

/* ---- Looked up in the table (rules.c), for whoever is above it ---- */

const CornuOpRules *cornu__op_rules(CornuOpId id);

/* As cornu__check_call. */
CornuStatus cornu__op_type(const CornuOpCall *call, CornuType *out);

/* Runs the reference kernel of one op, checking nothing. A data-dependent fault (a label out of
 * range) is CORNU_ERR_VALUE with the row in the message. */
CornuStatus cornu__op_reference(const CornuReferenceCall *call);

/* As cornu__op_reference on packed host arrays of the declared dtypes, for a device without a better
 * kernel (fallback.c): operands are converted to double, results rounded. Allocates nothing;
 * `scratch` is memory for cornu__reference_scratch() doubles. */
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

/* ---- What rules are written with (operands.c) ---- */

/* Type rules and FLOP rules that many ops share. */
CornuTypeRule cornu__same_type;             /* every operand and output alike */
CornuFlopRule cornu__flops_per_element;     /* one per element of operand 0   */

/* The product of factors that are not negative, INT64_MAX where it does not fit. */
int64_t cornu__flops(int count, const int64_t *factors);

/* Refuses a call: "x is f32 (2, 3), count is i32 (): " and then the reason. `names` are those
 * of the operands, separated by blanks; operands beyond the last name stay unnamed. */
CornuStatus cornu__refuse(const CornuOpCall *call, CornuStatus status, const char *names,
                          const char *format, ...) CORNU__PRINTF(4, 5);

/* Where the next operand of a pack begins, the one before having ended at `end`. */
int64_t cornu__pack_start(const CornuAttributes_PACK *pack, int64_t end);

/* Integers and floats are numbers, bool is not. */
bool cornu__is_number(CornuDtype dtype);
bool cornu__is_integer(CornuDtype dtype);

/* CORNU_ERR_DTYPE unless operand i is a float, has this dtype. */
CornuStatus cornu__expect_float(const CornuOpCall *call, int i, const char *names);
CornuStatus cornu__expect_dtype(const CornuOpCall *call, int i, CornuDtype dtype,
                                const char *names);
/* CORNU_ERR_SHAPE unless operand i has this rank. */
CornuStatus cornu__expect_rank(const CornuOpCall *call, int i, int rank, const char *names);
/* Unless operands i and j have one dtype and one shape: CORNU_ERR_DTYPE or CORNU_ERR_SHAPE. */
CornuStatus cornu__expect_alike(const CornuOpCall *call, int i, int j, const char *names);

#endif
