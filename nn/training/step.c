/*
 * Steps: the computation on one batch, recorded once and run for every batch.
 *
 *     x, y as stored -> f32 -> layers -> loss over the valid rows -> gradients
 *       -> optimizer; the loss and the metrics are added to their states
 *
 * What follows the predictions is in record_loss.c.
 *
 * A batch always has its full extent; how many of its rows are valid is fed with it, so that the
 * partial one at the end runs the same program and counts exactly.
 *
 * The step is recorded for one shard's part of the batch (shard_rows_internal.h). A shard's
 * loss is its sum over valid rows / the batch's number of them, so the optimizer sums gradients
 * over shards and nothing is scaled again; on a device with one shard those sums vanish.
 */
#include <math.h>
#include <stdio.h>

#include "../../device/inference_internal.h"
#include "../../device/log_internal.h"
#include "../../tensor/graph_internal.h"
#include "../model/host_stage_internal.h"
#include "../model/pipeline_plan_internal.h"
#include "../optimizers/optimizer_internal.h"

/* ---- Data ---- */

/* "x", or the input's name where there are several. */
static const char *input_name(const CornuModel *model, int i)
{
    CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS];
    if (cornu__model_has_own_data(model)) return "x";
    return cornu__model_fed(model, fed) > 1 ? cornu_layer_name(fed[i]->node->layer) : "x";
}

/* The number of an input of the model, -1 of a value that the host has computed. */
static int input_number(const CornuModel *model, const CornuSymbol *symbol)
{
    int i = model->input_count - 1;
    while (i >= 0 && model->inputs[i] != symbol) i--;
    return i;
}

/* The shape of a model's input for data of this shape. As in Keras a trailing axis of extent 1 may
 * be omitted or added; not of a function's, whose axis 0 counts, too. */
static CornuStatus adapt(const CornuModel *model, int input, const CornuSymbol *symbol,
                         CornuShape *shape)
{
    const CornuShape given = *shape, want = symbol->type.shape;
    CornuShape       adapted = want;
    if (model->built_by_call && given.rank == want.rank) return CORNU_OK;
    for (int i = 0; i < want.rank && i < given.rank; i++)
        if (want.extent[i] == CORNU_NONE) adapted.extent[i] = given.extent[i];
    const int last = want.rank - 1;
    bool      fits = given.rank == want.rank ||
                (given.rank == want.rank - 1 && want.rank > 0 && want.extent[last] == 1) ||
                (given.rank == want.rank + 1 && given.extent[given.rank - 1] == 1);
    for (int i = !cornu__model_is_function(model); i < want.rank && i < given.rank; i++)
        fits &= want.extent[i] == CORNU_NONE || given.extent[i] == want.extent[i];
    fits &= !cornu__model_is_function(model) || given.rank == want.rank;
    CornuText a, b;
    if (!fits)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: %s is %s, the model's input %s",
                           model->base.name, input_name(model, input),
                           cornu_shape_print(&a, given), cornu_shape_print(&b, want));
    *shape = adapted;
    return CORNU_OK;
}

/* An input of whole numbers takes no NaN. */
CornuTensor *cornu__model_convert_input(const CornuModel *model, int i, CornuTensor *x)
{
    if (!x) return NULL;
    const bool             whole = !cornu_dtype_is_float(cornu_tensor_type(x).dtype);
    const CornuInputLayer *input = (CornuInputLayer *)model->inputs[i]->node->layer;
    if (!cornu_dtype_is_float(input->dtype)) x = cornu__refuse_nan(NULL, x);
    if (input->dtype != CORNU_F32) return cornu_op_convert(x, input->dtype);
    if (whole && cornu__model_takes_integers(model, i)) return x;
    CornuTensor *y = cornu_op_convert(x, CORNU_F32);
    return whole && input->scale != 1.0 ? cornu_op_scale(y, input->scale) : y;
}

static CornuTensor *convert_input(const CornuModel *model, const CornuSymbol *symbol,
                                  CornuTensor *x, CornuShape shape)
{
    const int i = input_number(model, symbol);
    x = cornu_op_reshape(x, shape);
    return i < 0 ? x : cornu__model_convert_input(model, i, x);
}

/* ---- Forward ---- */

/* cornu_model_call_many; sets masks[i] to the mask of y[i] or NULL. */
static CornuTensor *call_model(CornuModel *model, CornuTensor *const *x, const CornuCall *call,
                               CornuTensor **y, CornuTensor **masks)
{
    CornuTensor *in[CORNU_MAX_MODEL_TENSORS] = { NULL }, *no_masks[CORNU_MAX_MODEL_TENSORS] = { 0 };
    if (!model || !x[0] || cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_model_call: no %s given",
                                model ? "tensor" : "model");
    if (cornu__model_ready(model, cornu_tensor_type(x[0]))) return cornu__null();
    CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS];
    const int    fed_count = cornu__model_fed(model, fed);
    for (int i = 0; i < fed_count; i++) {
        CornuShape  shape = cornu_tensor_shape(x[i]);
        CornuGraph *graph = cornu_tensor_graph(x[0]);
        if (adapt(model, i, fed[i], &shape)) return cornu__null();
        cornu_graph_scope(graph, cornu_layer_name(fed[i]->node->layer));
        in[i] = convert_input(model, fed[i], x[i], shape);
        cornu_graph_scope(graph, NULL);
    }
    CornuCall       full = *call;
    const CornuType i64 = cornu_scalar(CORNU_I64);
    CornuGraph     *graph = full.graph = cornu_tensor_graph(x[0]);
    const CornuShape first = cornu_tensor_shape(x[0]);
    const double     rows = first.rank > 0 ? (double)first.extent[0] : 1.0;
    if (!full.count) full.count = cornu_op_constant(graph, i64, rows);
    if (!full.total) full.total = cornu_op_all_reduce(full.count);
    if (!full.seed) full.seed = cornu_read(graph, model->seed_variable);
    if (!full.iteration) full.iteration = cornu_op_constant(graph, i64, 0.0);
    if (!full.position)
        full.position = cornu_op_multiply(cornu_op_replica_id(graph),
                                          cornu_op_constant(graph, i64, rows));
    no_masks[0] = full.mask;
    if (!cornu__model_call_layers(model, &full, in, no_masks, y, masks) ||
        cornu__layer_penalize_weights(&model->base, &full))
        return cornu__null();
    for (int i = 0; i < model->output_count; i++) y[i] = cornu_op_convert(y[i], CORNU_F32);
    return y[0];
}

static CornuTensor *call_many(CornuModel *model, CornuTensor *const *x, int x_count,
                              const CornuCall *call, CornuTensor **y, int y_count)
{
    CornuTensor *masks[CORNU_MAX_MODEL_TENSORS];
    CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS];
    if (cornu__model_check(model)) return cornu__null();
    const int wanted = model->inputs[0] ? cornu__model_fed(model, fed) : model->input_count;
    if (x_count != wanted || y_count != model->output_count)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: %d tensors are given and %d expected, the "
                                "model has %d inputs and %d outputs", model->base.name, x_count,
                                y_count, wanted, model->output_count);
    for (int i = 0; i < x_count; i++)
        if (!x[i])
            return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_model_call: no tensor given");
    return call_model(model, x, call, y, masks);
}

CornuTensor *cornu_model_call_many(CornuModel *model, CornuTensor *const *x, int x_count,
                                   const CornuCall *call, CornuTensor **y, int y_count)
{
    if (cornu__model_enter(model, "cornu_model_call_many")) return cornu__null();
    CornuTensor *first = call_many(model, x, x_count, call, y, y_count);
    cornu__model_leave(model);
    return first;
}

CornuTensor *cornu_model_call(CornuModel *model, CornuTensor *x, const CornuCall *call)
{
    CornuTensor *y, *masks;
    const bool   many = model && (model->input_count > 1 || model->output_count > 1);
    if (cornu__model_enter(model, "cornu_model_call")) return cornu__null();
    CornuTensor *first = many ? call_many(model, &x, 1, call, &y, 1)
                              : call_model(model, &x, call, &y, &masks);
    cornu__model_leave(model);
    return first;
}

/* *added: the sum that layers add to the loss, unchanged if none does. */
static CornuTensor *forward(CornuModel *model, CornuStep *step, CornuTensor **masks,
                            CornuTensor **added)
{
    const CornuOptimizer *optimizer = model->optimizer;
    CornuVariable        *iteration = optimizer ? cornu_optimizer_iteration(optimizer) : NULL;
    return call_model(model, step->x, &(CornuCall){
        .training = step->mode == CORNU_STEP_TRAIN && !model->trains_as_inference,
        .count = step->count, .total = step->total, .position = step->position,
        .microbatch = step->microbatched, .loss = step->mode == CORNU_STEP_PREDICT ? NULL : added,
        .iteration = iteration ? cornu_read(step->graph, iteration) : NULL }, step->predictions,
        masks);
}

/* Whether the data of a step of this mode are not the model's inputs and outputs. */
static bool has_own_data(const CornuModel *model, CornuStepMode mode)
{
    return cornu__model_has_own_data(model) &&
           (mode != CORNU_STEP_PREDICT || cornu__model_has_own(model, mode));
}

static CornuStatus check_rows(const CornuModel *model, const CornuStep *step, CornuType array,
                              const char *what)
{
    CornuText a, b;
    const CornuType x = step->x_types[0];
    if (cornu__model_is_function(model)) return CORNU_OK;
    if (array.shape.rank >= 1 && array.shape.extent[0] == x.shape.extent[0]) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "%s: %s is %s and %s is %s, expected the same "
                       "number of rows",
                       model->base.name, input_name(model, 0), cornu_shape_print(&a, x.shape), what,
                       cornu_shape_print(&b, array.shape));
}

/* ---- Recording and running ---- */

/* Those of a step that runs once: all of the data, for every shard. What a layer counts with is
 * constant: cornu_model_call. */
static CornuStatus make_whole_inputs(CornuModel *model, CornuStep *step)
{
    for (int i = 0; i < step->x_count; i++) {
        CORNU__TRY(check_rows(model, step, step->x_types[i], input_name(model, i)));
        step->x[i] = cornu_graph_input(step->graph, step->x_types[i]);
        step->fed_bytes += (int64_t)cornu_type_bytes(step->x_types[i]);
    }
    step->position = cornu_op_constant(step->graph, cornu_scalar(CORNU_I64), 0.0);
    return cornu_error_take();
}

/* Component i of the data: fed, or taken from the device's memory by the numbers that are fed. */
static CornuTensor *make_input(CornuStep *step, int i, CornuType batch)
{
    const CornuType type = cornu__shard_type(step, batch);
    return step->resident ? step->resident->take(step->resident, step->graph, i, step->row_numbers,
                                                 type)
                          : cornu_graph_shard_input(step->graph, type);
}

/* The step's inputs. */
static CornuStatus make_inputs(CornuModel *model, CornuStep *step)
{
    const CornuType i64 = cornu_scalar(CORNU_I64);
    size_t          row = 0;
    if (cornu__step_runs_once(step)) return make_whole_inputs(model, step);
    if (step->resident)
        step->row_numbers = cornu_graph_shard_input(step->graph, cornu_type(CORNU_I64, step->rows));
    for (int i = 0; i < step->x_count; i++) {
        CORNU__TRY(check_rows(model, step, step->x_types[i], input_name(model, i)));
        step->x[i] = make_input(step, i, step->x_types[i]);
        row += cornu__row_bytes(step->x_types[i]);
    }
    step->count = cornu_graph_shard_input(step->graph, i64);
    step->position = cornu_graph_shard_input(step->graph, i64);
    step->total = cornu_graph_input(step->graph, i64);
    for (int i = 0; i < step->y_count && step->mode != CORNU_STEP_PREDICT; i++) {
        CORNU__TRY(check_rows(model, step, step->y_types[i], "y"));
        step->y[i] = make_input(step, step->x_count + i, step->y_types[i]);
        row += cornu__row_bytes(step->y_types[i]);
    }
    for (int i = 0; i < step->weight_count; i++) {
        CORNU__TRY(check_rows(model, step, step->weight_types[i], "sample_weight"));
        step->weights[i] = make_input(step, step->x_count + step->y_count + i,
                                      step->weight_types[i]);
        row += cornu__row_bytes(step->weight_types[i]);
    }
    if (step->resident) row = sizeof(int64_t);
    step->fed_bytes = step->own.count * step->rows * (int64_t)row;
    return cornu_error_take();
}

/* Predictions are split over the shards like data, even those that depend on no data, such as
 * learned positions. */
static CornuTensor *of_every_shard(const CornuStep *step, CornuTensor *y)
{
    if (!y || cornu_tensor_varies(y)) return y;
    CornuTensor *zero = cornu_op_constant_like(step->count, 0.0);
    return cornu_op_select(cornu_op_compare(step->count, CORNU_LESS, zero), y, y);
}

/* A microbatch is fed like a shard, or as many as the device has. */
static CornuStatus share_microbatches(const CornuModel *model, CornuStep *step)
{
    const int64_t batch = step->x_types[0].shape.extent[0];
    const int     microbatches = model->pipeline->microbatches, shards = step->shards;
    char          each[40] = "";
    if (cornu__model_mixes_rows(model))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: pipeline_parallel: rows depend on each "
                           "other: %s. Expected rows that microbatches can share",
                           model->base.name, model->dependence.text);
    if (shards > 1) snprintf(each, sizeof each, " on %d shards", shards);
    if (batch < (int64_t)microbatches * shards)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: a batch of %lld rows for %d microbatches%s, "
                           "expected at least one row for each", model->base.name,
                           (long long)batch, microbatches, each);
    if (microbatches > CORNU_MAX_SHARDS / shards)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: %d microbatches%s, expected at most %d",
                           model->base.name, microbatches, each, CORNU_MAX_SHARDS / shards);
    step->shards = microbatches * shards;
    step->own = (CornuShare){ .shards = step->shards, .count = step->shards };
    return CORNU_OK;
}

/* Whether its function, a loss or metric that it computes, or a layer is of whole batches. */
static bool is_of_whole_batches(const CornuModel *model, const CornuStep *step)
{
    const bool predicts = step->mode == CORNU_STEP_PREDICT;
    if (cornu__step_runs_once(step) || step->microbatched ||
        cornu_process_count(cornu_device_processes(model->device)) > 1)
        return false;
    return (model->valid_rows && (!predicts || cornu__model_has_own(model, step->mode))) ||
           (cornu_device_shards(model->device) > 1 && cornu__layer_assigns(&model->base));
}

/* The rows of each shard. */
static CornuStatus share_rows(const CornuModel *model, CornuStep *step)
{
    const int64_t batch = step->x_types[0].shape.extent[0];
    if (model->batch_size && batch != model->batch_size)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: a batch of %lld rows, expected the model's "
                           ".batch_size, %lld", model->base.name, (long long)batch,
                           (long long)model->batch_size);
    step->together = !cornu__step_runs_once(step) && !has_own_data(model, step->mode) &&
                     (cornu__model_mixes_rows(model) || cornu__model_runs_once(model));
    step->whole_batch = step->together || is_of_whole_batches(model, step);
    step->shards = step->whole_batch ? 1 : cornu_device_shards(model->device);
    step->own = step->whole_batch ? (CornuShare){ .shards = 1, .count = 1 }
                                  : cornu__share_of(model->device);
    if (step->microbatched) CORNU__TRY(share_microbatches(model, step));
    step->rows = (batch + step->shards - 1) / step->shards;
    if (batch < step->shards && !cornu__step_runs_once(step))
        return cornu__fail(CORNU_ERR_SHAPE, "%s: a batch of %lld rows for %d shards, expected at "
                           "least one row for each", model->base.name, (long long)batch,
                           step->shards);
    return CORNU_OK;
}

static CornuStatus finish_predictions(CornuStep *step)
{
    const bool once = cornu__step_runs_once(step);
    for (int i = 0; i < step->y_count; i++) {
        if (!once) step->predictions[i] = of_every_shard(step, step->predictions[i]);
        if (!step->predictions[i]) return cornu_error_take();
        step->outputs[i] = cornu_tensor_type(step->predictions[i]);
        const int64_t rows = step->outputs[i].shape.rank ? step->outputs[i].shape.extent[0] : 0;
        if (!once && rows != step->rows)
            return cornu__fail(CORNU_ERR_SHAPE, "an output has %lld rows for a batch of %lld, "
                               "expected as many", (long long)rows, (long long)step->rows);
        if (!once) step->outputs[i].shape.extent[0] = step->x_types[0].shape.extent[0];
        if (once && cornu_tensor_varies(step->predictions[i]))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "an output differs from shard to shard");
    }
    return CORNU_OK;
}

/* Of a step that is not the model's own beside one that is. */
static CornuStatus check_own_data(const CornuModel *model, const CornuStep *step)
{
    CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS];
    const int    wanted = cornu__model_fed(model, fed);
    if (step->x_count == wanted && step->y_count == model->output_count) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: a batch has %d arrays x and %d y, expected those "
                       "of %d inputs and %d outputs: the step is not its own", model->base.name,
                       step->x_count, step->y_count, wanted, model->output_count);
}

/* The library of `make inference` has no partitioning. */
static CornuStatus set_whole_batch(CornuGraph *graph)
{
    CornuStatus (*const set)(CornuGraph *graph) = CORNU__FULL(cornu_graph_set_whole_batch, NULL);
    if (cornu_device_shards(cornu_graph_device(graph)) == 1) return CORNU_OK;
    return set ? set(graph)
               : cornu__fail(CORNU_ERR_UNSUPPORTED, "rows that depend on each other are dealt to "
                             "several shards by the whole library alone");
}

static CornuStatus record_step(CornuModel *model, CornuStep *step)
{
    if (!cornu__model_is_function(model)) CORNU__TRY(share_rows(model, step));
    step->graph = cornu_graph_create(model->device);
    if (!step->graph) return cornu_error_take();
    if (step->whole_batch) CORNU__TRY(set_whole_batch(step->graph));
    cornu_graph_watch(step->graph, model->debug_nans);
    cornu_graph_set_concurrent(step->graph, step->concurrent);
    CORNU__TRY(make_inputs(model, step));
    if (cornu__model_has_own(model, step->mode)) {
        CORNU__TRY(model->when_compiled->own(model, step));
        step->stateful = cornu__layer_has_states(&model->base);
        return step->mode == CORNU_STEP_PREDICT ? finish_predictions(step) : CORNU_OK;
    }
    if (has_own_data(model, step->mode)) CORNU__TRY(check_own_data(model, step));
    CornuTensor *masks[CORNU_MAX_MODEL_TENSORS] = { NULL };
    CornuTensor *added = NULL;
    if (!forward(model, step, masks, &added)) return cornu_error_take();
    step->stateful = cornu__layer_has_states(&model->base);
    CORNU__TRY(finish_predictions(step));
    if (step->mode == CORNU_STEP_PREDICT) return CORNU_OK;
    return model->when_compiled->record(model, step, masks, added);
}

/* Staging buffers for the predictions of all shards, before they are put in the order of the batch;
 * one shard needs none. */
static CornuStatus allocate_staging(CornuStep *step)
{
    const size_t rows = (size_t)(step->shards * step->rows);
    if (step->shards == 1 || cornu__step_runs_once(step)) return CORNU_OK;
    for (int i = 0; i < step->y_count && cornu__step_predicts(step); i++) {
        step->staging[i] = cornu__allocate(rows, cornu__row_bytes(step->outputs[i]));
        if (!step->staging[i]) return CORNU_ERR_MEMORY;
    }
    return CORNU_OK;
}

bool cornu__step_takes(const CornuStep *step, const CornuArrays *arrays)
{
    for (int i = 0; i < step->x_count; i++)
        if (!cornu_type_equal(step->x_types[i], arrays->x[i].type)) return false;
    if (step->resident_id != (arrays->resident ? arrays->resident->id : 0)) return false;
    if (step->mode == CORNU_STEP_PREDICT) return true;
    for (int i = 0; i < step->y_count; i++)
        if (!cornu_type_equal(step->y_types[i], arrays->y[i].type)) return false;
    if (step->weight_count != arrays->weight_count) return false;
    for (int i = 0; i < step->weight_count; i++)
        if (!cornu_type_equal(step->weight_types[i], arrays->weights[i].type)) return false;
    return true;
}

static CornuStep *new_step(const CornuModel *model, CornuStepMode mode, const CornuArrays *arrays,
                           bool concurrent)
{
    CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS];
    CornuStep   *step = cornu__allocate(1, sizeof *step);
    const bool   own = has_own_data(model, mode);
    if (!step) return NULL;
    *step = (CornuStep){ .mode = mode, .fed_count = -1, .concurrent = concurrent,
                         .x_count = own ? cornu__model_xs(model, mode)
                                        : cornu__model_fed(model, fed),
                         .y_count = own && mode != CORNU_STEP_PREDICT ? cornu__model_ys(model, mode)
                                                                      : model->output_count,
                         .once = mode == CORNU_STEP_PREDICT && !own &&
                                 cornu__model_runs_once(model) };
    step->resident = arrays->resident;
    step->resident_id = arrays->resident ? arrays->resident->id : 0;
    for (int i = 0; i < step->x_count; i++) step->x_types[i] = arrays->x[i].type;
    if (mode == CORNU_STEP_PREDICT) return step;
    for (int i = 0; i < step->y_count; i++) step->y_types[i] = arrays->y[i].type;
    step->weight_count = arrays->weight_count;
    for (int i = 0; i < step->weight_count; i++) step->weight_types[i] = arrays->weights[i].type;
    return step;
}

/* Steps cached per mode, for batches of different sizes and lengths. */
enum { KEPT_STEPS = 8 };

/* Moves it to the front: the list is in order of use, the most recent first. */
static void use(CornuModel *model, CornuStep *step)
{
    CornuStep **link = &model->steps;
    while (*link && *link != step) link = &(*link)->next;
    if (*link) *link = step->next;
    step->next = model->steps;
    model->steps = step;
}

/* Evicts the least recently used step of this mode if there are too many. */
static void evict(CornuModel *model, CornuStepMode mode)
{
    int kept = 0;
    for (CornuStep **link = &model->steps; *link; link = &(*link)->next) {
        CornuStep *step = *link;
        if (step->mode != mode || ++kept <= KEPT_STEPS) continue;
        *link = step->next;
        cornu__step_free(step);
        return;
    }
}

/* Whether a step that does not train draws: training draws by its iteration, which others have
 * not. */
static bool draws(const CornuStep *step)
{
    const CornuProgram *program = step->graph ? step->graph->program : NULL;
    bool                does = false;
    for (int i = 0; program && i < program->op_count && step->mode != CORNU_STEP_TRAIN; i++)
        does |= program->ops[i].id == CORNU_OP_RANDOM_UNIFORM ||
                program->ops[i].id == CORNU_OP_DROPOUT;
    return does;
}

static CornuStatus make(CornuModel *model, CornuStep *step, const CornuArrays *arrays)
{
    CORNU__TRY(record_step(model, step));
    step->draws = draws(step);
    CORNU__TRY(allocate_staging(step));
    const int fetched = cornu__step_predicts(step) ? step->y_count : 0;
    CORNU__TRY(step->pipeline ? step->runs->finish(model, step)
                              : cornu_graph_prepare(step->graph, step->predictions, fetched));
    static const char *const does[] = { "trains", "tests", "tests and predicts", "predicts" };
    if (cornu__model_is_function(model))
        cornu__log(CORNU_LOG_INFO, "%s: a new step that predicts", model->base.name);
    else
        cornu__log(CORNU_LOG_INFO, "%s: a new step that %s with batches of %lld rows",
                   model->base.name, does[step->mode],
                   (long long)arrays->x[0].type.shape.extent[0]);
    return CORNU_OK;
}

/* The data say nothing of the model's inputs. */
static CornuStatus ready_for_own(CornuModel *model)
{
    if (model->ready) return CORNU_OK;
    if (model->base.built) return cornu__model_make_variables(model);
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: has no input shape yet, and the data of its own "
                       "step are not its input; cornu_model_build comes first", model->base.name);
}

/* A step that predicts needs no optimizer or loss, so that the model need not be compiled. */
static CornuStatus get_ready(CornuModel *model, CornuStepMode mode, const CornuArrays *arrays)
{
    if (mode != CORNU_STEP_PREDICT)
        CORNU__TRY(cornu__model_refuse_function(model, mode == CORNU_STEP_TRAIN ? "training"
                                                                                : "evaluation"));
    CORNU__TRY(mode == CORNU_STEP_PREDICT ? cornu__model_prepare_to_predict(model)
                                          : cornu__model_check_compiled(model));
    if (has_own_data(model, mode)) return ready_for_own(model);
    CORNU__TRY(cornu__model_ready(model, arrays->x[0].type));
    CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS];
    CornuType    types[CORNU_MAX_MODEL_TENSORS];
    const int    count = cornu__model_fed(model, fed);
    for (int i = 0; i < count; i++) types[i] = arrays->x[i].type;
    return cornu__model_rows(model, types);
}

CornuStatus cornu__step_make(CornuModel *model, CornuStepMode mode, const CornuArrays *arrays,
                             bool concurrent, CornuStep **step)
{
    CORNU__TRY(get_ready(model, mode, arrays));
    CornuStep *fresh = new_step(model, mode, arrays, concurrent);
    if (!fresh) return CORNU_ERR_MEMORY;
    CornuStatus status = CORNU_OK;
    if (model->pipeline && mode == CORNU_STEP_TRAIN && cornu__model_has_own(model, mode))
        status = cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: pipeline_parallel of a step of its own, "
                             "expected one of .loss", model->base.name);
    else if (model->pipeline)
        status = model->when_compiled->pipeline(model, fresh);
    if (!status) status = make(model, fresh, arrays);
    if (status) cornu__step_free(fresh);
    else *step = fresh;
    return status;
}

/* Whether the model's own data have changed since: other numbers of arrays. */
static bool has_other_counts(const CornuModel *model, const CornuStep *step)
{
    return has_own_data(model, step->mode) && step->mode != CORNU_STEP_PREDICT &&
           (step->x_count != cornu__model_xs(model, step->mode) ||
            step->y_count != cornu__model_ys(model, step->mode));
}

static CornuStatus find_or_make(CornuModel *model, CornuStepMode mode, const CornuArrays *arrays,
                                CornuStep **step)
{
    CORNU__TRY(get_ready(model, mode, arrays));
    CornuStep *old = model->steps;
    while (old && (old->mode != mode || has_other_counts(model, old) ||
                   !cornu__step_takes(old, arrays)))
        old = old->next;
    if (old && cornu_graph_is_current(old->graph)) {
        use(model, old);
        *step = old;
        return CORNU_OK;
    }
    if (old) cornu__steps_free(model);   /* another model has repacked shared weights */
    if (mode == CORNU_STEP_TRAIN) CORNU__TRY(cornu__model_follow_trainable(model));
    if (mode == CORNU_STEP_TRAIN) CORNU__TRY(model->when_compiled->pack(model));
    CornuStep *fresh;
    CORNU__TRY(cornu__step_make(model, mode, arrays, false, &fresh));
    model->trains |= mode == CORNU_STEP_TRAIN;
    use(model, fresh);
    evict(model, mode);
    *step = fresh;
    return CORNU_OK;
}

CornuStatus cornu__step(CornuModel *model, CornuStepMode mode, const CornuArrays *arrays,
                        CornuStep **step)
{
    const CornuStatus status = find_or_make(model, mode, arrays, step);
    if (status == CORNU_ERR_MEMORY && mode == CORNU_STEP_TRAIN && model->compiled)
        model->when_compiled->advise(model, arrays->x, arrays->y);
    return status;
}
