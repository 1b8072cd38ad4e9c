/* What a group consists of: made by elementwise.c, run by group.c. */
#ifndef CORNU_DEVICE_HOST_GROUP_H
#define CORNU_DEVICE_HOST_GROUP_H

#include "../../ops/rules.h"
#include "../compile/elementwise.h"

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
} CornuSlotKind;

typedef struct {
    CornuSlotKind kind;
    size_t        size;      /* bytes of an element                       */
    int           operand;   /* number of the input or output             */
    CornuAccess   access;
    CornuClass    class;     /* of a constant                             */
    double        value;
    size_t        offset;    /* of the register within a thread's memory  */
    int           last_use;  /* the last instruction that reads it        */
} CornuSlot;

typedef struct {
    CornuVector          *run;
    const CornuProgramOp *op;          /* NULL: it only loads, rounds or stores */
    int                   out[CORNU_VECTOR_OUTPUTS], in[CORNU_VECTOR_INPUTS]; /* slots, -1: none */
    float                 attributes[3];
    int64_t               repeat, extent;
    CornuRandom           random;
    int                   seed[3];     /* inputs seed, iteration, position; -1: not random */
} CornuInstruction;

struct CornuGroup {
    int64_t           count, chunk;    /* elements in all, and of one piece of work */
    CornuSlot        *slots;
    int               slot_count, slot_space;
    CornuInstruction *instructions;
    int               instruction_count, instruction_space;
    CornuValue       *inputs;
    int               input_count, input_space;
    size_t            bytes;           /* memory of one thread: the slots' addresses, then
                                          the registers */
};

#endif
