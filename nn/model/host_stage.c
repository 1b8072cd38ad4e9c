/* The layers of a model that run on the host, before the step: their results, and the inputs that
 * other layers take, are what the step is fed with. */
#include "host_stage_internal.h"

static bool on_host(const CornuModelCall *call)
{
    return call->node->in_count > 0 && cornu__on_host(call->node->layer);
}

bool cornu__model_on_host(const CornuModel *model)
{
    bool any = false;
    for (int i = 0; i < model->call_count && !any; i++) any = on_host(&model->calls[i]);
    return any;
}

/* Whether a layer of the step, or an output of the model, takes the value. */
static bool is_taken(const CornuModel *model, int value)
{
    for (int i = 0; i < model->output_count; i++)
        if (cornu__model_value_index(model, model->outputs[i]) == value) return true;
    for (int i = 0; i < model->call_count; i++) {
        const CornuModelCall *call = &model->calls[i];
        for (int k = 0; k < cornu__node_symbols(call->node) && !on_host(call); k++)
            if (call->in[k] == value) return true;
    }
    return false;
}

int cornu__model_fed(const CornuModel *model, CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS])
{
    const bool staged = cornu__model_on_host(model);
    int        count = 0;
    for (int i = 0; i < model->input_count; i++)
        if (!staged || is_taken(model, cornu__model_value_index(model, model->inputs[i])))
            fed[count++] = model->inputs[i];
    for (int i = 0; i < model->call_count && staged; i++)
        if (on_host(&model->calls[i]) && is_taken(model, model->calls[i].first) &&
            count < CORNU_MAX_MODEL_TENSORS)
            fed[count++] = &model->calls[i].node->out[0];
    return count;
}

CornuStatus cornu__model_host_program(const CornuModel *model, int given, CornuHostProgram *to)
{
    CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS];
    const int    fed_count = cornu__model_fed(model, fed);
    int         *number = cornu__allocate((size_t)model->value_count, sizeof *number);
    *to = (CornuHostProgram){ .given = given, .value_count = given };
    to->calls = cornu__allocate((size_t)model->call_count, sizeof *to->calls);
    if (!number || !to->calls) {
        cornu__release(number);
        cornu__release(to->calls);
        return CORNU_ERR_MEMORY;
    }
    for (int i = 0; i < model->input_count; i++)
        number[cornu__model_value_index(model, model->inputs[i])] = i;
    for (int i = 0; i < model->call_count; i++) {
        const CornuModelCall *made = &model->calls[i];
        if (!on_host(made)) continue;
        CornuHostCall *call = &to->calls[to->call_count++];
        *call = (CornuHostCall){ .layer = made->node->layer, .in_count = made->node->in_count,
                                 .out = to->value_count++ };
        for (int k = 0; k < call->in_count; k++) call->in[k] = number[made->in[k]];
        number[made->first] = call->out;
    }
    for (int i = 0; i < fed_count; i++)
        to->results[to->result_count++] = number[cornu__model_value_index(model, fed[i])];
    for (int i = model->input_count; i < given; i++) to->results[to->result_count++] = i;
    cornu__release(number);
    return CORNU_OK;
}
