/* Calling a model: records its layers' calls on tensors. */
#include "host_stage_internal.h"

static CornuTensor *times(CornuTensor *rows, int64_t k)
{
    return rows ? cornu_op_scale(rows, (double)k) : NULL;
}

/* Within the call of a traced layer axis 0 of x may be another one than that of its operand: of so
 * many rows for each, such as steps, or of rows that all count, such as the nodes of a graph. */
static void count_rows(CornuCall *call, const CornuTensor *operand, const CornuTensor *x)
{
    const CornuShape a = cornu_tensor_shape(operand), b = cornu_tensor_shape(x);
    const int64_t    of = a.rank > 0 ? a.extent[0] : 0, rows = b.rank > 0 ? b.extent[0] : of;
    if (!call->count || rows == of) return;
    if (of > 0 && rows % of == 0) {
        call->count = times(call->count, rows / of);
        call->total = times(call->total, rows / of);
        call->position = times(call->position, rows / of);
        return;
    }
    const CornuType scalar = cornu_scalar(CORNU_I64);
    call->count = call->total = cornu_op_constant(call->graph, scalar, (double)rows);
    call->position = cornu_op_constant(call->graph, scalar, 0.0);
}

/* Those of which `wanted` has a value, by number; NULL: all. */
static bool make_calls(const CornuModel *model, const CornuCall *call, CornuTensor *const *in,
                       CornuTensor *const *in_masks, const bool *wanted, CornuTensor **values,
                       CornuTensor **masks, int *begin)
{
    const bool staged = cornu__model_on_host(model);
    cornu__model_place_fed(model, in, in_masks, values, masks, begin);
    for (int i = 0; i < model->more_count; i++)
        values[cornu__model_value_index(model, model->more[i])] = in[model->input_count + i];
    for (int i = 0; i < model->call_count; i++) {
        const CornuModelCall *made = &model->calls[model->calls[i].nth];
        const CornuNode      *node = made->node;
        CornuTensor *x[CORNU_MAX_LAYER_TENSORS], *x_masks[CORNU_MAX_LAYER_TENSORS];
        CornuTensor *y[CORNU_MAX_LAYER_TENSORS], *y_masks[CORNU_MAX_LAYER_TENSORS];
        int          count = node->in_count;
        if (node->in_count == 0 || cornu__on_host(node->layer)) continue;
        if (wanted && !wanted[made->first]) continue;
        for (int k = 0; k < node->in_count; k++) {
            x[k] = values[made->in[k]];
            x_masks[k] = masks[made->in[k]];
        }
        for (int k = 0; k < node->mask_count; k++)
            x_masks[node->mask_of[k]] = cornu_op_convert(values[made->in[node->in_count + k]],
                                                         CORNU_BOOL);
        const int results = staged ? begin[made - model->calls] : -1;
        if (results >= 0) count = cornu__model_feed_within(made, in + results, x, x_masks);
        node->layer->reverse = node->reverse;
        CornuCall own = *call;
        own.inherited = node->mask_count == 0;
        if (model->is_traced) count_rows(&own, in[0], x[0]);
        if (node->training != CORNU_NOT_FORCED && model->is_traced) {
            own.training = node->training == CORNU_FORCED_TRAINING;
            own.augments = false;
        }
        if (!cornu__layer_call_masked(node->layer, &own, x, count, x_masks, y, y_masks))
            return false;
        for (int k = 0; k < node->in_count && k < 3 && node->layer->kind->consumes_masks; k++)
            masks[made->in[k]] = NULL;
        for (int k = 0; k < node->out_count; k++) {
            values[made->first + k] = y[k];
            masks[made->first + k] = y_masks[k];
        }
    }
    return true;
}

static CornuTensor *call_for(const CornuModel *model, const CornuCall *call,
                             CornuTensor *const *in, CornuTensor *const *masks, const bool *wanted,
                             CornuTensor **out, CornuTensor **out_masks)
{
    const size_t  count = (size_t)model->value_count;
    CornuTensor **values = cornu__allocate(2 * count, sizeof(CornuTensor *));
    int          *begin = cornu__allocate((size_t)model->call_count, sizeof *begin);
    const bool    made = values && begin ? make_calls(model, call, in, masks, wanted, values,
                                                      values + count, begin)
                                         : cornu__null() != NULL;
    for (int i = 0; i < model->output_count && made; i++) {
        const int value = cornu__model_value_index(model, model->outputs[i]);
        out[i] = values[value];
        out_masks[i] = values[count + (size_t)value];
    }
    cornu__release(values);
    cornu__release(begin);
    return made ? out[wanted ? model->output_count - 1 : 0] : NULL;
}

CornuTensor *cornu__model_call_layers(const CornuModel *model, const CornuCall *call,
                                      CornuTensor *const *in, CornuTensor *const *masks,
                                      CornuTensor **out, CornuTensor **out_masks)
{
    return call_for(model, call, in, masks, NULL, out, out_masks);
}

/* Calls are in topological order: one pass from the last to the first finds what is wanted. */
static void want(const CornuModel *model, const bool *outputs, bool *wanted)
{
    for (int i = 0; i < model->output_count; i++)
        if (outputs[i]) wanted[cornu__model_value_index(model, model->outputs[i])] = true;
    for (int i = model->call_count - 1; i >= 0; i--) {
        const CornuModelCall *made = &model->calls[i];
        const CornuNode      *node = made->node;
        bool                  any = false;
        for (int k = 0; k < node->out_count; k++) any |= wanted[made->first + k];
        wanted[made->first] |= any;
        for (int k = 0; k < cornu__node_symbols(node) && any; k++) wanted[made->in[k]] = true;
    }
}

bool cornu__model_call_some(const CornuModel *model, const CornuCall *call,
                            CornuTensor *const *in, const bool *outputs, int without,
                            CornuTensor **out)
{
    CornuTensor *no_masks[CORNU_MAX_MODEL_TENSORS] = { NULL };
    CornuTensor *masks[CORNU_MAX_MODEL_TENSORS];
    bool        *wanted = cornu__allocate((size_t)model->value_count, sizeof *wanted);
    bool         depends = false;
    if (!wanted) return cornu__null() != NULL;
    want(model, outputs, wanted);
    for (int i = 0; i < without; i++)
        depends |= wanted[cornu__model_value_index(model, model->inputs[i])];
    if (!depends) call_for(model, call, in, no_masks, wanted, out, masks);
    cornu__release(wanted);
    return !depends && !cornu_error_pending();
}
