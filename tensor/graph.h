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

/* A graph whose programs run on `device`, which it keeps. */
CornuGraph *cornu_graph_create(CornuDevice *device);

/* Frees the graph and every tensor made in it; variables stay. */
void cornu_graph_free(CornuGraph *graph);

/* The device that it was made for. */
CornuDevice *cornu_graph_device(const CornuGraph *graph);

/* Names the scope of the ops recorded from now on ("dense_2"), for messages and dumps; "" or NULL
 * ends it. */
CornuStatus cornu_graph_scope(CornuGraph *graph, const char *name);

/*
 * keras.remat: cornu_gradients computes the ops recorded between begin and end again where it needs
 * their results, so that these need not be kept for it; what the ops read is kept. The gradients
 * have the same bits. Within such a part another one changes nothing.
 *
 *     cornu_graph_remat_begin(graph);
 *     y = my_function(x);
 *     cornu_graph_remat_end(graph);
 */
void cornu_graph_remat_begin(CornuGraph *graph);
/* Of the outermost begin ends the part. */
void cornu_graph_remat_end(CornuGraph *graph);

/* A value that cornu_graph_feed sets before a run; zeros until then. */
CornuTensor *cornu_graph_input(CornuGraph *graph, CornuType type);

/* As above, but each shard of the device has its own value of this type: its part of the data.
 * Tensors that depend on it vary from shard to shard until cornu_op_all_reduce sums them. Arrays
 * fed to it, and fetched from tensors that vary, have an extra leading axis: the shard. */
CornuTensor *cornu_graph_shard_input(CornuGraph *graph, CornuType type);

/* Copies a host array of the same type into the input. The value stays until the next feed. */
CornuStatus cornu_graph_feed(CornuTensor *input, CornuArray array);

/* As above, for elements first, first + 1, ... of the input, in memory order; the others keep
 * their values. The array has the input's dtype and any shape. */
CornuStatus cornu_graph_feed_part(CornuTensor *input, int64_t first, CornuArray array);

/* The variable's value at the start of a run: the same tensor each time. */
CornuTensor *cornu_read(CornuGraph *graph, CornuVariable *variable);

/* The tensor assigned to the variable last; its value at the start of a run if there is none. */
CornuTensor *cornu_read_assigned(CornuGraph *graph, CornuVariable *variable);

/* Every run of the tensor's graph ends by storing the tensor in the variable; a second
 * assignment to the same variable, or to the packed variable that contains it, replaces the first.
 * Types must be equal. */
CornuStatus cornu_assign(CornuVariable *variable, CornuTensor *tensor);

/* From now on what is recorded reads variables as statements do that run one after the other:
 * cornu_read returns what was assigned before, as cornu_read_assigned. So several updates can be in
 * one step: those of a second optimizer, or a second one of the same. For a new graph. */
void cornu_graph_set_sequential(CornuGraph *graph);

/*
 * For a new graph: it is recorded of whole batches, as on a device of one shard, and the shards of
 * its device share the work when it runs (device/mesh/partition.h). Inputs of
 * cornu_graph_shard_input are whole; the shards are dealt their rows, axis 0, where these divide,
 * and sums over rows are summed over shards. So rows may depend on each other in any way, and the
 * results are those of one shard, to rounding. What an op needs whole is gathered.
 *
 * CORNU_ERR_UNSUPPORTED if other processes have some of the shards. Reading a variable of which
 * each shard has a value of its own (CORNU_PER_SHARD, CORNU_DUPLICATED) then fails likewise. On a
 * device of one shard it changes nothing.
 */
CornuStatus cornu_graph_set_whole_batch(CornuGraph *graph);

/* How many shards' parts of a batch an op is recorded for: the device's, or 1. */
int cornu_graph_shards(const CornuGraph *graph);

/* Packs one tensor for each part of a packed variable in that variable's layout: f32 (extent). */
CornuTensor *cornu_pack(const CornuVariable *whole, CornuTensor *const *parts);
/* The elements of `part` in a tensor of that layout, in the shape of `part`. */
CornuTensor *cornu_part(CornuTensor *packed, const CornuVariable *part);

/* d_x[i] = the gradient of the scalar float `loss` with respect to x[i]; zeros if the loss does
 * not depend on it. An op on the way that has no gradient gives CORNU_ERR_UNSUPPORTED, naming it.
 * The recorded ops are rewritten first (rewrite.c), so that the backward pass benefits too. */
CornuStatus cornu_gradients(CornuTensor *loss, CornuTensor *const *x, int count,
                            CornuTensor **d_x);

/* Runs the graph: performs all assignments once and copies the fetched values into `out`, the
 * caller's arrays, of the same types as the tensors. count may be 0. Bad data (a label out of
 * range) gives CORNU_ERR_VALUE, naming op and row. */
CornuStatus cornu_run(CornuGraph *graph, CornuTensor *const *fetches, int count,
                      CornuArray *out);

/* Compiles what cornu_run would compile, without running it, so that the first run takes no longer
 * than the others. */
CornuStatus cornu_graph_prepare(CornuGraph *graph, CornuTensor *const *fetches, int count);

/* Whether the graph can still be run: false once a variable that it reads has been packed, or
 * packed differently, since (cornu_variable_pack). */
bool cornu_graph_is_current(const CornuGraph *graph);

/* Makes a run whose fetched or assigned values have nan or infinite elements fail with
 * CORNU_ERR_VALUE, naming the first op that produced one from finite operands, and its scope.
 * Slower. Assignments have been performed by then. */
void cornu_graph_watch(CornuGraph *graph, bool watch);

/* Called before the first run: runs of this graph may take place on one thread while others run
 * other such graphs of the device (device.h, cornu_executable_twin). A variable that the graph
 * reads and does not assign must not change any more: what depends on such variables alone is
 * computed once. Recording, preparing and freeing still count as compiling. */
void cornu_graph_set_concurrent(CornuGraph *graph, bool concurrent);

/* Statistics of the executable that was run or prepared last; NULL before. */
const CornuStatistics *cornu_graph_statistics(const CornuGraph *graph);

/* The executable that was run or prepared last, owned by the device; NULL before. */
CornuExecutable *cornu_graph_executable(const CornuGraph *graph);

/* The program it was compiled from, owned by the graph; NULL before. */
const CornuProgram *cornu_graph_program(const CornuGraph *graph);

#ifdef __cplusplus
}
#endif
#endif
