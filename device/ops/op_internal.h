/* The rules behind each row of ops.def, and the generic treatment of attributes. */
#ifndef CORNU_DEVICE_OP_INTERNAL_H
#define CORNU_DEVICE_OP_INTERNAL_H

#include "op.h"
#include "../program.h"
#include "../status_internal.h"

/* Of all ops but concat. */
enum { CORNU_MAX_INPUTS = 24, CORNU_MAX_OUTPUTS = 12 };

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

/* How many values the op has. */
int cornu__result_count(CornuOpId id, const CornuAttributes *attributes);

/* Attributes, field by field. */
bool     cornu__attributes_equal(CornuOpId id, const CornuAttributes *a, const CornuAttributes *b);
uint64_t cornu__attributes_hash(CornuOpId id, const CornuAttributes *attributes, uint64_t hash);
/* "strides=[2, 2] low=[1, 1]", without the fields that are zero; returns the length as
 * snprintf does. */
int cornu__attributes_print(CornuOpId id, const CornuAttributes *attributes, char *text,
                            size_t size);

/* Puts copies in the place of the programs among the attributes; where that fails, NULLs. */
CornuStatus cornu__attributes_own(CornuOpId id, CornuAttributes *attributes);
/* Frees the programs among attributes that own them. */
void        cornu__attributes_free(CornuOpId id, CornuAttributes *attributes);
/* The program among the attributes, NULL if there is none. */
const CornuProgram *cornu__attributes_program(CornuOpId id, const CornuAttributes *attributes);

/* Mixes one 64-bit word into a hash. */
uint64_t cornu__hash(uint64_t hash, uint64_t word);

/* The type of a buffer that holds a value of `type` for every shard. */
CornuType cornu__sharded(CornuType type, int shards);

/* Checks the number of operands and that dtypes, comparisons and programs among the attributes are
 * known,
 * runs the type rule, and checks that each output can exist. */
CornuStatus cornu__op_type(const CornuOpCall *call, CornuType *out);

/* Runs the reference kernel of one op, checking nothing. A data-dependent fault (a label out of
 * range) is CORNU_ERR_VALUE with the row in the message. */
CornuStatus cornu__op_reference(const CornuReferenceCall *call);

/* The same on packed host arrays of the declared dtypes, for a device without a better kernel:
 * operands are converted to double, results rounded. Allocates nothing; `scratch` is memory for
 * cornu__reference_scratch() doubles. */
CornuStatus cornu__reference_run(const CornuOpCall *call, const CornuType *out_type,
                                 const void *const *in, void *const *out, double *scratch);
int64_t cornu__reference_scratch(const CornuOpCall *call, const CornuType *out_type);

/* Runs a program by reference kernels. value[v] has room for the elements of value v, those of the
 * inputs filled in; in and in_type have room for cornu__most_operands() operands. */
CornuStatus cornu__reference_program(const CornuProgram *program, double *const *value,
                                     const double **in, CornuType *in_type);
int         cornu__most_operands(const CornuProgram *program);   /* of one op; at least 1 */

/* Where the next operand of a pack begins, the one before having ended at `end`. */
int64_t cornu__pack_start(const CornuAttributes_PACK *pack, int64_t end);

/* ---- What rules are written with ---- */

/* Type rules and FLOP rules that many ops share. */
CornuTypeRule cornu__same_type;             /* every operand and output alike */
CornuFlopRule cornu__flops_per_element;     /* one per element of operand 0   */

/* The product of factors that are not negative, INT64_MAX where it does not fit. */
int64_t cornu__flops(int count, const int64_t *factors);

/* Refuses a call: "x is f32 (2, 3), count is i32 (): " and then the reason. `names` are those
 * of the operands, separated by blanks; operands beyond the last name stay unnamed. */
CornuStatus cornu__refuse(const CornuOpCall *call, CornuStatus status, const char *names,
                          const char *format, ...) CORNU__PRINTF(4, 5);

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
