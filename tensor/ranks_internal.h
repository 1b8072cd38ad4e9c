/* Graphs that ranks run together: each computes what its variables are for. Where shards of a stage
 * are of several ranks, these are a group, which does what is said of a rank here, each of its
 * ranks for its own shards. */
#ifndef CORNU_TENSOR_RANKS_INTERNAL_H
#define CORNU_TENSOR_RANKS_INTERNAL_H

#include "../device/mesh/share.h"
#include "../device/processes/processes_internal.h"
#include "graph_internal.h"

enum { CORNU__MOST_STAGE_RANKS = 32 };   /* as many as stages */

/* A variable and the ranks that write it, by a mask; others may have it as well. */
typedef struct {
    CornuBuffer *buffer;
    uint32_t     by;
} CornuWritten;

/* The ranks, or groups of ranks, of a device whose processes run programs of their own. */
typedef struct {
    CornuProcesses *processes;   /* NULL: one */
    int             rank, count;
    int             sharers, place;     /* processes of a group, and which one this is */
    CornuWritten   *written;
    int             written_count;
    CornuMessage   *sends, *receives;   /* of one exchange */
} CornuRanks;

/* Of a device; all zeros but for one rank where its processes run the same programs. */
CornuRanks cornu__ranks_of(const CornuDevice *device);

/* All of them as a mask; the first of a mask that is not 0. */
uint32_t cornu__ranks_all(const CornuRanks *ranks);
int      cornu__first_rank(uint32_t ranks);

/* Whether a variable may be dealt: of a layer or an optimizer, and no number that all read. */
bool cornu__ranks_deal(const CornuBuffer *buffer, bool written);

/* Makes room for what is sent after a run, and at most `messages` others at a time; `written` has
 * `most` entries. */
CornuStatus cornu__ranks_begin(CornuRanks *ranks, int most, int messages);
void        cornu__ranks_end(CornuRanks *ranks);

/* One rank's bytes for others: adds them to the messages of an exchange, `to` a mask. */
void        cornu__ranks_add(const CornuRanks *ranks, CornuExchange *exchange, int from,
                             uint32_t to, CornuBuffer *buffer);

/* What was written by some ranks, for the others that have it, who may be more since then. */
CornuStatus cornu__ranks_share(CornuRanks *ranks);

/* ---- A graph that updates variables ---- */

/* Each rank computes what can be computed of the variables that it has. Of what cannot, such as a
 * norm of all gradients, ranks exchange the operands. */
typedef struct {
    CornuGraph      *graph;           /* the caller's */
    CornuProgram    *program;
    CornuBuffer    **inputs;
    CornuRanks       ranks;
    CornuShared      shared;
    CornuExecutable *executables[CORNU__SHARE_ROUNDS];   /* NULL: nothing to do */
    CornuBuffer    **crossing, **in, **out;
} CornuRankGraph;

/* Deals the variables that the graph alone has. All ranks call it. NULL with a pending error. */
CornuRankGraph *cornu__rank_graph_create(CornuGraph *graph);
void            cornu__rank_graph_free(CornuRankGraph *graph);
CornuStatus     cornu__rank_graph_run(CornuRankGraph *graph);

#endif
