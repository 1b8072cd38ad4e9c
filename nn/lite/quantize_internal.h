/* What other rooms see of a model of 8 bits. */
#ifndef CORNU_NN_LITE_QUANTIZE_INTERNAL_H
#define CORNU_NN_LITE_QUANTIZE_INTERNAL_H

#include "graph/graph.h"
#include "quantize.h"

/* Its graph, which lives as long as the model. */
const CornuLiteGraph *cornu__int8_graph(const CornuInt8Model *model);

#endif
