/* The rules behind each row of ops.def, and the generic treatment of attributes. */
#ifndef CORNU_DEVICE_OP_INTERNAL_H
#define CORNU_DEVICE_OP_INTERNAL_H

#include "op.h"
#include "program.h"
#include "status_internal.h"

enum { CORNU_MAX_OUTPUTS = 3 };

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

typedef struct {
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

const CornuOpRules *cornu__op_rules(CornuOpId id);

/* Attributes, field by field. */
bool     cornu__attributes_equal(CornuOpId id, const CornuAttributes *a, const CornuAttributes *b);
uint64_t cornu__attributes_hash(CornuOpId id, const CornuAttributes *attributes, uint64_t hash);
/* "strides=[2, 2] low=[1, 1]", without the fields that are zero; returns the length as
 * snprintf does. */
int cornu__attributes_print(CornuOpId id, const CornuAttributes *attributes, char *text,
                            size_t size);

/* Mixes one 64-bit word into a hash. */
uint64_t cornu__hash(uint64_t hash, uint64_t word);

/* Checks the number of operands, then runs the type rule. */
CornuStatus cornu__op_type(const CornuOpCall *call, CornuType *out);

/* Runs the reference kernel of one op, checking nothing. A data-dependent fault (a label out of
 * range) is CORNU_ERR_VALUE with the row in the message. */
CornuStatus cornu__op_reference(const CornuReferenceCall *call);

/* Type rules and FLOP rules that many ops share. */
CornuTypeRule cornu__same_type;             /* every operand and output alike */
CornuFlopRule cornu__flops_per_element;     /* one per element of operand 0   */

/* CORNU_ERR_DTYPE unless operand i is a float. */
CornuStatus cornu__expect_float(const CornuOpCall *call, int i);
/* CORNU_ERR_SHAPE unless operand i has this rank. */
CornuStatus cornu__expect_rank(const CornuOpCall *call, int i, int rank);

#endif
