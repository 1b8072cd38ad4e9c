/* A layer as a loss. */
#include <stdlib.h>

#include "../../layers/layer_internal.h"
#include "../../losses/loss_internal.h"
#include "loss_layer_internal.h"

typedef struct {
    CornuLoss   base;
    CornuLayer *layer;
    bool        each_row;
    char       *record;
} LayerLoss;

/* Of several processes a shard has its rows alone, of which the mean over all is not known. */
static CornuStatus check_shards(const LayerLoss *self, const CornuGraph *graph)
{
    if (self->each_row || cornu_graph_shards(graph) == 1) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: compares the rows of a batch, on %d shards of "
                       "several processes; expected a value for each row", self->base.name,
                       cornu_graph_shards(graph));
}

static CornuTensor *call(const CornuLoss *loss, CornuTensor *y_true, CornuTensor *y_pred)
{
    const LayerLoss *self = (const LayerLoss *)loss;
    if (!y_true || !y_pred || check_shards(self, cornu_tensor_graph(y_pred))) return NULL;
    CornuGraph  *graph = cornu_tensor_graph(y_pred);
    CornuTensor *rows = cornu_op_constant(graph, cornu_scalar(CORNU_I64),
                                          (double)cornu_tensor_shape(y_pred).extent[0]);
    CornuTensor *zero = cornu_op_constant(graph, cornu_scalar(CORNU_I64), 0.0);
    CornuTensor *masks[2] = { NULL, NULL }, *in[2] = { y_true, y_pred }, *out[1], *out_masks[1];
    const CornuCall of = { .graph = graph, .training = true, .count = rows, .total = rows,
                           .seed = zero, .iteration = zero, .position = zero };
    return cornu_op_convert(cornu__layer_call_masked(self->layer, &of, in, 2, masks, out,
                                                     out_masks), CORNU_F32);
}

static void free_loss(CornuLoss *loss)
{
    LayerLoss *self = (LayerLoss *)loss;
    cornu_layer_free(self->layer);
    free(self->record);
    cornu__release(self);
}

static CornuStatus check_layer(const CornuLayer *layer)
{
    const char *name = cornu_layer_name(layer);
    if (cornu_layer_outputs(layer) != 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: a loss returns %d tensors, expected 1", name,
                           cornu_layer_outputs(layer));
    if (layer->weight_count > 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: a loss has weights (%d), expected none",
                           name, layer->weight_count);
    return CORNU_OK;
}

CornuLoss *cornu__layer_loss(CornuLayer *layer, CornuReduction reduction, bool each_row,
                             char *record)
{
    LayerLoss *self = check_layer(layer) ? NULL : cornu__allocate(1, sizeof *self);
    if (!self) {
        cornu_layer_free(layer);
        free(record);
        return cornu__null();
    }
    self->base = (CornuLoss){ .name = cornu_layer_name(layer), .call = call, .free = free_loss,
                              .reduction = reduction, .valid_rows = true, .record = record };
    self->layer = layer;
    self->each_row = each_row;
    self->record = record;
    return &self->base;
}
