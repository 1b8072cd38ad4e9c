/*
 * Groups: elementwise ops that run as one kernel.
 *
 * All ops of a group have the same number of elements. A group runs block by block: each op is
 * one vector loop (vector.h) over a block, values between ops stay in registers, which are arrays
 * in the first-level cache, and only what other steps read goes to memory. So an Adam update reads
 * and writes each of w, m and v once.
 *
 * Or its elements are rows, as long as a block at most, and some ops have one element for each row:
 * sums or maxima of rows, what is made of these, and what is repeated along rows. Then blocks are
 * whole rows. So a layer normalization reads each row once, and its gradient.
 *
 * A group also looks through ops that compute nothing: a reshape is read in place, a broadcast
 * through an access (access.h), a constant is a register filled once. Rows of a table are looked up
 * block by block, and replaced likewise: so a lazy Adam update reaches each row of w, m and v once,
 * however large the tables are.
 *
 * group.c makes groups, run/group.c runs them.
 */
#ifndef CORNU_DEVICE_HOST_GROUP_H
#define CORNU_DEVICE_HOST_GROUP_H

#include "../../../program.h"
#include "../../machine/access.h"
#include "../../machine/vector.h"

/* Where an instruction finds an operand. */
typedef enum {
    CORNU_SLOT_REGISTER,  /* made by an instruction                                      */
    CORNU_SLOT_CONSTANT,  /* a register filled with `value` before the first block       */
    CORNU_SLOT_SCALAR,    /* a register filled with the one element of input `operand`   */
    CORNU_SLOT_PERIOD,    /* registers filled with an input repeated; a block starts at
                             its place in the period                                     */
    CORNU_SLOT_GATHERED,  /* a register into which an input is gathered for each block   */
    CORNU_SLOT_INPUT,     /* the memory of input `operand`; a register at a ragged end   */
    CORNU_SLOT_OUTPUT,    /* the memory of output `operand`, likewise                    */
    CORNU_SLOT_ROWS,      /* a register into which rows of input `operand` are copied    */
    CORNU_SLOT_REPLACED,  /* a register that is copied to rows of output `operand`       */
} CornuSlotKind;

/* Rows of a table that a gather looks up or a scatter_rows replaces. */
typedef struct {
    const CornuProgramOp *op;
    int                   table;          /* the input whose rows they are */
    int                   indices;        /* the input that says which     */
    CornuType             type;           /* of the indices                */
    int64_t               count, columns; /* of the table                  */
    int64_t               padded;         /* as the gather's attribute     */
} CornuRows;

typedef struct {
    CornuSlotKind kind;
    bool          by_row;    /* it has an element for each row            */
    size_t        size;      /* bytes of an element                       */
    int           operand;   /* number of the input or output             */
    CornuAccess   access;
    CornuRows     rows;
    CornuClass    class;     /* of a constant                             */
    double        value;
    size_t        offset;    /* of the register within a thread's memory  */
    int           last_use;  /* the last instruction that reads it        */
} CornuSlot;

typedef struct {
    CornuVector          *run;
    const CornuProgramOp *op;          /* NULL: it only loads, rounds, repeats or stores */
    bool                  by_row;      /* it goes over an element for each row           */
    bool                  whole_rows;  /* it goes over rows, exactly as many as there are */
    int                   out[CORNU_VECTOR_OUTPUTS], in[CORNU_VECTOR_INPUTS]; /* slots, -1: none */
    double                attributes[3];
    int64_t               repeat, extent;
    CornuRandom           random;
    int                   seed[3];     /* inputs seed, iteration, position; -1: not random */
} CornuInstruction;

typedef struct {
    int64_t           count, chunk;    /* elements in all, and of one piece of work */
    int64_t           row, block;      /* of a row, 1 where there are none; and of a block */
    CornuSlot        *slots;
    int               slot_count, slot_space;
    CornuInstruction *instructions;
    int               instruction_count, instruction_space;
    CornuValue       *inputs;          /* the values it reads, in that order */
    int               input_count, input_space;
    size_t            bytes;           /* memory of one thread: the slots' addresses, then
                                          the registers */
} CornuGroup;

/* The value in memory that a group reads for `value`, and how it reads it. */
CornuValue cornu__group_source(const CornuProgram *program, CornuValue value, CornuAccess *access);

/* Whether operand k of a group's op is read as it is in memory, not element by element. */
bool cornu__group_reads_memory(const CornuProgramOp *op, int k);

/* The elements that the op goes over: those of its result, or of the rows that it replaces, or
 * sums up. */
int64_t cornu__group_count(const CornuProgram *program, const CornuProgramOp *op);

/* Elements of the rows that the op sums up, or whose maxima it finds, if a group can; else 1. */
int64_t cornu__group_reduces(const CornuProgram *program, const CornuProgramOp *op);

/* Elements of the rows along which a group can repeat what it reads of this type by `access`, one
 * element for each row; else 1. */
int64_t cornu__group_repeats(CornuType type, const CornuAccess *access);

/* Whether a group can compute the op as an elementwise one. Broadcast, reshape and constant are
 * looked through and do not count. */
bool cornu__group_computes(const CornuVectors *vectors, const CornuProgram *program,
                           const CornuProgramOp *op);

/*
 * Makes a group of the ops numbered in `ops`, ascending, in rows of `row` elements, or 1.
 * `outputs` are the values to write to memory: results of members, or a broadcast, reshape or
 * constant to be written out. `slot_of` is memory for the time of the call, an element for each
 * value of the program, all of them -1 before and after. NULL and CORNU_ERR_MEMORY.
 */
CornuGroup *cornu__group_create(const CornuVectors *vectors, const CornuProgram *program,
                                const int *ops, int op_count, int64_t row,
                                const CornuValue *outputs, int output_count, int *slot_of);
void        cornu__group_free(CornuGroup *group);

/* Whether output `out` may be written over input `in`: each of its elements is written after all
 * reads of that element of the input. */
bool cornu__group_in_place(const CornuGroup *group, int in, int out);

/* Prints " of 1024: multiply add relu". */
void cornu__group_print(const CornuGroup *group, FILE *to);

/* Bytes of scratch memory that running it takes. */
size_t cornu__group_scratch(const CornuGroup *group, int threads);

#endif
