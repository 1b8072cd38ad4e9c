/* What the operators of an 8-bit graph cost on an Edge TPU, and which of them it has. */
#ifndef CORNU_NN_LITE_COST_H
#define CORNU_NN_LITE_COST_H

#include "../../device/edgetpu/edgetpu.h"
#include "graph/graph.h"

/* Of operator `o`. Limitations that depend on sizes, which Coral does not publish, are not known
 * here. */
CornuEdgeTpuOperator cornu__lite_edgetpu_operator(const CornuLiteGraph *graph, int o);

#endif
