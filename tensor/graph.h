/*
 * Graphs: programs under construction.
 *
 * Calling an op (ops.h) records it; nothing computes until cornu_run. A graph may be run again
 * and again: the first run with a given list of fetches compiles it, later ones with the same
 * list allocate nothing. Equal programs are compiled once per device, whichever graph they
 * come from.
 *
 *     CornuGraph  *graph = cornu_graph_create(device);
 *     CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F32, 32, 784));
 *     CornuTensor *w = cornu_read(graph, weights);
 *     CornuTensor *loss = cornu_op_mean(cornu_op_square(cornu_op_matmul(x, w)));
 *     CornuTensor *d_w;
 *     cornu_gradients(loss, &w, 1, &d_w);
 *     cornu_assign(weights, cornu_op_subtract(w, cornu_op_scale(d_w, 0.01)));
 *     float value;
 *     cornu_graph_feed(x, cornu_array(images, CORNU_F32, 32, 784));
 *     cornu_run(graph, &loss, 1, &(CornuArray){ cornu_scalar(CORNU_F32), &value });
 */
#ifndef CORNU_TENSOR_GRAPH_H
#define CORNU_TENSOR_GRAPH_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A graph whose programs run on `device`, which must outlive it. */
CornuGraph *cornu_graph_create(CornuDevice *device);

/* Frees the graph and every tensor made in it; variables stay. */
void cornu_graph_free(CornuGraph *graph);

CornuDevice *cornu_graph_device(const CornuGraph *graph);

/* Names who records from now on ("dense_2"), for messages and dumps; "" or NULL ends it. */
CornuStatus cornu_graph_scope(CornuGraph *graph, const char *name);

/* A value that cornu_graph_feed brings in before a run; zeros until then. */
CornuTensor *cornu_graph_input(CornuGraph *graph, CornuType type);

/* As above, but every shard of the device has its own value of this type: data, of which each
 * shard gets a part. What depends on it differs from shard to shard until cornu_op_all_reduce
 * adds it up. It is fed, and such a tensor is fetched, with a leading axis more: the shard. */
CornuTensor *cornu_graph_shard_input(CornuGraph *graph, CornuType type);

/* Copies a host array of the same type in. It stays until the next feed. */
CornuStatus cornu_graph_feed(CornuTensor *input, CornuArray array);

/* As above, elements first, first + 1, ... of the input, in their order in memory; the others
 * stay. The array has the input's dtype and any shape. */
CornuStatus cornu_graph_feed_part(CornuTensor *input, int64_t first, CornuArray array);

/* The variable's value at the start of a run: the same tensor each time. */
CornuTensor *cornu_read(CornuGraph *graph, CornuVariable *variable);

/* Every run of the tensor's graph ends by storing the tensor in the variable; a second
 * assignment of the same variable, or of the whole it is packed into, replaces the first. Types
 * must be equal. */
CornuStatus cornu_assign(CornuVariable *variable, CornuTensor *tensor);

/* One tensor for each part of a packed variable, laid out as it is: f32 (extent). */
CornuTensor *cornu_pack(const CornuVariable *whole, CornuTensor *const *parts);
/* What stands in a tensor so laid out where `part` is in its whole, in the shape of `part`. */
CornuTensor *cornu_part(CornuTensor *packed, const CornuVariable *part);

/* d_x[i] = the gradient of the scalar float `loss` by x[i]; zeros where the loss does not
 * depend on it. An op without a gradient on the way is CORNU_ERR_UNSUPPORTED, naming it. The
 * recorded ops are improved first (rewrite.c), so that the backward pass follows. */
CornuStatus cornu_gradients(CornuTensor *loss, CornuTensor *const *x, int count,
                            CornuTensor **d_x);

/* Runs the graph: performs all assignments once and copies the fetched values into `out`,
 * arrays of the caller whose types must be the tensors'. count may be 0. A fault in the data
 * (a label out of range) is CORNU_ERR_VALUE naming op and row. */
CornuStatus cornu_run(CornuGraph *graph, CornuTensor *const *fetches, int count,
                      CornuArray *out);

/* As cornu_run would, without running: compiles, so that the first run is like the others. */
CornuStatus cornu_graph_prepare(CornuGraph *graph, CornuTensor *const *fetches, int count);

/* Whether the variables that it read are still where they were, so that it can be run: not once
 * some of them are packed otherwise (cornu_variable_pack). */
bool cornu_graph_is_current(const CornuGraph *graph);

/* Lets each run that has a result with nan or infinite elements, a fetched value or an assigned
 * one, end with CORNU_ERR_VALUE naming the op, and who recorded it, that first made one of numbers
 * that were finite. Slower; everything has been assigned by then. */
void cornu_graph_watch(CornuGraph *graph, bool watch);

/* Of the executable that ran or was prepared last; NULL before. */
const CornuStatistics *cornu_graph_statistics(const CornuGraph *graph);

/* What ran or was prepared last; NULL before. It is the device's. */
CornuExecutable *cornu_graph_executable(const CornuGraph *graph);

/* The program that the last run or preparation compiled; NULL before. It is the graph's. */
const CornuProgram *cornu_graph_program(const CornuGraph *graph);

#ifdef __cplusplus
}
#endif
#endif
