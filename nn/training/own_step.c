/* Recording a model's own step (own_step.h). */
#include <string.h>

#include "own_step_internal.h"
#include "training_internal.h"

/* Keeps the first failure, and its error pending: what is recorded after it does nothing. */
static CornuStatus kept(CornuStepCall *step, CornuStatus status)
{
    if (!status && cornu_error_pending()) status = cornu_error_status();
    if (!step->failed) step->failed = status;
    if (status) cornu__null();
    return step->failed;
}

static bool goes_on(CornuStepCall *step) { return kept(step, CORNU_OK) == CORNU_OK; }

/* ---- Calls ---- */

/* Apart from those of a fit's step, which are the first call's, random numbers of each call have a
 * seed of their own: the odd part of 2^32 / golden ratio apart. */
CornuTensor *cornu_step_seed(CornuStepCall *step)
{
    const int number = step->calls++;
    return number == 0 ? step->seed : cornu_op_shift(step->seed, 2654435761.0 * number);
}

/* The context of the next call of a layer. */
static CornuCall next_call(CornuStepCall *step)
{
    return (CornuCall){ .graph = step->graph, .training = step->training, .count = step->count,
                        .total = step->total, .position = step->position,
                        .iteration = step->iteration, .seed = cornu_step_seed(step),
                        .loss = &step->added };
}

static CornuTensor *call_own_model(CornuStepCall *step, CornuModel *model, CornuTensor *const *in,
                                   int in_count, CornuTensor **out, int out_count)
{
    CornuTensor    *without = NULL, *before = step->added;
    CornuCall       call = next_call(step);
    const bool      again = step->penalized;   /* the weights' regularizers count once */
    if (again) call.loss = &without;
    step->penalized = true;
    CornuTensor *first = cornu_model_call_many(model, in, in_count, &call, out, out_count);
    if (again) step->added = before;
    return first;
}

/* What the layer gets: integers as f32, unless it takes them. */
static CornuTensor *converted(CornuLayer *layer, int i, CornuTensor *x)
{
    const CornuModel *model = cornu_as_model(layer);
    if (!x) return NULL;
    if (model && i < model->input_count) return cornu__model_convert_input(model, i, x);
    const bool whole = !cornu_dtype_is_float(cornu_tensor_type(x).dtype);
    return whole && !layer->takes_integers ? cornu_op_convert(x, CORNU_F32) : x;
}

CornuTensor *cornu_step_call_many(CornuStepCall *step, CornuLayer *layer, CornuTensor *const *in,
                                  int in_count, CornuTensor **out, int out_count)
{
    CornuTensor *x[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < out_count; i++) out[i] = NULL;
    if (!goes_on(step)) return NULL;
    if (!layer || in_count < 1 || in_count > CORNU_MAX_LAYER_TENSORS)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_step_call: %s, expected a layer and 1 "
                                "to %d tensors", layer ? "no tensors" : "no layer",
                                CORNU_MAX_LAYER_TENSORS);
    if (layer == &step->model->base)
        return call_own_model(step, step->model, in, in_count, out, out_count);
    for (int i = 0; i < in_count; i++) x[i] = converted(layer, i, in[i]);
    const CornuCall call = next_call(step);
    return cornu_layer_call_many(layer, &call, x, in_count, out, out_count);
}

CornuTensor *cornu_step_call(CornuStepCall *step, CornuLayer *layer, CornuTensor *x)
{
    CornuTensor *out;
    if (!goes_on(step)) return NULL;
    if (!layer || cornu_layer_outputs(layer) == 1)
        return cornu_step_call_many(step, layer, &x, 1, &out, 1);
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: has %d outputs, expected one; "
                            "cornu_step_call_many", cornu_layer_name(layer),
                            cornu_layer_outputs(layer));
}

/* ---- Random numbers ---- */

/* No layer has these generators, so that no other number is drawn by the same counter. */
enum { FIRST_GENERATOR = 0x40000000 };

CornuTensor *cornu_step_uniform(CornuStepCall *step, CornuShape shape)
{
    return cornu_op_random_uniform(shape, step->seed, step->iteration, step->position,
                                   FIRST_GENERATOR + step->draws++);
}

/* sqrt(-2 log(1 - u)) cos(2 pi v).
 * Source: Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958. */
CornuTensor *cornu_step_normal(CornuStepCall *step, CornuShape shape)
{
    CornuTensor *u = cornu_step_uniform(step, shape), *v = cornu_step_uniform(step, shape);
    u = cornu_op_log(cornu_op_shift(cornu_op_negative(u), 1.0));
    return cornu_op_multiply(cornu_op_sqrt(cornu_op_scale(u, -2.0)),
                             cornu_op_cos(cornu_op_scale(v, 6.283185307179586)));
}

/* ---- Losses ---- */

static CornuMetricCall rows_of(const CornuStepCall *step)
{
    return (CornuMetricCall){ .valid = step->valid, .count = step->total };
}

/* CORNU_ERR_SHAPE unless axis 0 of the values is the batch. */
static bool are_rows(const CornuStepCall *step, const char *who, const CornuTensor *values)
{
    CornuText        text;
    const CornuShape shape = cornu_tensor_shape(values);
    const int64_t    rows = cornu_tensor_shape(step->valid).extent[0];
    if (shape.rank > 0 && shape.extent[0] == rows) return true;
    cornu__fail_null(CORNU_ERR_SHAPE, "%s: the values are %s, expected a value or more for each of "
                     "%lld rows", who, cornu_shape_print(&text, shape), (long long)rows);
    return false;
}

CornuTensor *cornu_step_mean(CornuStepCall *step, CornuTensor *values)
{
    const CornuLoss       mean = { .reduction = CORNU_MEAN };
    const CornuMetricCall call = rows_of(step);
    if (!values || !goes_on(step) || !are_rows(step, "cornu_step_mean", values)) return NULL;
    return cornu__reduce_loss(&mean, cornu_op_convert(values, CORNU_F32), &call);
}

static CornuStatus penalize(CornuStepCall *step)
{
    const CornuCall call = { .graph = step->graph, .training = step->training,
                             .total = step->total, .count = step->count, .loss = &step->added };
    if (step->penalized) return CORNU_OK;
    step->penalized = true;
    return cornu__layer_penalize_weights(&step->model->base, &call);
}

CornuTensor *cornu_step_added_loss(CornuStepCall *step)
{
    if (!goes_on(step) || kept(step, penalize(step))) return NULL;
    return step->added ? step->added : cornu_op_constant(step->graph, cornu_scalar(CORNU_F32), 0.0);
}

/* Predictions of other rows than the batch's, which are all valid. */
static CornuStatus set_rows(const CornuStepCall *call, CornuStep *step, int64_t rows)
{
    if (rows == step->rows) return CORNU_OK;
    if (!call->model->own->valid_rows || cornu_graph_shards(call->graph) > 1)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: predictions of %lld rows in a step of %lld; "
                           "expected the step's, or a step of .valid_rows in one process",
                           call->model->base.name, (long long)rows, (long long)step->rows);
    step->rows = rows;
    step->count = step->total =
        cornu_op_constant(call->graph, cornu_scalar(CORNU_I64), (double)rows);
    return cornu_error_take();
}

/* Sets what the losses and metrics of compile are of: a label and a prediction for each output, and
 * the weights. */
static CornuStatus set_operands(const CornuStepCall *call, CornuStep *step,
                                CornuTensor *const *y_pred)
{
    const CornuModel *model = call->model;
    if (call->y_count != model->output_count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the losses and metrics of cornu_compile are "
                           "for %d outputs, the batch has %d labels", model->base.name,
                           model->output_count, call->y_count);
    for (int i = 0; i < model->output_count; i++) {
        if (!y_pred || !y_pred[i] || !call->y[i])
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: no %s is given for output %s",
                               model->base.name, call->y[i] ? "prediction" : "label",
                               cornu__output_name(model, i));
        step->predictions[i] = cornu_op_convert(y_pred[i], CORNU_F32);
        step->y[i] = call->y[i];
        step->y_types[i].dtype = cornu_tensor_type(call->y[i]).dtype;
    }
    memcpy(step->weights, call->weights, sizeof step->weights);
    step->y_count = call->y_count;
    step->weight_count = call->weight_count;
    const CornuShape shape = cornu_tensor_shape(y_pred[0]);
    return set_rows(call, step, shape.rank > 0 ? shape.extent[0] : step->rows);
}

static CornuStatus compute(CornuStepCall *call, CornuTensor *const *y_pred, CornuTensor *added,
                           CornuStepLosses *losses)
{
    CornuTensor *masks[CORNU_MAX_MODEL_TENSORS] = { NULL };
    CornuStep    step = *call->step;
    CORNU__TRY(set_operands(call, &step, y_pred));
    cornu_graph_scope(call->graph, "loss");
    CornuStatus status = cornu__record_losses(call->model, &step, masks, added, losses);
    cornu_graph_scope(call->graph, NULL);
    for (int i = 0; i < step.y_count; i++)      /* what the batch's are checked for */
        if (step.y[i] == call->step->y[i]) call->step->whole[i] |= step.whole[i];
    return status;
}

CornuTensor *cornu_step_compute_loss(CornuStepCall *step, CornuTensor *const *y_pred)
{
    CornuStepLosses losses;
    if (!goes_on(step) || kept(step, penalize(step)) ||
        kept(step, compute(step, y_pred, step->added, &losses)))
        return NULL;
    return losses.loss;
}

static CornuStatus compute_metrics(CornuStepCall *step, CornuTensor *const *y_pred)
{
    CornuStepLosses losses;
    CornuModel     *model = step->model;
    CornuTensor *none = cornu_op_constant(step->graph, cornu_scalar(CORNU_F32), 0.0);
    CORNU__TRY(compute(step, y_pred, none, &losses));
    CORNU__TRY(cornu__track_compiled(model, step->step, &losses, false));
    for (int i = 0; i < model->tracked_count; i++)
        if (model->tracked[i].metric && !model->tracked[i].own)
            *(step->training ? &model->tracked[i].trained : &model->tracked[i].tested) = true;
    return CORNU_OK;
}

CornuStatus cornu_step_compute_metrics(CornuStepCall *step, CornuTensor *const *y_pred)
{
    return goes_on(step) ? kept(step, compute_metrics(step, y_pred)) : step->failed;
}

static CornuStatus minimize(CornuStepCall *step, CornuOptimizer *optimizer, CornuTensor *loss)
{
    CornuModel *model = step->model;
    if (!loss)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: no loss is given to minimize",
                           model->base.name);
    if (!optimizer) optimizer = model->optimizer;
    if (!step->training)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s minimizes in a step that does not train",
                           model->base.name, optimizer->name);
    CORNU__TRY(cornu__record_gradients(model, step->step, optimizer, loss));
    if (optimizer == model->optimizer && model->gradient_norm) model->gradient_norm->trained = true;
    return CORNU_OK;
}

CornuStatus cornu_step_minimize(CornuStepCall *step, CornuOptimizer *optimizer, CornuTensor *loss)
{
    return goes_on(step) ? kept(step, minimize(step, optimizer, loss)) : step->failed;
}

/* ---- Logs ---- */

/* The log of this name and kind; NULL with a pending error. */
static CornuTracked *own_log(CornuStepCall *step, const char *name, bool last, CornuMetric *metric)
{
    CornuModel   *model = step->model;
    CornuTracked *log = cornu__model_own_log(model, name);
    if (!log) return NULL;
    const bool fresh = log->own && log->state_count == 0 && !log->metric;
    if (fresh && metric && metric->free) metric->taken = true;
    if (fresh) {
        log->metric = metric;
        log->last = last;
    }
    if (log->metric != metric || (log->own && log->last != last))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: its step logs \"%s\", which is another "
                                "%s already", model->base.name, name,
                                log->metric ? "metric" : log->last ? "last value" : "mean");
    *(step->training ? &log->trained : &log->tested) = true;
    cornu_graph_scope(step->graph, name);
    return log;
}

static CornuStatus no_value(const char *name)
{
    return cornu__fail(CORNU_ERR_ARGUMENT, "the log \"%s\" is given NULL", name);
}

static CornuStatus assign_states(CornuStepCall *step, const CornuTracked *log, CornuTensor *first,
                                 CornuTensor *second)
{
    if (!first || !second) return cornu_error_take();
    CORNU__TRY(cornu_assign(log->states[0], first));
    CORNU__TRY(cornu_assign(log->states[1], second));
    return cornu_graph_scope(step->graph, NULL);
}

/* A scalar of all shards, of which each has a part, in f64. */
static CornuTensor *whole(CornuTensor *value)
{
    if (value && cornu_tensor_varies(value)) value = cornu_op_all_reduce(value);
    return cornu_op_convert(value, CORNU_F64);
}

static CornuStatus need_scalar(const char *name, const CornuTensor *value)
{
    CornuText text;
    if (cornu_tensor_shape(value).rank == 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "the log \"%s\" is %s, expected a scalar", name,
                       cornu_shape_print(&text, cornu_tensor_shape(value)));
}

static CornuStatus log_scalar(CornuStepCall *step, const CornuTracked *log, CornuTensor *value,
                              CornuTensor *weight)
{
    CORNU__TRY(need_scalar(log->name, weight ? weight : value));
    weight = whole(weight ? weight : step->total);
    CornuTensor *sum = cornu_read(step->graph, log->states[0]);
    CornuTensor *count = cornu_read(step->graph, log->states[1]);
    return assign_states(step, log,
                         cornu_op_add(sum, cornu_op_multiply(whole(value), weight)),
                         cornu_op_add(count, weight));
}

static CornuStatus log_mean(CornuStepCall *step, const char *name, CornuTensor *values,
                            CornuTensor *weight)
{
    CornuTracked *log = own_log(step, name, false, NULL);
    if (!log) return cornu_error_take();
    CORNU__TRY(cornu__make_states(step->model, log, log->name));
    if (cornu_tensor_shape(values).rank == 0) return log_scalar(step, log, values, weight);
    CornuMetricCall call = rows_of(step);
    CornuTensor    *old[2], *new_states[2];
    if (!are_rows(step, name, values)) return cornu_error_take();
    if (weight) call.weight = cornu_op_convert(weight, CORNU_F32);
    for (int i = 0; i < 2; i++) old[i] = cornu_read(step->graph, log->states[i]);
    CORNU__TRY(cornu__mean_update(cornu_op_convert(values, CORNU_F32), &call, old, new_states));
    return assign_states(step, log, new_states[0], new_states[1]);
}

CornuStatus cornu_step_log(CornuStepCall *step, const char *name, CornuTensor *values,
                           CornuTensor *weight)
{
    if (!goes_on(step)) return step->failed;
    return kept(step, values ? log_mean(step, name, values, weight) : no_value(name));
}

static CornuStatus log_last(CornuStepCall *step, const char *name, CornuTensor *value)
{
    CORNU__TRY(need_scalar(name, value));
    CornuTracked *log = own_log(step, name, true, NULL);
    if (!log) return cornu_error_take();
    CORNU__TRY(cornu__make_states(step->model, log, log->name));
    CornuTensor *now = whole(value);
    return assign_states(step, log, now, cornu_op_constant_like(now, 1.0));
}

CornuStatus cornu_step_log_last(CornuStepCall *step, const char *name, CornuTensor *value)
{
    if (!goes_on(step)) return step->failed;
    return kept(step, value ? log_last(step, name, value) : no_value(name));
}

static CornuStatus log_metric(CornuStepCall *step, const char *name, CornuMetric *metric,
                              CornuTensor *y_true, CornuTensor *y_pred, CornuTensor *weight)
{
    CornuTracked *log = own_log(step, name, false, metric);
    if (!log || !are_rows(step, name, y_pred)) return cornu_error_take();
    CornuMetricCall call = rows_of(step);
    call.y_true = y_true;
    call.y_pred = cornu_op_convert(y_pred, CORNU_F32);
    call.weight = weight ? cornu_op_convert(weight, CORNU_F32) : NULL;
    CORNU__TRY(cornu__track(step->model, log, log->name, NULL, &call));
    return cornu_graph_scope(step->graph, NULL);
}

CornuStatus cornu_step_log_metric(CornuStepCall *step, const char *name, CornuMetric *metric,
                                  CornuTensor *y_true, CornuTensor *y_pred, CornuTensor *weight)
{
    if (!goes_on(step)) return step->failed;
    return kept(step, metric && y_true && y_pred
                          ? log_metric(step, name, metric, y_true, y_pred, weight)
                          : no_value(name));
}

CornuStatus cornu_step_hide_log(CornuStepCall *step, const char *name)
{
    if (!goes_on(step)) return step->failed;
    CornuModel *model = step->model;
    for (int i = 0; i < model->tracked_count; i++) {
        CornuTracked *log = &model->tracked[i];
        if (!strcmp(log->name, name)) *(step->training ? &log->trained : &log->tested) = false;
    }
    return CORNU_OK;
}

/* ---- The whole step ---- */

static CornuStatus begin(CornuModel *model, CornuStep *step, CornuStepCall *call)
{
    const CornuType      rows = cornu_type(CORNU_I64, step->rows), i64 = cornu_scalar(CORNU_I64);
    const CornuOptimizer *optimizer = model->optimizer;
    CornuVariable        *iteration = optimizer ? cornu_optimizer_iteration(optimizer) : NULL;
    *call = (CornuStepCall){
        .model = model, .graph = step->graph, .training = step->mode == CORNU_STEP_TRAIN,
        .x_count = step->x_count, .weight_count = step->weight_count,
        .y_count = step->mode == CORNU_STEP_PREDICT ? 0 : step->y_count, .step = step,
        .count = step->count, .total = step->total, .position = step->position };
    memcpy(call->x, step->x, sizeof call->x);
    memcpy(call->y, step->y, sizeof call->y);
    memcpy(call->weights, step->weights, sizeof call->weights);
    call->valid = cornu_op_compare(cornu_op_iota(step->graph, rows, 0), CORNU_LESS, step->count);
    call->seed = cornu_read(step->graph, model->seed_variable);
    call->iteration = iteration ? cornu_read(step->graph, iteration)
                                : cornu_op_constant(step->graph, i64, 0.0);
    return cornu_error_take();
}

/* Random numbers go on where the optimizer as a whole has not been applied: one of several has
 * been, or none. */
static CornuStatus count_step(const CornuModel *model, const CornuStepCall *call)
{
    CornuVariable *iteration = cornu_optimizer_iteration(model->optimizer);
    if (!iteration || cornu_read_assigned(call->graph, iteration) != call->iteration)
        return CORNU_OK;
    CornuTensor *next = cornu_op_shift(call->iteration, 1.0);
    return next ? cornu_assign(iteration, next) : cornu_error_take();
}

CornuStatus cornu__compiled_own(CornuModel *model, CornuStep *step)
{
    CornuOwnStep *own = model->own;
    CornuStepCall call;
    cornu_graph_set_sequential(step->graph);
    CORNU__TRY(begin(model, step, &call));
    CornuStatus status = step->mode == CORNU_STEP_PREDICT
                       ? own->predict(own, &call, step->predictions)
                       : (call.training ? own->train : own->test)(own, &call);
    cornu_graph_scope(step->graph, NULL);
    status = kept(&call, status);
    cornu_error_take();
    CORNU__TRY(status);
    for (int i = 0; i < step->y_count && step->mode == CORNU_STEP_PREDICT; i++) {
        if (!step->predictions[i])
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: its own step sets no prediction of output "
                               "%s", model->base.name, cornu__output_name(model, i));
        step->predictions[i] = cornu_op_convert(step->predictions[i], CORNU_F32);
    }
    return call.training ? count_step(model, &call) : cornu_error_take();
}
