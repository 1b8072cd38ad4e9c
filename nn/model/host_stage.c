/* The layers of a model that run on the host, before the step: their results, and the inputs that
 * other layers take, are what the step is fed with. Those of models in the model are among them:
 * the step feeds such a model with what it would be fed with alone. */
#include "host_stage_internal.h"

static bool on_host(const CornuModelCall *call)
{
    return call->node->in_count > 0 && cornu__on_host(call->node->layer);
}

/* The model that is called, if layers of it run on the host; else NULL. */
static const CornuModel *staged(const CornuModelCall *call)
{
    const CornuLayer *layer = call->node->layer;
    if (call->node->in_count == 0 || !layer->kind->call_masked) return NULL;
    return cornu__model_on_host((const CornuModel *)layer) ? (const CornuModel *)layer : NULL;
}

/* Calls in the order in which they are made. */
static const CornuModelCall *nth_call(const CornuModel *model, int i)
{
    return &model->calls[model->calls[i].nth];
}

bool cornu__model_on_host(const CornuModel *model)
{
    bool any = false;
    for (int i = 0; i < model->call_count && !any; i++)
        any = on_host(&model->calls[i]) || staged(&model->calls[i]);
    return any;
}

/* Whether a layer of the step, or an output of the model, takes the value; with `there` whether a
 * layer on the host does. */
static bool is_taken(const CornuModel *model, int value, bool there)
{
    for (int i = 0; i < model->output_count && !there; i++)
        if (cornu__model_value_index(model, model->outputs[i]) == value) return true;
    for (int i = 0; i < model->call_count; i++) {
        const CornuModelCall *call = &model->calls[i];
        const CornuModel     *within = staged(call);
        for (int k = 0; k < cornu__node_symbols(call->node); k++) {
            if (call->in[k] != value) continue;
            if (within && k < call->node->in_count
                    ? is_taken(within, cornu__model_value_index(within, within->inputs[k]), there)
                    : on_host(call) == there)
                return true;
        }
    }
    return false;
}

static bool takes(const CornuModel *model, int input, bool there)
{
    return is_taken(model, cornu__model_value_index(model, model->inputs[input]), there);
}

/* Adds the results of layers on the host that the step takes, those of models in it too. */
static void add_results(const CornuModel *model, CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS],
                        int *count)
{
    for (int i = 0; i < model->call_count; i++) {
        const CornuModelCall *call = nth_call(model, i);
        const CornuModel     *within = staged(call);
        if (within) add_results(within, fed, count);
        else if (on_host(call) && is_taken(model, call->first, false) &&
                 *count < CORNU_MAX_MODEL_TENSORS)
            fed[(*count)++] = &call->node->out[0];
    }
}

int cornu__model_fed(const CornuModel *model, CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS])
{
    const bool is_staged = cornu__model_on_host(model);
    int        count = 0;
    for (int i = 0; i < model->input_count; i++)
        if (!is_staged || takes(model, i, false)) fed[count++] = model->inputs[i];
    if (is_staged) add_results(model, fed, &count);
    return count;
}

/* Whether a batch of this mode has the own step's numbers of arrays for test. */
static bool has_test_data(const CornuModel *model, CornuStepMode mode)
{
    return model->own->test_xs > 0 && mode != CORNU_STEP_TRAIN && mode != CORNU_STEP_PREDICT;
}

int cornu__model_xs(const CornuModel *model, CornuStepMode mode)
{
    CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS];
    if (!cornu__model_has_own_data(model)) return cornu__model_fed(model, fed);
    return has_test_data(model, mode) ? model->own->test_xs : model->own->xs;
}

int cornu__model_ys(const CornuModel *model, CornuStepMode mode)
{
    if (!cornu__model_has_own_data(model)) return model->output_count;
    return has_test_data(model, mode) ? model->own->test_ys : model->own->ys;
}

void cornu__model_place_fed(const CornuModel *model, CornuTensor *const *in,
                            CornuTensor *const *in_masks, CornuTensor **values,
                            CornuTensor **masks, int *begin)
{
    const bool is_staged = cornu__model_on_host(model);
    int        next = 0;
    for (int i = 0; i < model->input_count; i++) {
        const int value = cornu__model_value_index(model, model->inputs[i]);
        if (is_staged && !takes(model, i, false)) continue;
        values[value] = in[next];
        masks[value] = in_masks[next++];
    }
    for (int i = 0; i < model->call_count && is_staged; i++) {
        const CornuModelCall *call = nth_call(model, i);
        CornuSymbol          *fed[CORNU_MAX_MODEL_TENSORS];
        const CornuModel     *within = staged(call);
        begin[call - model->calls] = within ? next : -1;
        if (within) {
            int count = 0;
            add_results(within, fed, &count);
            next += count;
        } else if (on_host(call) && is_taken(model, call->first, false)) {
            values[call->first] = in[next];
            masks[call->first] = in_masks[next++];
        }
    }
}

int cornu__model_feed_within(const CornuModelCall *call, CornuTensor *const *results,
                             CornuTensor **x, CornuTensor **x_masks)
{
    const CornuModel *within = staged(call);
    CornuSymbol      *fed[CORNU_MAX_MODEL_TENSORS];
    int               count = 0, added = 0;
    for (int k = 0; k < call->node->in_count; k++) {
        if (!takes(within, k, false)) continue;
        x[count] = x[k];
        x_masks[count++] = x_masks[k];
    }
    add_results(within, fed, &added);
    for (int i = 0; i < added && count < CORNU_MAX_LAYER_TENSORS; i++) {
        x[count] = results[i];
        x_masks[count++] = NULL;
    }
    return count;
}

/* ---- The stage of a model that is called as a layer ---- */

bool cornu__stage_has(const CornuLayer *layer)
{
    return layer->built && cornu__model_on_host((const CornuModel *)layer);
}

bool cornu__stage_takes(const CornuLayer *layer, int operand)
{
    const CornuModel *model = (const CornuModel *)layer;
    return cornu__stage_has(layer) && operand < model->input_count &&
           takes(model, operand, true);
}

/* As its own inputs have them. */
CornuStatus cornu__stage_types(const CornuLayer *layer, const CornuType *in, int in_count,
                               CornuType *out)
{
    const CornuModel *model = (const CornuModel *)layer;
    CORNU__TRY(cornu__model_check_inputs(model, in, in_count));
    for (int i = 0; i < model->output_count; i++) out[i] = model->outputs[i]->type;
    return CORNU_OK;
}

/* ---- The program of the host ---- */

static int count_calls(const CornuModel *model)
{
    int count = 0;
    for (int i = 0; i < model->call_count; i++) {
        const CornuModel *within = staged(&model->calls[i]);
        count += within ? count_calls(within) : on_host(&model->calls[i]);
    }
    return count;
}

static void add_result(CornuHostProgram *to, int number)
{
    if (to->result_count < CORNU_MAX_COMPONENTS) to->results[to->result_count++] = number;
}

/* Adds the calls of a model whose inputs have these numbers, and the results that its step takes,
 * in the order of cornu__model_fed. */
static CornuStatus add_stage(const CornuModel *model, const int *inputs, CornuHostProgram *to)
{
    CornuStatus status = CORNU_OK;
    int        *number = cornu__allocate((size_t)model->value_count, sizeof *number);
    if (!number) return CORNU_ERR_MEMORY;
    for (int i = 0; i < model->input_count; i++)
        number[cornu__model_value_index(model, model->inputs[i])] = inputs[i];
    for (int i = 0; i < model->call_count && !status; i++) {
        const CornuModelCall *made = nth_call(model, i);
        const CornuModel     *within = staged(made);
        int                   in[CORNU_MAX_LAYER_TENSORS];
        if (!within && !on_host(made)) continue;
        for (int k = 0; k < made->node->in_count; k++) in[k] = number[made->in[k]];
        if (within) {
            status = add_stage(within, in, to);
            continue;
        }
        CornuHostCall *call = &to->calls[to->call_count++];
        *call = (CornuHostCall){ .layer = made->node->layer, .in_count = made->node->in_count,
                                 .out = to->value_count++ };
        for (int k = 0; k < call->in_count; k++) call->in[k] = in[k];
        number[made->first] = call->out;
        if (is_taken(model, made->first, false)) add_result(to, call->out);
    }
    cornu__release(number);
    return status;
}

CornuStatus cornu__model_host_program(const CornuModel *model, int given, CornuHostProgram *to)
{
    int inputs[CORNU_MAX_MODEL_TENSORS];
    *to = (CornuHostProgram){ .given = given, .value_count = given };
    to->calls = cornu__allocate((size_t)count_calls(model), sizeof *to->calls);
    if (!to->calls) return CORNU_ERR_MEMORY;
    for (int i = 0; i < model->input_count; i++) {
        inputs[i] = i;
        if (takes(model, i, false)) add_result(to, i);
    }
    CornuStatus status = add_stage(model, inputs, to);
    for (int i = model->input_count; i < given; i++) add_result(to, i);
    if (status) cornu__release(to->calls);
    return status;
}
