/* Layers that run on the host, one after another, on arrays or over a data set. */
#ifndef CORNU_NN_HOST_PROGRAM_INTERNAL_H
#define CORNU_NN_HOST_PROGRAM_INTERNAL_H

#include "../../../datasets/pipeline/dataset_internal.h"
#include "host_internal.h"

/* A layer, the numbers of the values that it gets, and that of its result. */
typedef struct {
    const CornuLayer *layer;
    int               in[CORNU_MAX_LAYER_TENSORS], in_count, out;
} CornuHostCall;

/* Values are numbered: the given arrays, or components, then the results of calls. */
typedef struct {
    CornuHostCall *calls;
    int            call_count, given, value_count;
    int            results[CORNU_MAX_COMPONENTS], result_count;
} CornuHostProgram;

/* Computes the results of the given arrays, whose axis 0 is the batch: to[i].data of those that are
 * computed are freed with cornu__host_results_free, the others are the given arrays. */
CornuStatus cornu__host_program_run(const CornuHostProgram *program, const CornuArray *given,
                            CornuArray *to);
void        cornu__host_results_free(const CornuHostProgram *program, CornuArray *results);

/* A data set of the results. Takes the source, and the memory of the calls; their layers must
 * outlive it. Lengths that depend on the data are known where the source is of arrays. */
CornuDataset *cornu__dataset_host(CornuDataset *source, CornuHostProgram program);

#endif
