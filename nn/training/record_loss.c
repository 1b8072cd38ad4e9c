/* What a step that trains or tests does after the predictions: losses, metrics, gradients and the
 * optimizer's update. */
#include "../losses/loss_internal.h"
#include "../metrics/metric_internal.h"
#include "../model/compiled_internal.h"
#include "../optimizers/optimizer_internal.h"
#include "own_step_internal.h"
#include "pipeline_step_internal.h"

static CornuStatus make_state(CornuModel *model, CornuTracked *tracked, const char *name,
                              CornuType type)
{
    const int i = tracked->state_count;
    CORNU__TRY(cornu_type_check(type));
    tracked->host[i] = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    tracked->states[i] = cornu_variable_create(model->device, type, name);
    tracked->state_count++;
    if (!tracked->states[i]) return cornu_error_take();
    return tracked->host[i].data ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuStatus cornu__make_states(CornuModel *model, CornuTracked *tracked, const char *name)
{
    if (tracked->state_count > 0) return CORNU_OK;
    const int count = tracked->metric ? tracked->metric->state_count : 2;
    if (count < 1 || count > CORNU_MAX_STATES)
        return cornu__fail(CORNU_ERR_ARGUMENT, "metric %s has %d states, expected 1 to %d", name,
                           count, CORNU_MAX_STATES);
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < count && !status; i++)
        status = make_state(model, tracked, name,
                            tracked->metric ? tracked->metric->states[i]
                                            : cornu_scalar(CORNU_F64));
    if (status) cornu__states_free(tracked);
    return status;
}

CornuStatus cornu__track(CornuModel *model, CornuTracked *tracked, const char *name,
                         CornuTensor *loss_values, const CornuMetricCall *call)
{
    CornuMetric *metric = tracked->metric;
    CornuTensor *old[CORNU_MAX_STATES], *new_states[CORNU_MAX_STATES] = { 0 };
    if (metric && metric->build)
        CORNU__TRY(metric->build(metric, cornu_tensor_shape(call->y_true),
                                 cornu_tensor_shape(call->y_pred)));
    CORNU__TRY(cornu__make_states(model, tracked, name));
    CornuGraph *graph = cornu_tensor_graph(call->y_pred);
    for (int i = 0; i < tracked->state_count; i++)
        old[i] = cornu_read(graph, tracked->states[i]);
    CornuStatus status = metric ? metric->update(metric, call, old, new_states)
                                : cornu__mean_update(loss_values, call, old, new_states);
    if (cornu_error_pending()) return cornu_error_take();
    CORNU__TRY(status);
    for (int i = 0; i < tracked->state_count; i++)
        CORNU__TRY(cornu_assign(tracked->states[i], new_states[i]));
    return CORNU_OK;
}

/* A loss of the whole batch, broadcast to per-row values. That of a microbatch is a part of it,
 * which its rows, on all shards, have among them for all rows. */
static CornuTensor *per_row(const CornuStep *step, CornuTensor *loss, const CornuMetricCall *call)
{
    const int64_t rows = cornu_tensor_shape(call->valid).extent[0];
    loss = cornu_op_all_reduce(loss);
    if (step->microbatched) {
        CornuTensor *count = cornu_op_convert(cornu_op_all_reduce(step->count), CORNU_F32);
        loss = cornu_op_multiply(loss, cornu_op_divide(cornu_op_convert(step->total, CORNU_F32),
                                                       count));
    }
    return cornu_op_broadcast(loss, cornu_shape(rows));
}

/* A mean over steps, without those that the optimizer skips because gradients of a scaled loss are
 * not finite. */
static CornuStatus track_norm(CornuModel *model, CornuGraph *graph, CornuTensor *const *d_w)
{
    CornuTracked *tracked = model->gradient_norm;
    if (!tracked) return CORNU_OK;
    CORNU__TRY(cornu__make_states(model, tracked, tracked->name));
    cornu_graph_scope(graph, tracked->name);
    CornuTensor *norm = cornu_optimizer_gradient_norm(model->optimizer, graph, d_w);
    CornuTensor *counts = model->optimizer->scales_loss ? cornu_op_is_finite(norm) : NULL;
    for (int i = 0; i < 2; i++) {
        CornuTensor *old = cornu_read(graph, tracked->states[i]);
        CornuTensor *sum = i == 0 ? cornu_op_add(old, cornu_op_convert(norm, CORNU_F64))
                                  : cornu_op_shift(old, 1.0);
        if (counts) sum = cornu_op_select(counts, sum, old);
        CORNU__TRY(sum ? cornu_assign(tracked->states[i], sum) : cornu_error_take());
    }
    cornu_graph_scope(graph, NULL);
    return CORNU_OK;
}

CornuStatus cornu__record_gradients(CornuModel *model, CornuStep *step, CornuOptimizer *optimizer,
                                    CornuTensor *loss)
{
    CornuGraph *graph = step->graph;
    if (optimizer->count == 0) return CORNU_OK;   /* statistics and states may move */
    const size_t  count = (size_t)optimizer->count;
    CornuTensor **w = cornu__allocate(2 * count, sizeof(CornuTensor *));
    if (!w) return CORNU_ERR_MEMORY;
    CornuTensor **d_w = w + count;
    for (int i = 0; i < optimizer->count; i++) w[i] = cornu_read(graph, optimizer->w[i]);
    CornuTensor *scaled = cornu_optimizer_scale_loss(optimizer, loss);
    CornuStatus  status = scaled ? cornu_gradients(scaled, w, optimizer->count, d_w)
                                 : cornu_error_take();
    if (!status && step->microbatched) status = cornu__pipeline_sum(model, step, &graph, d_w);
    if (!status && optimizer == model->optimizer) status = track_norm(model, graph, d_w);
    if (!status) status = cornu_optimizer_apply(optimizer, graph, d_w);
    cornu__release(w);
    return status;
}

/* The sample weights of an output, f32, or NULL. */
static CornuTensor *weights_of(const CornuStep *step, int output)
{
    if (step->weight_count == 0) return NULL;
    return cornu_op_convert(step->weights[step->weight_count > 1 ? output : 0], CORNU_F32);
}

/* Records one output's loss, if it has one. Even where masks or a reduction give batches of one
 * size different weights, Keras averages the logged loss over batches by their number of rows. */
static CornuStatus record_output(CornuModel *model, const CornuStep *step, int i,
                                 CornuTensor *mask, CornuStepLosses *losses)
{
    const CornuLoss *loss = model->losses[i];
    const double     weight = model->loss_weights[i];
    CornuMetricCall *call = &losses->call[i];
    const CornuType rows = cornu_type(CORNU_I64, step->rows);
    *call = (CornuMetricCall){ .y_true = step->y[i], .y_pred = step->predictions[i],
                               .count = step->total };
    call->valid = cornu_op_compare(cornu_op_iota(step->graph, rows, 0), CORNU_LESS, step->count);
    call->mask = mask ? cornu__valid_mask(mask, call->valid) : NULL;
    call->weight = weights_of(step, i);
    if (!loss) return cornu_error_take();
    CornuMetricCall own = *call;
    CornuTensor    *values = cornu__loss_values(loss, &own);
    if (step->microbatched) CORNU__TRY(cornu__pipeline_check_loss(model, loss, &own));
    CornuTensor    *reduced = cornu__reduce_loss(loss, values, &own);
    const bool      mean_of_rows = !own.mask && loss->reduction == CORNU_MEAN;
    if (!reduced) return cornu_error_take();
    losses->shown[i] = mean_of_rows ? cornu__weighted(values, &own) : per_row(step, reduced, &own);
    CornuTensor *part = weight == 1.0 ? reduced : cornu_op_scale(reduced, weight);
    losses->loss = losses->loss ? cornu_op_add(losses->loss, part) : part;
    return losses->loss ? CORNU_OK : cornu_error_take();
}

static bool wants_whole(const CornuSerializableClass *kind)
{
    return kind && (kind->whole_labels || (kind->loss && kind->loss->whole_labels));
}

/* Whether the labels of output i are class numbers stored as floats. */
static bool are_classes(const CornuModel *model, int i, CornuType y)
{
    bool whole = model->losses[i] && wants_whole(model->losses[i]->kind);
    for (int t = 0; t < model->tracked_count; t++) {
        const CornuTracked *tracked = &model->tracked[t];
        if (tracked->metric && tracked->output == i) whole |= wants_whole(tracked->metric->kind);
    }
    return whole && cornu_dtype_is_float(y.dtype);
}

CornuStatus cornu__record_losses(CornuModel *model, CornuStep *step, CornuTensor *const *masks,
                                 CornuTensor *added, CornuStepLosses *losses)
{
    *losses = (CornuStepLosses){ .loss = NULL };
    for (int i = 0; i < step->y_count; i++)
        step->whole[i] = are_classes(model, i, step->y_types[i]);
    for (int i = 0; i < step->y_count; i++)
        CORNU__TRY(record_output(model, step, i, masks[i], losses));
    if (!losses->loss && !added)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: compiled without .loss", model->base.name);
    if (!losses->loss) losses->loss = added;
    else if (added) losses->loss = cornu_op_add(losses->loss, added);
    const bool alone = step->y_count == 1 && model->loss_weights[0] == 1.0 && !added;
    losses->shown_loss = alone ? losses->shown[0] : per_row(step, losses->loss, &losses->call[0]);
    return losses->shown_loss ? CORNU_OK : cornu_error_take();
}

CornuStatus cornu__track_compiled(CornuModel *model, const CornuStep *step,
                                  const CornuStepLosses *losses, bool with_losses)
{
    for (int i = 0; i < model->tracked_count; i++) {
        CornuTracked   *tracked = &model->tracked[i];
        const int       of = tracked->output < 0 ? 0 : tracked->output;
        if (tracked == model->gradient_norm || tracked->own || (!tracked->metric && !with_losses))
            continue;
        CornuMetricCall call = losses->call[of];
        if (!tracked->metric) call.mask = NULL;
        if (!tracked->weighted) call.weight = NULL;
        if (step->microbatched) call.count = cornu_op_all_reduce(step->count);
        cornu_graph_scope(step->graph, tracked->name);
        CORNU__TRY(cornu__track(model, tracked, tracked->name,
                                tracked->output < 0 ? losses->shown_loss : losses->shown[of],
                                &call));
    }
    cornu_graph_scope(step->graph, NULL);
    return CORNU_OK;
}

/* added: the sum that layers add to the loss, or NULL. Keras averages the total loss over batches
 * by their number of rows, too. */
CornuStatus cornu__compiled_record(CornuModel *model, CornuStep *step, CornuTensor *const *masks,
                                   CornuTensor *added)
{
    CornuStepLosses losses;
    cornu_graph_scope(step->graph, "loss");
    CORNU__TRY(cornu__record_losses(model, step, masks, added, &losses));
    CORNU__TRY(cornu__track_compiled(model, step, &losses, true));
    if (step->mode != CORNU_STEP_TRAIN) return CORNU_OK;
    return cornu__record_gradients(model, step, model->optimizer, losses.loss);
}
