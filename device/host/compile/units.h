/*
 * Units: ops of a program that are to run as one step, and which units depend on which.
 *
 * At first each op is a unit. fuse.c joins them; no unit may depend on itself by way of another.
 *
 * Units are kept in an order in which each comes after those that it depends on. A search for what
 * a unit depends on leaves out what comes before the unit that it looks for, and where two units
 * are joined only those between them change their places. In deep networks most pairs of units
 * that could be joined are far apart, one in the forward and one in the backward pass, with a path
 * between them; a spanning tree of the ops, which joining does not change, shows most of these
 * without a search.
 * Sources: Pearce and Kelly, "A Dynamic Topological Sort Algorithm for Directed Acyclic Graphs",
 * section 2; Agrawal, Borgida and Jagadish, "Efficient Management of Transitive Relationships in
 * Large Data and Knowledge Bases", section 3, of intervals of a spanning tree.
 */
#ifndef CORNU_DEVICE_HOST_UNITS_H
#define CORNU_DEVICE_HOST_UNITS_H

#include "../../program.h"

/* A unit and its place in the order. */
typedef struct { int rank, unit; } CornuRanked;

typedef struct {
    const CornuProgram *program;
    int *of;       /* by op: its unit, which is named after the first op of it */
    int *next;     /* by op: the next op of its unit, -1: it is the last */
    /* By operand of the program, once ordered: */
    int *direct;   /* the op whose result is read in a register if the two ops are in one unit,
                      -1: none; the caller's to fill in before */
    int *root;     /* the op that makes what the operand is, or is a view or broadcast of, -1 */
    int *reader;   /* the op that has the operand */
    int *other;    /* the next operand with the same root, -1: none */
    /* By op, once ordered: */
    int *first;    /* the first operand whose root it is, -1: none */
    int *entered, *left;   /* numbers of its subtree of the spanning tree: from, and up to */
    int *rank;     /* of a unit: its place in the order */
    int *stamp;    /* of a unit: the last search that met it */
    int  search;
    int *found;    /* units met by the search */
    CornuRanked *moved;
} CornuUnits;

/* CORNU_ERR_MEMORY; free them also then. The program has to outlive them. */
CornuStatus cornu__units_create(CornuUnits *units, const CornuProgram *program);
void        cornu__units_free(CornuUnits *units);

int cornu__unit_size(const CornuUnits *units, int unit);

/* Adds a unit of one op, all ops of which come before it, at the end of another. */
void cornu__units_append(CornuUnits *units, int unit, int op);

/* Takes an op out of its unit: it is one by itself. */
void cornu__units_leave(CornuUnits *units, int op);

/* Joins two units. */
void cornu__units_merge(CornuUnits *units, int a, int b);

/* Orders the units. is_seen_through: by op, those that are not steps as what they make is read
 * through them, and that have one operand or none. Afterwards units may be appended no more. */
void cornu__units_order(CornuUnits *units, const bool *is_seen_through);

/* Joins unit `to` with `from`, which reads results of it, unless it also depends on it by way of
 * other units or of memory; returns whether it did. */
bool cornu__units_join(CornuUnits *units, int from, int to);

#endif
