/* Calling a model: records its layers' calls on tensors. */
#include "host_stage_internal.h"

static bool make_calls(const CornuModel *model, const CornuCall *call, CornuTensor *const *in,
                       CornuTensor *const *in_masks, CornuTensor **values, CornuTensor **masks)
{
    CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS];
    const int    fed_count = cornu__model_fed(model, fed);
    for (int i = 0; i < fed_count; i++) {
        const int value = cornu__model_value_index(model, fed[i]);
        values[value] = in[i];
        masks[value] = in_masks[i];
    }
    for (int i = 0; i < model->call_count; i++) {
        const CornuModelCall *made = &model->calls[model->calls[i].turn];
        const CornuNode      *node = made->node;
        CornuTensor *x[CORNU_MAX_LAYER_TENSORS], *x_masks[CORNU_MAX_LAYER_TENSORS];
        CornuTensor *y[CORNU_MAX_LAYER_TENSORS], *y_masks[CORNU_MAX_LAYER_TENSORS];
        if (node->in_count == 0 || cornu__on_host(node->layer)) continue;
        for (int k = 0; k < node->in_count; k++) {
            x[k] = values[made->in[k]];
            x_masks[k] = masks[made->in[k]];
        }
        for (int k = 0; k < node->mask_count; k++)
            x_masks[node->mask_of[k]] = cornu_op_convert(values[made->in[node->in_count + k]],
                                                         CORNU_BOOL);
        node->layer->reverse = node->reverse;
        CornuCall own = *call;
        own.inherited = node->mask_count == 0;
        if (!cornu__layer_call_masked(node->layer, &own, x, node->in_count, x_masks, y, y_masks))
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

CornuTensor *cornu__model_call_layers(const CornuModel *model, const CornuCall *call,
                                      CornuTensor *const *in, CornuTensor *const *masks,
                                      CornuTensor **out, CornuTensor **out_masks)
{
    const size_t  count = (size_t)model->value_count;
    CornuTensor **values = cornu__allocate(2 * count, sizeof(CornuTensor *));
    if (!values) return cornu__null();
    const bool made = make_calls(model, call, in, masks, values, values + count);
    for (int i = 0; i < model->output_count && made; i++) {
        const int value = cornu__model_value_index(model, model->outputs[i]);
        out[i] = values[value];
        out_masks[i] = values[count + (size_t)value];
    }
    cornu__release(values);
    return made ? out[0] : NULL;
}
