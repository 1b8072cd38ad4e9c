/* What the files of the last pass, plan_*.c, need of each other. */
#ifndef CORNU_DEVICE_HOST_PLAN_INTERNAL_H
#define CORNU_DEVICE_HOST_PLAN_INTERNAL_H

#include "../../memory_internal.h"
#include "passes.h"

/* One step runs before another: a list of successors for each step. */
typedef struct { int to, next; } CornuEdge;

typedef struct {
    CornuPlan  *plan;
    int        *writer;       /* the step that makes a root value, -1: none */
    int        *head;         /* the first edge of a step, -1: none */
    int        head_space;
    CornuEdge      *edges;
    int        edge_count, edge_space;
    bool      *seen;         /* of a search, per step */
    int        seen_space;
    int       *left;         /* steps that it has still to look at */
    int        left_space;
    int        writer_space;
} CornuPlanner;

/* ---- plan_order.c ---- */

/* The step is new: room for it, and it is the maker of what it writes. */
CornuStatus cornu__plan_connect(CornuPlanner *p, int step);
/* Edges from the makers of what the step reads. */
CornuStatus cornu__plan_connect_operands(CornuPlanner *p, int step);
CornuStatus cornu__plan_edge(CornuPlanner *p, int from, int to);
/* Whether step `to` has to wait for step `from`. */
bool        cornu__plan_precedes(CornuPlanner *p, int from, int to);

/* Steps in an order that respects all edges, the one wanted first that can run. */
CornuStatus cornu__plan_order(CornuPlanner *p);
void        cornu__plan_find_waits(CornuPlan *plan);

/* The first step of the segment that step i belongs to, and the first one behind it. */
int cornu__plan_segment_first(const CornuPlan *plan, int i);
int cornu__plan_segment_end(const CornuPlan *plan, int i);

/* ---- plan_outputs.c ---- */

/* Makes operands as parts of what ops put them together to, each of one only. */
void        cornu__plan_join_operands(CornuPlanner *p);
/* Outputs into their buffers, or into the inputs that they replace. */
CornuStatus cornu__plan_outputs(CornuPlanner *p);

/* ---- plan_arena.c ---- */

/* Gives every value that is not placed yet its offset in the region, and the region its size. */
CornuStatus cornu__plan_arena(CornuPlan *plan, CornuRegion region, CornuSpace *space);

#endif
