/*
 * A training step of a pipeline: the step of one microbatch, cut into stages, whose gradients are
 * added up; and the optimizer's update, once a batch.
 *
 * As over shards, a microbatch's loss is its sum over valid rows / the batch's number of them.
 */
#include "pipeline_step_internal.h"

#include <stdio.h>
#include <string.h>

#include "../../device/lookup_internal.h"
#include "../losses/loss_internal.h"
#include "../model/compiled_internal.h"
#include "../optimizers/optimizer_internal.h"

/* Whether the stages are of several ranks, or groups of ranks. */
static bool is_shared(const CornuModel *model) { return cornu__ranks_of(model->device).count > 1; }

/* The shards that share a microbatch. */
static int shards_of(const CornuStep *step)
{
    return cornu_device_shards(cornu_graph_device(step->graph));
}

/* ---- What microbatches cannot do ---- */

static CornuStatus refuse(const CornuModel *model, const char *what, const char *instead)
{
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: pipeline_parallel: %s, of which a microbatch "
                       "knows its own rows only; expected %s", model->base.name, what, instead);
}

CornuStatus cornu__pipeline_check_loss(const CornuModel *model, const CornuLoss *loss,
                                       const CornuMetricCall *call)
{
    if (loss->across_rows)
        return refuse(model, "a loss over the rows of the whole batch", "one that has a value for "
                      "each row");
    if (loss->reduction == CORNU_MEAN_WITH_SAMPLE_WEIGHT && call->weight)
        return refuse(model, "a loss divided by the sample weights of the whole batch",
                      ".reduction = CORNU_MEAN");
    if (call->mask && loss->reduction != CORNU_SUM)
        return refuse(model, "a loss divided by the number of values of the whole batch that a "
                      "mask keeps", "one without mask, or .reduction = CORNU_SUM");
    return CORNU_OK;
}

static CornuStatus check(const CornuModel *model, const CornuStep *step)
{
    if (step->stateful)
        return refuse(model, "a layer is stateful", "layers without states");
    if (model->debug_nans)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: .debug_nans within pipeline_parallel, "
                           "expected one of the two", model->base.name);
    for (int i = 0; i < model->optimizer->count; i++)
        if (cornu_variable_has_sparse_gradient(model->optimizer->w[i]))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: .sparse_gradient of %s within "
                               "pipeline_parallel, expected one of the two", model->base.name,
                               cornu_variable_name(model->optimizer->w[i]));
    return CORNU_OK;
}

/* ---- Gradients ---- */

static CornuStatus sum(CornuPipelineStep *self, CornuGraph *of_microbatch, const CornuVariable *w,
                       CornuTensor **d_w)
{
    CornuVariable *total = cornu_variable_create(cornu_graph_device(of_microbatch),
                                                 cornu_tensor_type(*d_w), cornu_variable_name(w),
                                                 .use = CORNU_USE_SLOTS,
                                                 .layout = cornu_variable_layout(w));
    if (!total) return cornu_error_take();
    self->sums[self->sum_count++] = total;
    CornuTensor *added = cornu_op_add(cornu_read(of_microbatch, total),
                                      cornu_op_all_reduce(*d_w));
    CORNU__TRY(added ? cornu_assign(total, added) : cornu_error_take());
    *d_w = cornu_read(self->update, total);
    CornuTensor *zero = *d_w ? cornu_op_constant_like(*d_w, 0.0) : NULL;
    return zero ? cornu_assign(total, zero) : cornu_error_take();
}

CornuStatus cornu__pipeline_sum(CornuModel *model, CornuStep *step, CornuGraph **graph,
                                CornuTensor **d_w)
{
    CornuPipelineStep    *self = step->pipeline;
    const CornuOptimizer *optimizer = model->optimizer;
    CORNU__TRY(check(model, step));
    self->update = cornu_graph_create(model->device);
    if (!self->update) return cornu_error_take();
    self->sums = cornu__allocate((size_t)optimizer->count, sizeof(CornuVariable *));
    if (!self->sums) return CORNU_ERR_MEMORY;
    for (int i = 0; i < optimizer->count; i++)
        CORNU__TRY(sum(self, *graph, optimizer->w[i], &d_w[i]));
    *graph = self->update;
    return CORNU_OK;
}

static CornuStatus clear_sums(CornuPipelineStep *self)
{
    for (int i = 0; i < self->sum_count; i++) {
        const CornuType type = cornu_variable_type(self->sums[i]);
        CornuArray      zeros = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
        if (!zeros.data) return CORNU_ERR_MEMORY;
        const CornuStatus status = cornu_variable_write(self->sums[i], zeros);
        cornu__release(zeros.data);
        CORNU__TRY(status);
    }
    self->dirty = false;
    return CORNU_OK;
}

/* ---- Stages ---- */

static CornuStatus list_layers(const CornuModel *model, CornuPipelineLayers *layers)
{
    const size_t most = (size_t)model->call_count + 1;
    *layers = (CornuPipelineLayers){ .name = cornu__allocate(most, sizeof *layers->name),
                        .cost = cornu__allocate(most, sizeof *layers->cost),
                        .stage = cornu__allocate(most, sizeof *layers->stage),
                        .number = { .of_strings = true } };
    if (!layers->name || !layers->cost || !layers->stage) return CORNU_ERR_MEMORY;
    for (int i = 0; i < model->call_count; i++) {
        const char *name = cornu_layer_name(model->calls[i].node->layer);
        if (cornu__lookup_find(&layers->number, name) >= 0) continue;
        CORNU__TRY(cornu__lookup_set(&layers->number, name, layers->count));
        layers->name[layers->count++] = name;
    }
    return CORNU_OK;
}

static void free_layers(CornuPipelineLayers *layers)
{
    cornu__lookup_clear(&layers->number);
    cornu__release(layers->name);
    cornu__release(layers->cost);
    cornu__release(layers->stage);
}

/* Where the user says. */
static CornuStatus cut_where_told(const CornuModel *model, CornuPipelineLayers *layers)
{
    const CornuPipelinePlan *plan = model->pipeline;
    int                      stage = 0;
    for (int k = 0, before = 0; k < plan->cuts; k++) {
        const int at = cornu__lookup_find(&layers->number, plan->cut_at[k]);
        if (at < 0)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: pipeline_parallel: .cut_at[%d] is \"%s\", "
                               "expected a layer of the model", model->base.name, k,
                               plan->cut_at[k]);
        if (at <= before)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: pipeline_parallel: .cut_at[%d] is \"%s\", "
                               "expected a layer after %s", model->base.name, k, plan->cut_at[k],
                               layers->name[before]);
        before = at;
    }
    for (int i = 0; i < layers->count; i++) {
        if (stage < plan->cuts && strcmp(layers->name[i], plan->cut_at[stage]) == 0) stage++;
        layers->stage[i] = stage;
    }
    return CORNU_OK;
}

static CornuStatus balance(const CornuModel *model, CornuPipelineLayers *layers)
{
    const int stages = model->pipeline->stages;
    int       costly = 0;
    if (cornu__stages_balance(layers->cost, layers->count, stages, layers->stage)) return CORNU_OK;
    for (int i = 0; i < layers->count; i++) costly += layers->cost[i] > 0.0;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: pipeline_parallel: .stages is %d, expected at most "
                       "%d: as many layers of the model compute", model->base.name, stages, costly);
}

/* The stages of the model's layers: those of its first step, as weights are dealt by them. */
static CornuStatus choose(const CornuModel *model, CornuPipelineLayers *layers)
{
    CornuPipelinePlan *plan = model->pipeline;
    const size_t       bytes = (size_t)layers->count * sizeof *plan->stage;
    if (plan->stage && plan->layers == layers->count) {
        memcpy(layers->stage, plan->stage, bytes);
        return CORNU_OK;
    }
    CORNU__TRY(plan->cuts ? cut_where_told(model, layers) : balance(model, layers));
    int *stage = cornu__allocate((size_t)layers->count, sizeof *stage);
    if (!stage) return CORNU_ERR_MEMORY;
    memcpy(stage, layers->stage, bytes);
    cornu__release(plan->stage);
    plan->stage = stage;
    plan->layers = layers->count;
    return CORNU_OK;
}

/* All ranks cut the same program at the same places. */
static CornuStatus agree(const CornuModel *model, const CornuProgram *program,
                         const CornuPipelineLayers *layers)
{
    char     text[80];
    uint64_t hash = cornu_program_hash(program);
    for (int i = 0; i < layers->count; i++) hash = cornu__hash(hash, (uint64_t)layers->stage[i]);
    snprintf(text, sizeof text, "of a program of %d ops with hash %016llx", program->op_count,
             (unsigned long long)hash);
    return cornu__processes_agree(cornu_device_processes(model->device), "the pipeline", text);
}

static CornuStatus cut(CornuModel *model, CornuStep *step, CornuPipelineLayers *layers)
{
    const CornuPipelinePlan *plan = model->pipeline;
    CornuPipeline           *pipeline = step->pipeline->pipeline;
    CornuLookup              stage_of = { .of_strings = true };
    CornuStatus              status = CORNU_OK;
    cornu__stages_costs(pipeline->program, &layers->number, layers->cost);
    for (int i = 0; i < model->input_count; i++) {   /* a conversion of the data makes no stage */
        const char *name = cornu_layer_name(model->inputs[i]->node->layer);
        const int   number = cornu__lookup_find(&layers->number, name);
        if (number >= 0) layers->cost[number] = 0.0;
    }
    CORNU__TRY(choose(model, layers));
    CORNU__TRY(agree(model, pipeline->program, layers));
    for (int i = 0; i < layers->count && !status; i++)
        status = cornu__lookup_set(&stage_of, layers->name[i], layers->stage[i]);
    if (!status)
        status = cornu__pipeline_cut(pipeline, &stage_of, plan->stages,
                                     step->shards / shards_of(step), plan->schedule);
    cornu__lookup_clear(&stage_of);
    return status ? status : cornu__pipeline_describe(model, step, layers);
}

/* The stages write predictions into variables, which all ranks have. */
static CornuStatus keep_predictions(const CornuModel *model, CornuStep *step)
{
    for (int i = 0; i < step->y_count && step->mode != CORNU_STEP_TEST; i++) {
        CornuVariable *kept = cornu_variable_create(
            model->device, cornu_tensor_type(step->predictions[i]), "predictions",
            .spread = cornu_tensor_varies(step->predictions[i]) ? CORNU_PER_SHARD : CORNU_SHARED);
        if (!kept) return cornu_error_take();
        step->pipeline->predictions[i] = kept;
        CornuTensor *read = cornu_read(step->graph, kept);
        CORNU__TRY(read ? cornu_assign(kept, step->predictions[i]) : cornu_error_take());
    }
    return CORNU_OK;
}

static CornuStatus prepare_update(const CornuModel *model, CornuPipelineStep *self)
{
    if (!self->update) return CORNU_OK;
    if (!is_shared(model)) return cornu_graph_prepare(self->update, NULL, 0);
    self->shared = cornu__rank_graph_create(self->update);
    return self->shared ? CORNU_OK : cornu_error_take();
}

/* Adds a program that runs so many times. */
static void count(CornuStatistics *to, const CornuStatistics *of, int64_t times)
{
    to->flops += of->flops * times;
    to->ops += of->ops * times;
    to->kernels += of->kernels * times;
    to->fallbacks += of->fallbacks;
    to->copies += of->copies * times;
    to->bytes_planned += of->bytes_planned;
    to->bytes_moved += of->bytes_moved * times;
    for (int id = 0; id < CORNU_OP_COUNT; id++)
        if (of->fell_back[id]) to->fell_back[id] = of->fell_back[id];
}

static void count_all(CornuPipelineStep *self)
{
    const CornuPipeline *pipeline = self->pipeline;
    CornuStatistics     *to = &self->statistics;
    for (int p = 0; p < CORNU__MAX_PHASES; p++)
        if (pipeline->executables[p])
            count(to, cornu_executable_statistics(pipeline->executables[p]),
                  pipeline->microbatches);
    for (int p = 0; self->shared && p < CORNU__SHARE_ROUNDS; p++)
        if (self->shared->executables[p])
            count(to, cornu_executable_statistics(self->shared->executables[p]), 1);
    if (self->update && !self->shared) count(to, cornu_graph_statistics(self->update), 1);
}

/* The ranks know what they have: now its values are drawn. */
static CornuStatus settle(const CornuModel *model)
{
    for (int i = 0; i < model->base.weight_count; i++)
        CORNU__TRY(cornu__variable_settle(model->base.weights[i]->variable));
    for (int i = 0; i < cornu_model_optimizer_variable_count(model); i++)
        CORNU__TRY(cornu__variable_settle(cornu_model_optimizer_variable(model, i)));
    return CORNU_OK;
}

static CornuStatus finish(CornuModel *model, CornuStep *step)
{
    CornuPipelineStep *self = step->pipeline;
    CornuPipelineLayers             layers;
    CORNU__TRY(step->microbatched ? check(model, step) : keep_predictions(model, step));
    if (!(self->pipeline = cornu__pipeline_create(step->graph))) return cornu_error_take();
    CornuStatus status = list_layers(model, &layers);
    if (!status) status = cut(model, step, &layers);
    free_layers(&layers);
    CORNU__TRY(status);
    CORNU__TRY(prepare_update(model, self));
    CORNU__TRY(settle(model));
    count_all(self);
    return CORNU_OK;
}

/* ---- Running ---- */

static CornuStatus feed(CornuStep *step, CornuTensor *input, CornuType type, int64_t first,
                        int64_t rows, const void *data)
{
    const char *from = data;
    type.shape.extent[0] = 1;
    const size_t  row_bytes = cornu_type_bytes(type);
    const int64_t row = cornu_type_count(type), each = step->rows * shards_of(step);
    while (rows > 0) {
        const int64_t within = first % each, left = each - within;
        const int64_t now = rows < left ? rows : left;
        type.shape.extent[0] = now;
        CORNU__TRY(cornu__pipeline_feed(step->pipeline->pipeline, (int)(first / each), input,
                                        within * row,
                                        cornu_array_from((void *)(uintptr_t)from, type)));
        from += (size_t)now * row_bytes;
        first += now;
        rows -= now;
    }
    return CORNU_OK;
}

static CornuStatus feed_numbers(CornuPipelineStep *self, int microbatch, const CornuTensor *input,
                                const int64_t *numbers, int count)
{
    return cornu__pipeline_feed(self->pipeline, microbatch, input, 0,
                                cornu_array_from((void *)(uintptr_t)numbers,
                                                 cornu_type(CORNU_I64, count)));
}

/* Microbatches without valid rows are the last ones; they do not run. */
static CornuStatus feed_counts(CornuStep *step, const CornuShardRows *split, int64_t valid)
{
    CornuPipelineStep *self = step->pipeline;
    const int shards = shards_of(step);
    int64_t   first[CORNU_MAX_SHARDS];
    for (int s = 0; s < step->shards; s++)
        first[s] = split->first[s] + (step->draws ? step->ahead : 0);
    self->active = 0;
    for (int s = 0; s < step->shards && split->count[s] > 0; s += shards) {
        CORNU__TRY(feed_numbers(self, self->active, step->count, split->count + s, shards));
        CORNU__TRY(feed_numbers(self, self->active, step->position, first + s, shards));
        CORNU__TRY(feed_numbers(self, self->active, step->total, &valid, 1));
        self->active++;
    }
    step->fed_count = valid;
    step->fed_ahead = step->ahead;
    return CORNU_OK;
}

/* The shard whose value is at fault, of those that share the batch, for who names the row. */
static CornuStatus locate(const CornuStep *step, CornuStatus status, int microbatch)
{
    CornuFault fault = cornu__error_fault();
    if (status != CORNU_ERR_VALUE || fault.count == 0 || fault.runs_ago > 0) return status;
    char message[512];
    fault.shard = microbatch * shards_of(step) +
                  cornu__part_of_shard(cornu_graph_device(step->graph), fault.shard);
    strncpy(message, cornu_error_message(), sizeof message - 1);
    message[sizeof message - 1] = '\0';
    return cornu__fail_value(fault, "%s", message);
}

static CornuStatus read_predictions(const CornuStep *step, const CornuArray *to)
{
    for (int i = 0; i < step->y_count && to; i++) {
        const CornuVariable *kept = step->pipeline->predictions[i];
        CORNU__TRY(cornu_variable_read(kept, cornu_array_from(to[i].data,
                                                              cornu_variable_host_type(kept))));
    }
    return CORNU_OK;
}

static CornuStatus run(CornuStep *step, CornuArray *to)
{
    CornuPipelineStep *self = step->pipeline;
    int                microbatch;
    if (self->dirty) CORNU__TRY(clear_sums(self));
    self->dirty = true;
    const CornuStatus status = cornu__pipeline_run(self->pipeline, self->active, &microbatch);
    CORNU__TRY(locate(step, status, microbatch));
    if (self->shared) CORNU__TRY(cornu__rank_graph_run(self->shared));
    else if (self->update) CORNU__TRY(cornu_run(self->update, NULL, 0, NULL));
    self->dirty = false;
    return step->microbatched ? CORNU_OK : read_predictions(step, to);
}

static const CornuStatistics *statistics(const CornuStep *step)
{
    return &step->pipeline->statistics;
}

static void free_step(CornuStep *step)
{
    CornuPipelineStep *self = step->pipeline;
    cornu__pipeline_free(self->pipeline);
    cornu__rank_graph_free(self->shared);
    cornu_graph_free(self->update);
    for (int i = 0; i < step->y_count; i++) cornu_variable_free(self->predictions[i]);
    for (int i = 0; i < self->sum_count; i++) cornu_variable_free(self->sums[i]);
    cornu__release(self->sums);
    cornu__release(self);
}

CornuStatus cornu__compiled_pipeline(const CornuModel *model, CornuStep *step)
{
    static const CornuStepRuns runs = { feed, feed_counts, finish, run, statistics, free_step };
    step->microbatched = step->mode == CORNU_STEP_TRAIN;
    if (!step->microbatched && !is_shared(model)) return CORNU_OK;
    if (step->concurrent)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: predictions beside others of a model whose "
                           "stages are of several processes, expected one at a time",
                           model->base.name);
    step->pipeline = cornu__allocate(1, sizeof *step->pipeline);
    step->runs = &runs;
    return step->pipeline ? CORNU_OK : CORNU_ERR_MEMORY;
}
