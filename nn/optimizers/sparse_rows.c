/*
 * Tables with a sparse gradient: a step reads and writes the rows that the batch has looked up.
 *
 * The gradient is a list of rows and the indices of the table that they belong to. Those of one
 * index are added up in the order of the batch, then the optimizer's formula is applied to the rows
 * of weight and slots alone, which replace the old ones in the table's own memory:
 *
 *     indices -> unique rows, with the sums of their gradients -> w, slots at these rows
 *             -> new w, slots -> the tables
 *
 * With several shards the lists of all of them are joined: what they exchange grows with the batch,
 * not with the table. If the table is sliced, a shard has the lookups of all shards in its slice. A
 * list has as many rows as there are lookups: the last ones, where an index was looked up twice,
 * are of row V, which there is not; they are read as zeros and never written. Their gradients are
 * 0.
 *
 * Source: the lazy updates of tensorflow/core/kernels/training_ops.cc (ResourceSparseApplyAdagrad,
 * -Ftrl, -KerasMomentum, -RMSProp), and of Adam those of tfa.optimizers.LazyAdam.
 */
#include "optimizer_internal.h"

CornuStatus cornu__sparse_check(const CornuOptimizer *optimizer, const CornuVariable *w)
{
    const char *what = !cornu_variable_has_sparse_gradient(w)  ? NULL
                     : optimizer->kind->update_weight          ? "its update of whole weights"
                     : optimizer->weight_decay > 0.0           ? ".weight_decay"
                     : optimizer->use_ema                      ? ".use_ema"
                     : optimizer->accumulation_steps           ? ".gradient_accumulation_steps"
                     : cornu__optimizer_has_groups(optimizer)  ? ".group_size"
                     : !cornu_variable_is_sliced(w)            ? NULL
                     : optimizer->clipnorm > 0.0               ? ".clipnorm of a sliced table"
                     : optimizer->global_clipnorm > 0.0        ? ".global_clipnorm of a sliced one"
                                                               : NULL;
    if (!what) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: %s has a sparse gradient, of the rows that are "
                       "looked up, but %s needs all rows", optimizer->name, cornu_variable_name(w),
                       what);
}

/* Adds up the gradients of equal indices of a table, or of this shard's slice of it; *indices
 * become the rows. */
static CornuTensor *summed(int64_t rows, CornuTensor *g, CornuTensor **indices)
{
    CornuTensor *positions;
    *indices = cornu_op_unique_rows(*indices, rows, &positions);
    return *indices ? cornu_op_segment_sum(g, positions, cornu_tensor_shape(positions).extent[0])
                    : NULL;
}

CornuTensor *cornu__sparse_gradient(const CornuVariable *w, CornuTensor *gradient,
                                    CornuTensor **rows)
{
    CornuTensor      *g;
    const CornuStatus status = cornu_op_gradient_rows(gradient, &g, rows);
    if (status) {
        cornu__fail_prefix(status, cornu_variable_name(w));
        return cornu__null();
    }
    return summed(cornu_tensor_shape(gradient).extent[0], g, rows);
}

CornuTensor *cornu__sparse_reduce(const CornuVariable *w, CornuTensor *g, CornuTensor **rows)
{
    if (!g || !*rows) return NULL;
    if (cornu_variable_is_sliced(w)) return g;   /* the lookups of all shards in these rows */
    if (!cornu_tensor_varies(*rows)) return cornu_tensor_varies(g) ? cornu_op_all_reduce(g) : g;
    *rows = cornu_op_all_gather(*rows, NULL);
    g = cornu_op_all_gather(g, NULL);
    return cornu_device_shards(cornu_variable_device(w)) == 1
         ? g : summed(cornu_variable_type(w).shape.extent[0], g, rows);
}

CornuTensor *cornu__sparse_read(CornuTensor *table, CornuTensor *rows)
{
    if (!table || !rows) return NULL;
    return cornu_op_gather_rows(table, rows);
}

CornuStatus cornu__sparse_assign(CornuVariable *table, CornuTensor *rows, CornuTensor *values)
{
    if (!rows || !values) return cornu_error_take();
    CornuTensor *old = cornu_read(cornu_tensor_graph(rows), table);
    CornuTensor *replaced = cornu_op_scatter_rows(old, rows, values);
    return replaced ? cornu_assign(table, replaced) : cornu_error_take();
}

CornuStatus cornu__sparse_fill(CornuVariable *table, double value)
{
    CornuGraph  *graph = cornu_graph_create(cornu_variable_device(table));
    CornuTensor *old = graph ? cornu_read(graph, table) : NULL;
    CornuTensor *all = old ? cornu_op_constant_like(old, value) : NULL;
    if (all && cornu_tensor_varies(old))   /* a value that each shard makes */
        all = cornu_op_add(all, cornu_op_scale(cornu_op_convert(cornu_op_replica_id(graph),
                                                                CORNU_F32), 0.0));
    CornuStatus  status = all ? cornu_assign(table, all) : cornu_error_take();
    if (!status) status = cornu_run(graph, NULL, 0, NULL);
    cornu_graph_free(graph);
    return status;
}
