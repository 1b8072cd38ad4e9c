/*
 * Programs: ops in SSA form over typed values. Plain data, the contract between tensor (which
 * records and differentiates) and device (which compiles and runs).
 *
 * Values are numbered from 0 in the order they are made: inputs as they are declared, and
 * the outputs of each op. An op uses only earlier values, so the order of the ops is always
 * a valid order to run them in.
 */
#ifndef CORNU_DEVICE_PROGRAM_H
#define CORNU_DEVICE_PROGRAM_H

#include <stdio.h>

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t CornuValue;
#define CORNU_NO_VALUE ((CornuValue)-1)

typedef struct {
    CornuType type;
    int       op;      /* the op that makes it, -1 for an input */
    int       index;   /* which output of that op, or which input of the program */
    unsigned char varies;   /* from shard to shard, as a per-shard input, replica_id, shard_slice,
                               and all that depends on them other than through an all_reduce or
                               all_gather: bit i, along axis i of the mesh (mesh/mesh.h). Without a
                               mesh all shards are along axis 0. 0: all have the same */
    bool      fixed;   /* an input that has the same value in every run */
    bool      replaced;   /* an input that an output is written into */
} CornuProgramValue;

typedef struct {
    CornuOpId       id;
    CornuAttributes attributes;
    int             in_first, in_count;   /* a range of CornuProgram.operands      */
    CornuValue      out_first;            /* its outputs are out_first, out_first+1, … */
    int             out_count;
    const char     *scope;                /* "dense_2" or "": the layer that recorded it;
                                             neither hashed nor compared, nor is: */
    int             origin;               /* in a compiled program, the op of the recorded one
                                             that it comes from; -1: of none; nor is: */
    int             remat;                /* of a recorded program, the part that the backward
                                             pass computes again (tensor/graph.h); 0: none */
    int             apart;                /* ops that are alike but for this number are not made
                                             one (program_internal.h) */
} CornuProgramOp;

/* An output; unless `alias` is -1 it is written into that input's buffer, which is how a
 * variable is updated. */
typedef struct {
    CornuValue value;
    int        alias;
} CornuProgramOutput;

typedef struct CornuProgram {
    CornuProgramValue  *values;
    int                 value_count, value_space;
    CornuProgramOp     *ops;
    int                 op_count, op_space;
    CornuValue         *operands;
    int                 operand_count, operand_space;
    CornuValue         *inputs;
    int                 input_count, input_space;
    CornuProgramOutput *outputs;
    int                 output_count, output_space;
    struct CornuScopes *scopes;   /* owns the strings that ops point to */
    const char         *scope;    /* given to the ops recorded from now on, as are: */
    int                 origin, apart, remat;
    const struct CornuOpRules *const *rules;   /* of its ops, by id: what they mean */
} CornuProgram;

/* A program without ops, which the caller frees. NULL with a pending error: CORNU_ERR_MEMORY. */
CornuProgram *cornu_program_create(void);
/* With all that it owns; NULL is ignored. */
void          cornu_program_free(CornuProgram *program);

/* Sets the scope of the ops recorded from now on; the string is copied. NULL is "". */
CornuStatus cornu_program_scope(CornuProgram *program, const char *scope);

/* Declares the next input, which all shards share. */
CornuStatus cornu_program_input(CornuProgram *program, CornuType type, CornuValue *out);

/* Declares the next input, of which every shard has its own: `type` is what one shard sees; the
 * buffer has one more axis in front, the shard. */
CornuStatus cornu_program_shard_input(CornuProgram *program, CornuType type, CornuValue *out);
/* Likewise; those of shards that differ along other axes of the mesh than these are equal. */
CornuStatus cornu_program_mesh_input(CornuProgram *program, CornuType type, unsigned axes,
                                     CornuValue *out);

/* Declares an input of `to` like the input `value` of `from`. */
CornuStatus cornu_program_copy_input(CornuProgram *to, const CornuProgram *from, CornuValue value,
                                     CornuValue *out);

/* Promises that the input has the same value in every run: what depends on such inputs alone, say
 * the layout of weights for the kernels of a machine, may be computed once. */
void cornu_program_fix_input(CornuProgram *program, CornuValue value);

/* Records an op and fills `out` with its values, cornu_op_output_count() of them. Shapes and dtypes
 * are checked here; on failure the message begins with the scope and the op's name, the program is
 * unchanged, and `out` is filled with CORNU_NO_VALUE, only its first element if the count is -1.
 * attributes NULL is all zeros; a program among them is copied. `in` and `out` may be the same
 * array; neither `in` nor `attributes` may point into the program, whose arrays move. */
CornuStatus cornu_program_record(CornuProgram *program, CornuOpId id,
                                 const CornuAttributes *attributes, const CornuValue *in,
                                 int in_count, CornuValue *out);

/* Declares the next output; alias is an input's number or -1. The two must agree in type and in
 * whether they vary from shard to shard, and an input may be the alias of one output only. */
CornuStatus cornu_program_output(CornuProgram *program, CornuValue value, int alias);

/* The type of a value, what one shard sees of it. */
CornuType         cornu_program_type(const CornuProgram *program, CornuValue value);

/* The type of the buffer that holds an input or output on a device with `shards` shards. */
CornuType         cornu_program_buffer_type(const CornuProgram *program, CornuValue value,
                                            int shards);
/* The op's operands, op->in_count of them; owned by the program, and valid until it records another
 * op. */
const CornuValue *cornu_program_operands(const CornuProgram *program, const CornuProgramOp *op);

/* Fills `in` (room for op->in_count types) and returns the op as its rules see it. */
CornuOpCall cornu_program_call(const CornuProgram *program, const CornuProgramOp *op,
                               CornuType *in);

/* "conv2d"; of an op that a user registered, the name it was given. */
const char *cornu_program_op_name(const CornuProgramOp *op);

/* Sum of cornu_op_flops over all ops. */
int64_t cornu_program_flops(const CornuProgram *program);

/* Equal programs have equal hashes, in every process; scopes do not count. */
uint64_t cornu_program_hash(const CornuProgram *program);
/* Whether two programs compute the same: inputs, ops with their attributes, and outputs are
 * equal. */
bool     cornu_program_equal(const CornuProgram *a, const CornuProgram *b);

/* A copy with its own memory. */
CornuProgram *cornu_program_copy(const CornuProgram *program);

/*
 * One line per input, op and output:
 *     %0 = input 0 : f32 (128, 784)
 *     %2 = matmul(%0, %1) transpose_b=1 : f32 (128, 10)    dense
 *     output 0 = %2 into input 1
 */
void cornu_program_print(const CornuProgram *program, FILE *to);

#ifdef __cplusplus
}
#endif
#endif
