/* Shared by the files of the pass plan_memory, plan_*.c. */
#ifndef CORNU_DEVICE_HOST_PLAN_INTERNAL_H
#define CORNU_DEVICE_HOST_PLAN_INTERNAL_H

#include "../../memory_internal.h"
#include "passes.h"

/* One step runs before another: an entry of a list of successors. */
typedef struct { int to, next; } CornuEdge;

typedef struct {
    CornuPlan  *plan;
    int        *writer;       /* the step that makes a root value, -1: none */
    int        *head;         /* the first edge of a step, -1: none */
    int         head_space;
    CornuEdge  *edges;
    int         edge_count, edge_space;
    bool       *seen;         /* visited by a search, by step */
    int         seen_space;
    int        *left;         /* stack of a search */
    int         left_space;
    int         writer_space;
} CornuPlanner;

/* ---- plan_order.c ---- */

/* Adds a step without edges, the writer of its results. */
CornuStatus cornu__plan_connect(CornuPlanner *p, int step);
/* Adds edges from the writers of what the step reads. */
CornuStatus cornu__plan_connect_operands(CornuPlanner *p, int step);
CornuStatus cornu__plan_edge(CornuPlanner *p, int from, int to);
/* Whether the edges make step `to` run after step `from`. */
bool        cornu__plan_precedes(CornuPlanner *p, int from, int to);

/* Orders the steps by the edges, and among those that can run by their positions. */
CornuStatus cornu__plan_order(CornuPlanner *p);
/* Finds the steps at which shards wait for each other. */
void        cornu__plan_find_waits(CornuPlan *plan);

/* The first step of the segment that step i belongs to, and the first one after it. */
int cornu__plan_segment_first(const CornuPlan *plan, int i);
int cornu__plan_segment_end(const CornuPlan *plan, int i);

/* ---- plan_outputs.c ---- */

/* Places operands in the results that ops join them to, each in one only. */
void        cornu__plan_join_operands(CornuPlanner *p);
/* Places outputs in their buffers, or in the inputs that they replace. */
CornuStatus cornu__plan_outputs(CornuPlanner *p);

/* ---- plan_arena.c ---- */

/* Gives every value that is not placed yet its offset in the region, and the region its size. */
CornuStatus cornu__plan_arena(CornuPlan *plan, CornuRegion region, CornuSpace *space);

#endif
