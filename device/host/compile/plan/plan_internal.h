/* Shared by the files of the pass plan_memory, plan_*.c. */
#ifndef CORNU_DEVICE_HOST_PLAN_INTERNAL_H
#define CORNU_DEVICE_HOST_PLAN_INTERNAL_H

#include "../../../memory_internal.h"
#include "../passes.h"

/* One step runs before another: an entry of a list of successors. */
typedef struct { int to, next; } CornuEdge;

/* A step reads an input as its operand k: an entry of a list of such. */
typedef struct { int step, k, next; } CornuReading;

typedef struct {
    CornuPlan  *plan;
    int        *writer;       /* the step that makes a root value, -1: none */
    int        *head;         /* the first edge of a step, -1: none */
    int         head_space;
    CornuEdge  *edges;
    int         edge_count, edge_space;
    int        *seen;         /* by step: the last search that visited it */
    int         seen_space, search;
    int        *left;         /* stack of a search */
    int         left_space;
    int         writer_space;
    CornuReading *readings;   /* of inputs, by steps: lists */
    int         reading_count, reading_space;
    int        *readers;      /* by input: the last of its list, -1: none */
    int        *parts;        /* by value: the first operand of the plan that a step
                                 makes as part of its memory, -1: none */
    int        *next_part;    /* by operand: the next one of the same memory */
    int        *maker;        /* by operand: the step that makes it */
} CornuPlanner;

/* ---- plan_order.c ---- */

/* Adds a step without edges, the writer of its results. */
CornuStatus cornu__plan_connect(CornuPlanner *p, int step);
/* Adds edges from the writers of what the step reads. */
CornuStatus cornu__plan_connect_operands(CornuPlanner *p, int step);
CornuStatus cornu__plan_edge(CornuPlanner *p, int from, int to);
/* Searches for all steps that the edges make run after step `from`, and then tells whether step `i`
 * is among them. */
void        cornu__plan_follow(CornuPlanner *p, int from);
bool        cornu__plan_follows(const CornuPlanner *p, int i);

/* Orders the steps by the edges, and among those that can run by their positions. */
CornuStatus cornu__plan_order(CornuPlanner *p);
/* Finds the steps at which shards wait for each other. */
CornuStatus cornu__plan_find_waits(CornuPlan *plan);

/* By step: the first one of the segment that it belongs to, and the first one after that. */
void cornu__plan_find_segments(const CornuPlan *plan, int *first, int *end);

/* ---- plan_late.c ---- */

/* Adds edges by which ops that are kept apart run just before what reads them. */
CornuStatus cornu__plan_late(CornuPlanner *p);

/* ---- plan_outputs.c ---- */

/* Places operands in the results that ops join them to, each in one only. */
void        cornu__plan_join_operands(CornuPlanner *p);
/* Places outputs in their buffers, or in the inputs that they replace. */
CornuStatus cornu__plan_outputs(CornuPlanner *p);

/* ---- plan_arena.c ---- */

/* Gives every value that is not placed yet its offset in the region, and the region its size. */
CornuStatus cornu__plan_arena(CornuPlan *plan, CornuRegion region, CornuSpace *space);

#endif
