/* Subgraphs, for the operators that have them. */
#ifndef CORNU_NN_ONNX_BODIES_INTERNAL_H
#define CORNU_NN_ONNX_BODIES_INTERNAL_H

#include "run_internal.h"

typedef struct {
    const CornuReadGraph *graph;
    CornuLookup           names;
} CornuReadBody;

/* Numbers the names of an attribute's graph; cornu__subgraph_free in any case. */
CornuStatus cornu__subgraph_open(const CornuReadStep *step, const char *attribute,
                             CornuReadBody *body);
void        cornu__subgraph_free(CornuReadBody *body);

/* Runs it on its inputs and on what it uses of the graph around it, in the order of the node's
 * operands after its own. `out` has room for its results. */
CornuStatus cornu__subgraph_run(const CornuReadStep *step, const CornuReadBody *body,
                            CornuReadRun *run, const CornuReadOperand *captured,
                            const CornuReadOperand *in, int in_count, CornuReadOperand *out);

#endif
