/* What a model that trains as a pipeline became. */
#include "pipeline_step_internal.h"

#include <string.h>

#include "../../device/device_internal.h"
#include "../../device/tpu/model.h"
#include "../optimizers/optimizer_internal.h"

/* ---- Bytes ---- */

/* The stage of the first layer called that has the weight; -1: none has. */
static int stage_of(const CornuModel *model, const CornuPipelineLayers *layers,
                    const CornuVariable *w)
{
    for (int i = 0; i < model->call_count; i++) {
        const CornuLayer *layer = model->calls[i].node->layer;
        for (int k = 0; k < layer->weight_count; k++)
            if (layer->weights[k]->variable == w)
                return layers->stage[cornu__lookup_find(&layers->number, cornu_layer_name(layer))];
    }
    return -1;
}

static void count_variables(const CornuModel *model, const CornuPipelineStep *self,
                            const CornuPipelineLayers *layers, CornuPipelineStage *to)
{
    const CornuOptimizer *optimizer = model->optimizer;
    for (int i = 0; i < model->base.weight_count; i++) {
        const CornuVariable *w = model->base.weights[i]->variable;
        const int            stage = stage_of(model, layers, w);
        if (stage >= 0) to[stage].weight_bytes += cornu__variable_shard_bytes(w);
    }
    for (int i = 0; i < self->sum_count; i++) {
        const int stage = stage_of(model, layers, optimizer->w[i]);
        if (stage < 0) continue;
        to[stage].gradient_bytes += cornu__variable_shard_bytes(self->sums[i]);
        for (int s = 0; s < optimizer->slot_count; s++) {
            const CornuVariable *slot = optimizer->slots[i * optimizer->slot_count + s];
            if (slot) to[stage].slot_bytes += cornu__variable_shard_bytes(slot);
        }
    }
}

/* What a stage, or one before it, makes for later ones, and gets back from them. */
static void count_sent(const CornuPipeline *pipeline, int s, CornuPipelineStage *to)
{
    const int      stages = pipeline->stages.stages, back = 2 * stages - 1 - s;
    const uint64_t beyond = ((UINT64_C(1) << back) - 1) & ~((UINT64_C(2) << s) - 1);
    for (int c = 0; c < pipeline->stages.crossing_count; c++) {
        const CornuCrossing *crossing = &pipeline->stages.crossings[c];
        const int64_t bytes = (int64_t)cornu_type_bytes(
            cornu_program_type(pipeline->program, crossing->value));
        if (crossing->from <= s && (crossing->readers & beyond)) to->sent_bytes += bytes;
        if (crossing->from > s && crossing->from < back && crossing->readers >> back)
            to->returned_bytes += bytes;
    }
}

/* ---- Time ---- */

/* The modelled seconds of a phase on the TPU that the device emulates; 0: there is nothing to run,
 * or no figure. */
static double seconds_of(const CornuPipeline *pipeline, int phase)
{
    const CornuExecutable *executable = pipeline->executables[phase];
    if (!executable) return 0.0;
    CornuTpuModel *model = cornu_tpu_model(
        .executable = executable,
        .passes = cornu_tpu_passes(cornu_device_precision(executable->device)));
    const double seconds = model ? model->device_s : 0.0;
    if (!model) cornu_error_take();
    cornu_tpu_model_free(model);
    return seconds;
}

/* When all have followed the timetable, if what stages send each other takes no time. */
static CornuStatus find_end(const CornuTimetable *timetable, const CornuPipelineStage *stage,
                            double *last)
{
    const int m = timetable->microbatches, each = timetable->stages * m;
    double    free[CORNU_MAX_STAGES] = { 0.0 };
    double   *ends = cornu__allocate(2 * (size_t)each, sizeof *ends);
    if (!ends) return CORNU_ERR_MEMORY;
    for (int t = 0; t < timetable->count; t++) {
        const CornuPipelineTask *task = &timetable->tasks[t];
        const CornuPipelineStage *of = &stage[task->stage];
        const int before = task->backward ? task->stage + 1 : task->stage - 1;
        double   *way = ends + (task->backward ? each : 0), end = free[task->stage];
        if (before >= 0 && before < timetable->stages && way[before * m + task->microbatch] > end)
            end = way[before * m + task->microbatch];
        end += task->backward ? of->backward_s : of->forward_s;
        way[task->stage * m + task->microbatch] = free[task->stage] = end;
        if (end > *last) *last = end;
    }
    cornu__release(ends);
    return CORNU_OK;
}

static CornuStatus model_time(const CornuPipeline *pipeline, CornuPipelineReport *to)
{
    const CornuDevice *device = pipeline->graph->device;
    double             busy = 0.0;
    if (!cornu_device_profile(device) || pipeline->ranks.count > 1) return CORNU_OK;
    for (int s = 0; s < to->stages; s++) {
        to->stage[s].forward_s = seconds_of(pipeline, s);
        to->stage[s].backward_s = seconds_of(pipeline, 2 * to->stages - 1 - s);
        busy += (to->stage[s].forward_s + to->stage[s].backward_s) * to->microbatches;
    }
    to->profile = cornu_device_profile(device);
    CORNU__TRY(find_end(&pipeline->timetable, to->stage, &to->step_s));
    if (to->step_s > 0.0) to->idle = 1.0 - busy / (to->stages * to->step_s);
    return CORNU_OK;
}

/* ---- The report ---- */

static void describe_stages(const CornuPipelineLayers *layers, const CornuPipeline *pipeline,
                            CornuPipelineReport *to)
{
    const CornuTimetable *timetable = &pipeline->timetable;
    double                all = 0.0;
    for (int i = 0; i < layers->count; i++) all += layers->cost[i];
    for (int i = 0; i < layers->count; i++) {
        CornuPipelineStage *stage = &to->stage[layers->stage[i]];
        if (!stage->first) stage->first = layers->name[i];
        stage->last = layers->name[i];
        stage->share += all > 0.0 ? layers->cost[i] / all : 0.0;
    }
    for (int s = 0; s < to->stages; s++) {
        to->stage[s].rank = cornu__phase_rank(pipeline, s) * pipeline->ranks.sharers;
        to->stage[s].stashes = timetable->stashes[s];
        to->stage[s].stash_bytes = cornu__pipeline_stash(pipeline, s);
        if (s < to->stages - 1) count_sent(pipeline, s, &to->stage[s]);
    }
}

CornuStatus cornu__pipeline_describe(const CornuModel *model, CornuStep *step,
                                     const CornuPipelineLayers *layers)
{
    CornuPipelineReport  *to = &step->pipeline->report;
    const CornuPipeline  *pipeline = step->pipeline->pipeline;
    const CornuTimetable *timetable = &pipeline->timetable;
    *to = (CornuPipelineReport){
        .stages = timetable->stages, .microbatches = timetable->microbatches,
        .slots = timetable->slots, .shards = model->device->shards,
        .ranks = cornu_process_count(cornu_device_processes(model->device)),
        .sharers = cornu__device_sharers(model->device),
        .rows = step->rows * cornu_device_shards(model->device),
        .schedule = model->pipeline->schedule, .bubble = timetable->bubble,
        .least_bubble = cornu_timetable_least_bubble(timetable->stages, timetable->microbatches),
    };
    describe_stages(layers, pipeline, to);
    if (model->optimizer) count_variables(model, step->pipeline, layers, to->stage);
    return model_time(pipeline, to);
}

CornuStatus cornu_pipeline_report(CornuModel *model, CornuPipelineReport *report)
{
    CORNU__NEED(model);
    CORNU__NEED(report);
    const CornuStep *step = model->steps;
    while (step && !step->microbatched) step = step->next;
    if (!step)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s", model->base.name, model->pipeline
                           ? "no training step was made yet, expected the report after one"
                           : "was not compiled in the scope of a pipeline_parallel strategy");
    *report = step->pipeline->report;
    return CORNU_OK;
}

/* ---- The page ---- */

static double mb(int64_t bytes) { return 1e-6 * (double)bytes; }

typedef struct { char text[160]; } Label;

/* "stage 2 on ranks 4-5: conv2d_10 … dense"; its length. The dots are one column of three bytes. */
static int print_label(Label *to, const CornuPipelineReport *r, int s)
{
    enum { LONGEST = 40 };
    const CornuPipelineStage *of = &r->stage[s];
    char                      rank[40] = "";
    if (r->ranks > 1 && r->sharers == 1) snprintf(rank, sizeof rank, " on rank %d", of->rank);
    if (r->sharers > 1)
        snprintf(rank, sizeof rank, " on ranks %d-%d", of->rank, of->rank + r->sharers - 1);
    return snprintf(to->text, sizeof to->text, "stage %d%s: %.*s … %.*s", s, rank, LONGEST,
                    of->first, LONGEST, of->last);
}

static void print_stage(const CornuPipelineReport *r, int s, int width, FILE *to)
{
    const CornuPipelineStage *of = &r->stage[s];
    Label                     label;
    char                      time[32];
    print_label(&label, r, s);
    snprintf(time, sizeof time, "%.1f %%", 100.0 * of->share);
    if (r->profile)
        snprintf(time, sizeof time, "%.3f ms", 1e3 * (of->forward_s + of->backward_s));
    fprintf(to, "%-*s %9s %8.2f %8.2f %9.2f %4d x %5.2f", width, label.text, time,
            mb(of->weight_bytes), mb(of->slot_bytes), mb(of->gradient_bytes), of->stashes,
            mb(of->stash_bytes));
    if (s < r->stages - 1) fprintf(to, " %7.2f %7.2f", mb(of->sent_bytes), mb(of->returned_bytes));
    fputc('\n', to);
}

CornuStatus cornu_pipeline_print(CornuModel *model, FILE *to)
{
    CornuPipelineReport r;
    Label               label;
    int                 width = 0;
    CORNU__NEED(to);
    CORNU__TRY(cornu_pipeline_report(model, &r));
    for (int s = 0; s < r.stages; s++) {
        const int length = print_label(&label, &r, s);
        if (length > width) width = length;
    }
    fprintf(to, "pipeline: %d stage%s", r.stages, r.stages > 1 ? "s" : "");
    if (r.shards > 1) fprintf(to, " of %d shards", r.shards);
    fprintf(to, ", %d microbatch%s of %lld rows, %s: %d slots\n", r.microbatches,
            r.microbatches > 1 ? "es" : "", (long long)r.rows,
            cornu_pipeline_schedule_name(r.schedule), r.slots);
    fprintf(to, "%-*s %9s %8s %8s %9s %12s %7s %7s\n", width - 2, "MB of a shard", "time",
            "weights", "slots", "gradients", "stashes", "sent on", "back");
    for (int s = 0; s < r.stages; s++) print_stage(&r, s, width, to);
    fprintf(to, "bubble: %.1f %% of the slots, (p - 1) / (m + p - 1) is %.1f %%\n",
            100.0 * r.bubble, 100.0 * r.least_bubble);
    if (r.profile)
        fprintf(to, "modelled on a TPU %s: the stages take %.3f ms for a batch, idle %.1f %% of "
                "it; times are of a microbatch, forward and backward\n", r.profile, 1e3 * r.step_s,
                100.0 * r.idle);
    return CORNU_OK;
}
