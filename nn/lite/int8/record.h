/*
 * A graph of f32 operators as ops of a graph of tensors, which a device then computes.
 */
#ifndef CORNU_NN_LITE_RECORD_H
#define CORNU_NN_LITE_RECORD_H

#include "../../../tensor/ops.h"
#include "../graph/graph.h"

/* Records the operators for batches of `batch` rows. `tensors` has one entry for each tensor of the
 * graph: the inputs of `to` that are to be fed, and what the operators make of them; constants are
 * fed here. CORNU_ERR_UNSUPPORTED names an operator that is not available in f32. */
CornuStatus cornu__lite_record(const CornuLiteGraph *graph, int64_t batch, CornuGraph *to,
                               CornuTensor **tensors);

#endif
