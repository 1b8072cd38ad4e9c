/*
 * Ops: what a program is made of.
 *
 * An op is a row of ops/ops.def plus its rules (CornuOpRules) in device/ops/FAMILY.c: type rule,
 * FLOP rule, decomposition, reference kernel. The comment above them says what the op means. Its
 * public function and gradient rule are in tensor/ops/FAMILY.c.
 */
#ifndef CORNU_DEVICE_OP_H
#define CORNU_DEVICE_OP_H

#include "type.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
#define CORNU_OP(ID, ...) CORNU_OP_##ID,
#include "ops/ops.def"
#undef CORNU_OP
    CORNU_OP_COUNT
} CornuOpId;

typedef enum {
    CORNU_EQUAL, CORNU_NOT_EQUAL, CORNU_LESS, CORNU_LESS_EQUAL, CORNU_GREATER,
    CORNU_GREATER_EQUAL
} CornuComparison;

/* Of lookups in a table (V, C): the index of no row is none, -1, or V, as unique_rows has it. */
typedef enum {
    CORNU_NOT_PADDED, CORNU_PADDED_BELOW, CORNU_PADDED_ABOVE
} CornuPaddedIndex;

struct CornuProgram;
struct CornuDefinition;   /* definition.h */

/* The most numbers that a registered op may be given. */
enum { CORNU_OP_NUMBERS = 8 };

/* `count` whole numbers; none if that is 0. */
typedef struct {
    int        count;
    const int *at;
} CornuInts;

/* The C type of each kind of attribute field. A program or a list among the attributes is copied
 * when the op is recorded. */
typedef int64_t         CornuField_I64;
typedef int64_t         CornuField_I64S[CORNU_MAX_RANK];
typedef CornuInts       CornuField_INTS;
typedef double          CornuField_F64;
typedef CornuDtype      CornuField_DTYPE;
typedef CornuComparison CornuField_COMPARISON;
typedef const struct CornuProgram *CornuField_PROGRAM;
typedef const struct CornuDefinition *CornuField_DEFINITION;
typedef double          CornuField_F64S[CORNU_OP_NUMBERS];

/* The most shards a device may have. */
enum { CORNU_MAX_SHARDS = 1024 };

/* The axes along which a device without a mesh has its shards: one, number 0. */
enum { CORNU_ALL_SHARDS = 1 };

/* One struct per attribute list, CornuAttributes_CONV2D and so on; an op's row names its list. */
#define F(KIND, name) CornuField_##KIND name;
#define CORNU_ATTRIBUTES(LIST, member, fields) typedef struct { fields } CornuAttributes_##LIST;
#include "ops/attributes.def"
#undef CORNU_ATTRIBUTES
#undef F

typedef union {
#define CORNU_ATTRIBUTES(LIST, member, fields) CornuAttributes_##LIST member;
#include "ops/attributes.def"
#undef CORNU_ATTRIBUTES
} CornuAttributes;

/* An op as its rules see it. */
typedef struct {
    CornuOpId              id;
    const CornuAttributes *attributes;
    int                    in_count;
    const CornuType       *in;
} CornuOpCall;

/* "conv2d"; "unknown" for any other number. */
const char *cornu_op_name(CornuOpId id);
int         cornu_op_input_count(CornuOpId id);  /* -1: one or more */
int         cornu_op_output_count(CornuOpId id); /* -1: as many as the definition or the
                                                    program among its attributes has */

/* Floating-point operations: multiplications, additions, and one per exp, tanh, comparison, …; 0
 * for ops that only move data. */
int64_t cornu_op_flops(const CornuOpCall *call);

#ifdef __cplusplus
}
#endif
#endif
