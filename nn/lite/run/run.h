/*
 * Predicting with an 8-bit graph, by the integers of LiteRT's reference kernels
 * (device/edgetpu/kernels.h): all tensors between operators are int8 but those that QUANTIZE reads
 * and DEQUANTIZE makes.
 */
#ifndef CORNU_NN_LITE_RUN_H
#define CORNU_NN_LITE_RUN_H

#include "../graph/graph.h"

typedef struct CornuLiteRun CornuLiteRun;

/* Whether all operators of a graph, which may still be one of f32, have kernels:
 * CORNU_ERR_UNSUPPORTED naming the first that has none. */
CornuStatus cornu__lite_run_check(const CornuLiteGraph *graph);

/* Checks every operator and packs its weights. The graph must outlive the run. `threads` share the
 * rows of a batch; 0 is one for each processor. NULL with CORNU_ERR_UNSUPPORTED for an operator
 * that has no kernel, CORNU_ERR_SHAPE or CORNU_ERR_FORMAT where a graph is not consistent, and
 * CORNU_ERR_MEMORY. */
CornuLiteRun *cornu__lite_run_create(const CornuLiteGraph *graph, int threads);
void          cornu__lite_run_free(CornuLiteRun *run);

/* One array of `rows` rows for each input and output, of the tensor's dtype and shape, dense. The
 * same bits for any number of threads and any division into batches. One caller at a time. */
CornuStatus cornu__lite_run(CornuLiteRun *run, int64_t rows, const void *const *in,
                            void *const *out);

#endif
