/*
 * Steps: what happens to one batch, recorded once and run again and again.
 *
 *     x, y as stored -> f32 -> layers -> loss over the valid rows -> gradients
 *       -> optimizer; the loss and the metrics are added to their states
 *
 * A batch always has its full extent; how many of its rows are valid is fed with it, so that the
 * partial one at the end runs the same program and counts exactly.
 *
 * The step is recorded for one shard's part of the batch (deal_internal.h). A shard's loss is its
 * sum over valid rows / the batch's number of them, so the optimizer sums gradients over shards and
 * nothing is scaled again; on a device with one shard those sums vanish.
 */
#include "loss_internal.h"
#include "metric_internal.h"
#include "model_internal.h"

static void step_free(CornuStep *step)
{
    cornu_graph_free(step->graph);
    cornu__release(step->blank);
    cornu__release(step->room);
    cornu__release(step);
}

void cornu__steps_free(CornuModel *model)
{
    for (CornuStep *next, *step = model->steps; step; step = next) {
        next = step->next;
        step_free(step);
    }
    model->steps = NULL;
}

/* ---- Data ---- */

/* The model's input for data of this shape: Keras lets a last axis of extent 1 come or go. */
static CornuStatus adapt(const CornuModel *model, CornuShape *shape)
{
    const CornuShape given = *shape, want = model->input;
    CornuShape       adapted = want;
    adapted.extent[0] = given.extent[0];
    const int last = want.rank - 1;
    bool      fits = given.rank == want.rank ||
                (given.rank == want.rank - 1 && want.extent[last] == 1) ||
                (given.rank == want.rank + 1 && given.extent[given.rank - 1] == 1);
    for (int i = 1; i < want.rank && i < given.rank; i++)
        fits &= given.extent[i] == want.extent[i];
    CornuText a, b;
    if (!fits)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: x is %s, the model's input %s", model->name,
                           cornu_shape_print(&a, given), cornu_shape_print(&b, want));
    *shape = adapted;
    return CORNU_OK;
}

/* Bytes become numbers here, inside the step; whole numbers are scaled, indices stay. */
static CornuTensor *convert_input(const CornuModel *model, CornuTensor *x, CornuShape shape)
{
    const bool whole = !cornu_dtype_is_float(cornu_tensor_type(x).dtype);
    x = cornu_op_reshape(x, shape);
    if (whole && model->layer_count > 0 && model->layers[0]->takes_numbers) return x;
    CornuTensor *y = cornu_op_convert(x, CORNU_F32);
    return whole && model->input_scale != 1.0 ? cornu_op_scale(y, model->input_scale) : y;
}

/* ---- Forward ---- */

/* As cornu_model_call; *mask gets the one of the result, NULL if there is none. */
static CornuTensor *call_model(CornuModel *model, CornuTensor *x, const CornuCall *call,
                               CornuTensor **mask)
{
    if (!model || !x || cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_model_call: no %s given",
                                model ? "tensor" : "model");
    CornuShape shape = cornu_tensor_shape(x);
    if (cornu__model_ready(model, cornu_tensor_type(x)) || adapt(model, &shape))
        return cornu__null();
    CornuCall       full = *call;
    const CornuType i64 = cornu_scalar(CORNU_I64);
    CornuGraph     *graph = full.graph = cornu_tensor_graph(x);
    if (!full.count) full.count = cornu_op_constant(graph, i64, (double)shape.extent[0]);
    if (!full.seed) full.seed = cornu_read(graph, model->seed_variable);
    if (!full.iteration) full.iteration = cornu_op_constant(graph, i64, 0.0);
    if (!full.position) {
        CornuTensor *rows = cornu_op_constant(graph, i64, (double)shape.extent[0]);
        full.position = cornu_op_multiply(cornu_op_replica_id(graph), rows);
    }
    x = convert_input(model, x, shape);
    for (int i = 0; i < model->layer_count && x; i++) {
        *mask = cornu_layer_mask(model->layers[i], &full, x);
        x = cornu_layer_call(model->layers[i], &full, x);
        full.mask = *mask;
    }
    return cornu_op_convert(x, CORNU_F32);
}

CornuTensor *cornu_model_call(CornuModel *model, CornuTensor *x, const CornuCall *call)
{
    CornuTensor *mask = NULL;
    return call_model(model, x, call, &mask);
}

static CornuTensor *forward(CornuModel *model, const CornuStep *step, CornuTensor **mask)
{
    CornuVariable *iteration = cornu_optimizer_iteration(model->optimizer);
    return call_model(model, step->x, &(CornuCall){
        .training = step->mode == CORNU_STEP_TRAIN, .count = step->count,
        .position = step->position,
        .iteration = iteration ? cornu_read(step->graph, iteration) : NULL }, mask);
}

/* ---- Loss, metrics ---- */

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

/* The states of a tracked value, made when they are known: at the first step. All or none. */
static CornuStatus make_states(CornuModel *model, CornuTracked *tracked, const char *name)
{
    static const CornuDtype mean[] = { CORNU_F64, CORNU_I64 };
    if (tracked->state_count > 0) return CORNU_OK;
    const int count = tracked->metric ? tracked->metric->state_count : 2;
    if (count < 1 || count > CORNU_MAX_STATES)
        return cornu__fail(CORNU_ERR_ARGUMENT, "metric %s: has %d states, expected 1 to %d", name,
                           count, CORNU_MAX_STATES);
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < count && !status; i++)
        status = make_state(model, tracked, name,
                            tracked->metric ? tracked->metric->states[i] : cornu_scalar(mean[i]));
    if (status) cornu__states_free(tracked);
    return status;
}

/* Records the new states of one tracked value. */
static CornuStatus track(CornuModel *model, CornuTracked *tracked, const char *name,
                         CornuTensor *loss_values, const CornuMetricCall *call)
{
    CornuMetric *metric = tracked->metric;
    CornuTensor *old[CORNU_MAX_STATES], *new_states[CORNU_MAX_STATES] = { 0 };
    if (metric && metric->build)
        CORNU__TRY(metric->build(metric, cornu_tensor_shape(call->y_true),
                                 cornu_tensor_shape(call->y_pred)));
    CORNU__TRY(make_states(model, tracked, name));
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

/* The sum of the values that count / how many they are, on all shards. */
static CornuTensor *mean_loss(CornuTensor *values, const CornuMetricCall *call)
{
    CornuTensor *count, *sum = cornu__valid_sum(values, call, &count);
    CornuTensor *most = cornu_op_maximum(count, cornu_op_constant_like(count, 1.0));
    return cornu_op_divide(sum, cornu_op_convert(most, CORNU_F32));
}

/* What the mean over batches is taken of. Where a mask makes batches of one size count differently,
 * Keras still gives each batch's mean the weight of its rows. */
static CornuTensor *tracked_loss(CornuTensor *values, CornuTensor *loss,
                                 const CornuMetricCall *call)
{
    if (!call->mask) return values;
    const int64_t rows = cornu_tensor_shape(call->valid).extent[0];
    return cornu_op_broadcast(cornu_op_all_reduce(loss), cornu_shape(rows));
}

static CornuStatus check_labels(const CornuModel *model, CornuType x, CornuType y)
{
    CornuText a, b;
    if (y.shape.rank >= 1 && y.shape.extent[0] == x.shape.extent[0]) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "%s: x is %s and y %s, expected as many rows",
                       model->name, cornu_shape_print(&a, x.shape),
                       cornu_shape_print(&b, y.shape));
}

static CornuStatus record_gradients(CornuModel *model, CornuGraph *graph, CornuTensor *loss)
{
    CornuOptimizer *optimizer = model->optimizer;
    if (optimizer->count == 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: has no weight to train", model->name);
    const size_t  count = (size_t)optimizer->count;
    CornuTensor **w = cornu__allocate(2 * count, sizeof(CornuTensor *));
    if (!w) return CORNU_ERR_MEMORY;
    CornuTensor **d_w = w + count;
    for (int i = 0; i < optimizer->count; i++) w[i] = cornu_read(graph, optimizer->w[i]);
    CornuTensor *scaled = cornu_optimizer_scale_loss(optimizer, loss);
    CornuStatus  status = scaled ? cornu_gradients(scaled, w, optimizer->count, d_w)
                                 : cornu_error_take();
    if (!status) status = cornu_optimizer_apply(optimizer, graph, d_w);
    cornu__release(w);
    return status;
}

static CornuStatus record_loss(CornuModel *model, CornuStep *step, CornuTensor *mask)
{
    if (!model->loss)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: compiled without .loss", model->name);
    CornuGraph     *graph = step->graph;
    const CornuType rows = cornu_type(CORNU_I64, step->rows);
    CornuMetricCall call = { .y_true = step->y, .y_pred = step->prediction,
                             .count = step->total };
    cornu_graph_scope(graph, "loss");
    call.valid = cornu_op_compare(cornu_op_iota(graph, rows, 0), CORNU_LESS, step->count);
    call.mask = mask ? cornu__valid_mask(mask, call.valid) : NULL;
    CornuTensor *values = model->loss->call(model->loss, step->y, step->prediction);
    CornuTensor *loss = mean_loss(values, &call);
    CornuTensor *shown = tracked_loss(values, loss, &call);
    if (!loss || !shown) return cornu_error_take();
    CornuMetricCall unmasked = call;
    unmasked.mask = NULL;
    for (int i = 0; i < model->tracked_count; i++) {
        const char *name = cornu_model_metric_name(model, i);
        cornu_graph_scope(graph, name);
        CORNU__TRY(track(model, &model->tracked[i], name, shown, i == 0 ? &unmasked : &call));
    }
    cornu_graph_scope(graph, NULL);
    return step->mode == CORNU_STEP_TRAIN ? record_gradients(model, graph, loss) : CORNU_OK;
}

/* ---- Recording and running ---- */

static size_t row_bytes(CornuType type)
{
    type.shape.extent[0] = 1;
    return cornu_type_bytes(type);
}

/* A batch's type, but for a shard's rows of it. */
static CornuType shard_type(const CornuStep *step, CornuType batch)
{
    batch.shape.extent[0] = step->rows;
    return batch;
}

static CornuStatus record(CornuModel *model, CornuStep *step)
{
    const int64_t batch = step->x_type.shape.extent[0];
    if (model->batch_size && batch != model->batch_size)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: a batch of %lld rows, expected the model's "
                           ".batch_size, %lld", model->name, (long long)batch,
                           (long long)model->batch_size);
    step->shards = cornu_device_shards(model->device);
    step->rows = (batch + step->shards - 1) / step->shards;
    if (batch < step->shards)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: a batch of %lld rows for %d shards, expected at "
                           "least one row for each", model->name, (long long)batch, step->shards);
    step->graph = cornu_graph_create(model->device);
    if (!step->graph) return cornu_error_take();
    const CornuType i64 = cornu_scalar(CORNU_I64);
    step->x = cornu_graph_shard_input(step->graph, shard_type(step, step->x_type));
    step->count = cornu_graph_shard_input(step->graph, i64);
    step->position = cornu_graph_shard_input(step->graph, i64);
    step->total = cornu_graph_input(step->graph, i64);
    if (step->mode != CORNU_STEP_PREDICT) {
        CORNU__TRY(check_labels(model, step->x_type, step->y_type));
        step->y = cornu_graph_shard_input(step->graph, shard_type(step, step->y_type));
    }
    const size_t row = row_bytes(step->x_type) + (step->y ? row_bytes(step->y_type) : 0);
    step->fed_bytes = step->shards * step->rows * (int64_t)row;
    CornuTensor *mask = NULL;
    step->prediction = forward(model, step, &mask);
    if (!step->prediction) return cornu_error_take();
    for (int i = 0; i < model->layer_count; i++)
        step->stateful |= cornu__layer_has_states(model->layers[i]);
    step->output = cornu_tensor_type(step->prediction);
    step->output.shape.extent[0] = batch;
    return step->mode == CORNU_STEP_PREDICT ? CORNU_OK : record_loss(model, step, mask);
}

static bool predicts(const CornuStep *step)
{
    return step->mode == CORNU_STEP_TEST_PREDICT || step->mode == CORNU_STEP_PREDICT;
}

/* For batches that have to be dealt; on one shard there are none. */
static CornuStatus make_room(CornuStep *step)
{
    size_t most = row_bytes(step->x_type);
    if (step->shards == 1) return CORNU_OK;
    if (step->y && row_bytes(step->y_type) > most) most = row_bytes(step->y_type);
    step->blank = cornu__allocate((size_t)step->rows, most);
    if (!step->blank) return CORNU_ERR_MEMORY;
    if (!predicts(step)) return CORNU_OK;
    step->room = cornu__allocate((size_t)(step->shards * step->rows), row_bytes(step->output));
    return step->room ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuStatus cornu__step(CornuModel *model, CornuStepMode mode, CornuType x, CornuType y,
                        CornuStep **step)
{
    CORNU__TRY(cornu__model_ready(model, x));
    if (mode == CORNU_STEP_PREDICT) y = (CornuType){ 0 };
    for (CornuStep *old = model->steps; old; old = old->next)
        if (old->mode == mode && cornu_type_equal(old->x_type, x) &&
            cornu_type_equal(old->y_type, y)) {
            *step = old;
            return CORNU_OK;
        }
    CornuStep *fresh = cornu__allocate(1, sizeof *fresh);
    if (!fresh) return CORNU_ERR_MEMORY;
    *fresh = (CornuStep){ .mode = mode, .x_type = x, .y_type = y, .fed_count = -1 };
    CornuStatus status = record(model, fresh);
    if (!status) status = make_room(fresh);
    if (!status) status = cornu_graph_prepare(fresh->graph, &fresh->prediction, predicts(fresh));
    if (status) {
        step_free(fresh);
        return status;
    }
    fresh->next = model->steps;
    model->steps = fresh;
    *step = fresh;
    return CORNU_OK;
}

CornuExecutable *cornu_model_train_step(CornuModel *model, CornuType x, CornuType y)
{
    CornuStep *step;
    if (cornu_error_pending() || cornu__step(model, CORNU_STEP_TRAIN, x, y, &step))
        return cornu__null();
    return cornu_graph_executable(step->graph);
}

/* An array of shards' parts: the leading axis more that feeds and fetches have. */
static CornuArray parts(const CornuStep *step, CornuType batch, const void *data)
{
    const CornuType part = shard_type(step, batch);
    CornuType       type = { .dtype = part.dtype, .shape = { .rank = part.shape.rank + 1 } };
    type.shape.extent[0] = step->shards;
    for (int i = 0; i < part.shape.rank; i++) type.shape.extent[i + 1] = part.shape.extent[i];
    return cornu_array_from((void *)(uintptr_t)data, type);
}

/* Feeds rows to the places from number `first` on, counted over all shards. */
static CornuStatus feed_rows(CornuTensor *input, CornuType type, int64_t first, int64_t rows,
                             const void *data)
{
    if (rows == 0) return CORNU_OK;
    type.shape.extent[0] = 1;
    const int64_t row = cornu_type_count(type);
    type.shape.extent[0] = rows;
    return cornu_graph_feed_part(input, first * row,
                                 cornu_array_from((void *)(uintptr_t)data, type));
}

/* Feeds an array of the batch's type, its valid rows dealt over the shards, zeros behind them. */
static CornuStatus feed(const CornuStep *step, const CornuDeal *deal, CornuTensor *input,
                        CornuType type, CornuArray array)
{
    CornuText a, b;
    if (!cornu_type_equal(array.type, type))
        return cornu__fail(CORNU_ERR_SHAPE, "a batch of %s, expected %s",
                           cornu_type_print(&a, array.type), cornu_type_print(&b, type));
    if (cornu__dealt_in_place(deal) && step->shards * step->rows == type.shape.extent[0])
        return cornu_graph_feed(input, parts(step, type, array.data));
    for (int s = 0; s < step->shards; s++) {
        const int64_t first = s * step->rows, count = deal->count[s];
        const char   *from = (const char *)array.data + (size_t)deal->first[s] * row_bytes(type);
        CORNU__TRY(feed_rows(input, type, first, count, from));
        CORNU__TRY(feed_rows(input, type, first + count, step->rows - count, step->blank));
    }
    return CORNU_OK;
}

static CornuStatus feed_counts(CornuStep *step, const CornuDeal *deal, int64_t valid)
{
    const CornuType i64 = cornu_scalar(CORNU_I64), each = cornu_type(CORNU_I64, step->shards);
    if (valid == step->fed_count) return CORNU_OK;
    CORNU__TRY(cornu_graph_feed(step->count,
                                cornu_array_from((void *)(uintptr_t)deal->count, each)));
    CORNU__TRY(cornu_graph_feed(step->position,
                                cornu_array_from((void *)(uintptr_t)deal->first, each)));
    CORNU__TRY(cornu_graph_feed(step->total, cornu_array_from(&valid, i64)));
    step->fed_count = valid;
    return CORNU_OK;
}

CornuStatus cornu__step_feed(CornuStep *step, CornuArray x, const CornuArray *y, int64_t valid)
{
    const int64_t batch = step->x_type.shape.extent[0];
    if (step->stateful && valid != batch)
        return cornu__fail(CORNU_ERR_SHAPE, "a batch of %lld valid rows of %lld, but a layer is "
                           "stateful: expected whole batches, as drop_remainder gives",
                           (long long)valid, (long long)batch);
    const CornuDeal deal = cornu__deal(step->shards, step->rows, valid);
    CORNU__TRY(feed(step, &deal, step->x, step->x_type, x));
    if (step->y) CORNU__TRY(feed(step, &deal, step->y, step->y_type, *y));
    return feed_counts(step, &deal, valid);
}

CornuStatus cornu__step_run(CornuStep *step, CornuArray *to)
{
    if (!predicts(step)) return cornu_run(step->graph, NULL, 0, NULL);
    const CornuDeal deal = cornu__deal(step->shards, step->rows, step->fed_count);
    const bool direct = cornu__dealt_in_place(&deal) &&
                        step->shards * step->rows == step->output.shape.extent[0];
    CornuArray fetched = parts(step, step->output, direct ? to->data : step->room);
    CORNU__TRY(cornu_run(step->graph, &step->prediction, 1, &fetched));
    if (!direct) cornu__deal_back(&deal, row_bytes(step->output), step->room, to->data);
    return CORNU_OK;
}
