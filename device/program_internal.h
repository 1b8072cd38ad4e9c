/* Ops and programs: what is not public. */
#ifndef CORNU_DEVICE_PROGRAM_INTERNAL_H
#define CORNU_DEVICE_PROGRAM_INTERNAL_H

#include <stddef.h>

#include "lookup_internal.h"
#include "program.h"
#include "status_internal.h"

/* ---- Ops (op.c) ---- */

/* The most operands and results of an op; concat and pack have any number of operands. */
enum { CORNU_MAX_INPUTS = 24, CORNU_MAX_OUTPUTS = 12 };

/* The number of results of the op. */
int cornu__result_count(CornuOpId id, const CornuAttributes *attributes);

/* "strides=[2, 2] low=[1, 1]", without fields that are zero; returns the length, as snprintf. */
int cornu__attributes_print(CornuOpId id, const CornuAttributes *attributes, char *text,
                            size_t size);

/* CORNU_ERR_DTYPE for an unknown dtype, CORNU_ERR_ARGUMENT for an unknown comparison or a missing
 * program. */
CornuStatus cornu__attributes_check(CornuOpId id, const CornuAttributes *attributes);

/* What messages and printed programs call the op: cornu_op_name, or the name of the definition
 * among its attributes. */
const char *cornu__called(CornuOpId id, const CornuAttributes *attributes);

/* The program among the attributes, NULL if there is none. */
const CornuProgram *cornu__attributes_program(CornuOpId id, const CornuAttributes *attributes);

/* The address of that field; NULL if the op's attributes have none. */
const CornuProgram **cornu__attributes_place(CornuOpId id, CornuAttributes *attributes);
/* The place of its list of integers; NULL: it has none. */
CornuInts           *cornu__attributes_list(CornuOpId id, CornuAttributes *attributes);

/* All fields but the program, which cornu__attributes_equal and cornu__attributes_hash include. */
bool     cornu__fields_equal(CornuOpId id, const CornuAttributes *a, const CornuAttributes *b);
/* The fields that are numbers to compute with, and no extents. */
bool     cornu__numbers_equal(CornuOpId id, const CornuAttributes *a, const CornuAttributes *b);
uint64_t cornu__fields_hash(CornuOpId id, const CornuAttributes *attributes, uint64_t hash);

/* ---- Collectives (op.c) ---- */

/* A shard's group: its members in ascending order, and the shard's index among them. */
typedef struct {
    int        size, rank;
    const int *listed;   /* in the attributes; NULL: all shards */
} CornuMembers;

CornuMembers cornu__members(const CornuAttributes *attributes, int shards, int shard);

static inline int cornu__member(const CornuMembers *members, int i)
{
    return members->listed ? members->listed[i] : i;
}

bool cornu__is_collective(CornuOpId id);

/* Whether shards read each other's operands. */
bool cornu__crosses(CornuOpId id);

/* CORNU_ERR_ARGUMENT if the collective was recorded for another number of shards. */
CornuStatus cornu__collective_fits(const CornuOpCall *call, int shards);

/* ---- Programs (program.c) ---- */

/* Whether it has collectives or asks for the shard's number, in a loop or outside. */
bool cornu__between_shards(const CornuProgram *program);

/* A program of ops with these rules, one per id; cornu_program_create takes those of
 * cornu__op_table. NULL and pending on failure. */
CornuProgram *cornu__program_create(const struct CornuOpRules *const *rules);

/* The ops recorded from now on replace this one: they have its scope, its origin, its number of
 * those kept apart and its part of what is computed again. */
CornuStatus cornu__program_follow(CornuProgram *program, const CornuProgramOp *op);

/*
 * What is computed twice on purpose, to be dropped in between: the ops recorded from now on never
 * become one with equal ops of another number, nor do ops that read them, since their operands are
 * unlike. So a weight is gathered forward and again backward, and what a layer computes is computed
 * again for its gradients. Exchanges of shards with a number other than 0 run just before what
 * reads them (host/compile/plan/plan_late.c). 0, as at first: equal ops are one.
 */
static inline void cornu__program_apart(CornuProgram *program, int number)
{
    program->apart = number;
}

/* The largest of these numbers in a program; 0: nothing is kept apart. */
int cornu__program_most_apart(const CornuProgram *program);

/* Checks the number of operands and the attributes, runs the type rule, and checks that each output
 * can exist. */
CornuStatus cornu__check_call(const struct CornuOpRules *const *rules, const CornuOpCall *call,
                              CornuType *out);

/* cornu_op_flops of an op of the program. */
int64_t cornu__program_op_flops(const CornuProgram *program, const CornuProgramOp *op);

/* The type of a buffer that holds a value of `type` for every shard. */
CornuType cornu__sharded(CornuType type, int shards);

/* Attributes, the program among them included. */
bool     cornu__attributes_equal(CornuOpId id, const CornuAttributes *a, const CornuAttributes *b);
uint64_t cornu__attributes_hash(CornuOpId id, const CornuAttributes *attributes, uint64_t hash);

/* Replaces the program and the list among the attributes by copies, or by none if that fails. */
CornuStatus cornu__attributes_own(CornuOpId id, CornuAttributes *attributes);
/* Frees what is among attributes that own it. */
void        cornu__attributes_free(CornuOpId id, CornuAttributes *attributes);

#endif
