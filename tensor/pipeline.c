/* Running a graph as a pipeline: the stages of this process take turns as the timetable says. */
#include "pipeline_internal.h"

#include <stdio.h>

/* ---- Recorded ---- */

static CornuStatus lower(CornuPipeline *p)
{
    CORNU__TRY(cornu__rewrite(p->graph, NULL));
    CornuPrepared prepared = { .program = p->program = cornu_program_create() };
    if (!p->program) return cornu_error_take();
    CornuStatus status = cornu__graph_lower(p->graph, &prepared);
    if (!status) status = cornu__graph_partition(p->graph, &prepared);
    p->program = prepared.program;
    p->inputs = prepared.inputs;
    cornu__release(prepared.laid);
    if (status) return status;
    p->fed = cornu__allocate((size_t)p->program->input_count + 1, sizeof *p->fed);
    if (!p->fed) return CORNU_ERR_MEMORY;
    for (int i = 0, next = 0; next < p->program->input_count; i++) {
        const CornuGraphInput *input = &p->graph->inputs[i];
        if ((input->variable ? input->variable->buffer : input->feed) == p->inputs[next])
            p->fed[next++] = !input->variable;
    }
    return CORNU_OK;
}

CornuPipeline *cornu__pipeline_create(CornuGraph *graph)
{
    CornuPipeline *pipeline = cornu__allocate(1, sizeof *pipeline);
    if (!pipeline) return cornu__null();
    pipeline->graph = graph;
    pipeline->ranks = cornu__ranks_of(graph->device);
    if (lower(pipeline) == CORNU_OK) return pipeline;
    cornu__pipeline_free(pipeline);
    return cornu__null();
}

void cornu__pipeline_free(CornuPipeline *p)
{
    if (!p) return;
    const int inputs = p->program ? p->program->input_count : 0;
    for (int i = inputs; p->feeds && i < p->microbatches * inputs; i++)
        cornu_buffer_free(p->feeds[i]);   /* those of microbatch 0 are the graph's */
    for (int i = 0; p->crossing && i < p->crossing_count; i++) cornu_buffer_free(p->crossing[i]);
    for (int i = 0; i < CORNU__MAX_PHASES; i++) cornu_executable_release(p->executables[i]);
    cornu__stages_free(&p->stages);
    cornu_timetable_free(&p->timetable);
    cornu_program_free(p->program);
    cornu__release(p->inputs);
    cornu__release(p->fed);
    cornu__release(p->feeds);
    cornu__release(p->held);
    cornu__release(p->first);
    cornu__release(p->crossing);
    cornu__release(p->in);
    cornu__release(p->out);
    cornu__ranks_end(&p->ranks);
    cornu__release(p->readers);
    cornu__release(p->exchanges);
    cornu__release(p->sends);
    cornu__release(p->receives);
    cornu__release(p->exchanged);
    cornu__release(p);
}

/* ---- Cut ---- */

/* How many microbatches have each crossing value at once: from the phase that makes it to the last
 * that reads it. */
static CornuStatus count_held(CornuPipeline *p)
{
    const size_t count = (size_t)p->stages.crossing_count + 1;
    int         *now = cornu__allocate(count, sizeof *now);
    p->held = cornu__allocate(count, sizeof *p->held);
    p->first = cornu__allocate(count, sizeof *p->first);
    if (!now || !p->held || !p->first) {
        cornu__release(now);
        return CORNU_ERR_MEMORY;
    }
    for (int t = 0; t < p->timetable.count; t++) {
        const int phase = cornu__task_phase(p, &p->timetable.tasks[t]);
        for (int c = 0; c < p->stages.crossing_count; c++) {
            if (p->stages.crossings[c].from == phase && ++now[c] > p->held[c])
                p->held[c] = now[c];
            if (p->stages.crossings[c].last == phase) now[c]--;
        }
    }
    cornu__release(now);
    for (int c = 0; c < p->stages.crossing_count; c++) {
        p->first[c] = p->crossing_count;
        p->crossing_count += p->held[c];
    }
    return CORNU_OK;
}

static CornuStatus allocate_crossings(CornuPipeline *p)
{
    CornuDevice *device = p->graph->device;
    CORNU__TRY(count_held(p));
    p->crossing = cornu__allocate((size_t)p->crossing_count + 1, sizeof(CornuBuffer *));
    p->exchanged = cornu__allocate((size_t)p->crossing_count + 1, sizeof *p->exchanged);
    if (!p->crossing || !p->exchanged) return CORNU_ERR_MEMORY;
    for (int c = 0; c < p->stages.crossing_count; c++) {
        const CornuValue value = p->stages.crossings[c].value;
        if (!cornu__crossing_is_here(p, &p->stages.crossings[c])) continue;
        for (int i = 0; i < p->held[c]; i++) {
            CornuBuffer **to = &p->crossing[p->first[c] + i];
            *to = cornu_buffer_create(
                device, cornu_program_buffer_type(p->program, value, device->shards),
                .use = CORNU_USE_ACTIVATIONS, .name = "a value between stages",
                .per_shard = p->program->values[value].varies);
            if (!*to) return cornu_error_take();
        }
    }
    return CORNU_OK;
}

static CornuStatus allocate_feeds(CornuPipeline *p)
{
    const int count = p->program->input_count;
    p->feeds = cornu__allocate((size_t)p->microbatches * (size_t)count + 1, sizeof(CornuBuffer *));
    if (!p->feeds) return CORNU_ERR_MEMORY;
    for (int m = 0; m < p->microbatches; m++)
        for (int i = 0; i < count; i++) {
            CornuBuffer **to = &p->feeds[m * count + i];
            char          name[48];
            if (!p->fed[i] || !(p->readers[i] >> p->ranks.rank & 1)) continue;
            if (m == 0) *to = p->inputs[i];
            if (m == 0) continue;
            snprintf(name, sizeof name, "input %d of microbatch %d", i, m);
            *to = cornu_buffer_create(
                p->graph->device, cornu_buffer_type(p->inputs[i]), .use = CORNU_USE_INFEED,
                .name = name, .per_shard = p->program->values[p->program->inputs[i]].varies);
            if (!*to) return cornu_error_take();
        }
    return CORNU_OK;
}

static CornuStatus compile(CornuPipeline *p)
{
    int in = 0, out = 0;
    for (int i = 0; i < 2 * p->stages.stages; i++) {
        const CornuProgram *program = p->stages.phases[i].program;
        if (program->input_count > in) in = program->input_count;
        if (program->output_count > out) out = program->output_count;
        if (program->output_count == 0) continue;   /* one stage does all forward */
        if (cornu__phase_rank(p, i) != p->ranks.rank) continue;
        p->executables[i] = cornu_device_compile(p->graph->device, program);
        if (!p->executables[i]) return cornu_error_take();
    }
    p->in = cornu__allocate((size_t)in + 1, sizeof(CornuBuffer *));
    p->out = cornu__allocate((size_t)out + 1, sizeof(CornuBuffer *));
    return p->in && p->out ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuStatus cornu__pipeline_cut(CornuPipeline *p, const CornuLookup *stage_of, int stages,
                                int microbatches, CornuPipelineSchedule schedule)
{
    CORNU__TRY(cornu_timetable_make(&p->timetable, stages, microbatches, schedule));
    p->microbatches = microbatches;
    CORNU__TRY(cornu__stages_cut(p->program, stage_of, stages, p->fed, &p->stages));
    CORNU__TRY(cornu__pipeline_deal(p));
    CORNU__TRY(allocate_feeds(p));
    CORNU__TRY(allocate_crossings(p));
    return compile(p);
}

/* ---- Run ---- */

CornuStatus cornu__pipeline_feed(CornuPipeline *p, int microbatch, const CornuTensor *input,
                                 int64_t first, CornuArray array)
{
    const int          count = p->program->input_count;
    const CornuBuffer *feed =
        p->graph->inputs[p->graph->program->values[input->value].index].feed;
    for (int i = 0; i < count; i++) {
        CornuBuffer *to = p->feeds[microbatch * count + i];
        if (p->inputs[i] != feed || !to) continue;
        return cornu__fail_prefix(p->program->values[p->program->inputs[i]].varies
                                      ? cornu__parts_write(to, first, array)
                                      : cornu_buffer_write_part(to, first, array), "feed");
    }
    return CORNU_OK;   /* these stages do not read it */
}

/* The buffer of crossing c for a microbatch: those that have it at once are consecutive. */
static CornuBuffer *crossing_of(const CornuPipeline *p, int c, int microbatch)
{
    return p->crossing[p->first[c] + microbatch % p->held[c]];
}

static CornuStatus run_task(CornuPipeline *p, const CornuPipelineTask *task)
{
    const int         phase = cornu__task_phase(p, task), count = p->program->input_count;
    const CornuPhase *of = &p->stages.phases[phase];
    if (!p->executables[phase]) return CORNU_OK;   /* one of another rank, or with nothing to do */
    CORNU__TRY(cornu__pipeline_await(p, task));
    for (int i = 0; i < of->program->input_count; i++) {
        const int from = of->inputs[i];
        p->in[i] = from < 0 ? crossing_of(p, ~from, task->microbatch)
                 : p->fed[from] ? p->feeds[task->microbatch * count + from] : p->inputs[from];
    }
    for (int i = 0; i < of->program->output_count; i++)
        p->out[i] = of->outputs[i] < 0 ? NULL : crossing_of(p, of->outputs[i], task->microbatch);
    return cornu_executable_run(p->executables[phase], p->in, p->out);
}

CornuStatus cornu__pipeline_run(CornuPipeline *p, int microbatches, int *at)
{
    const CornuPipelineTask *tasks = p->timetable.tasks;
    *at = 0;
    for (int i = 0, first = 0; i < p->timetable.count; first = i) {
        for (; i < p->timetable.count && tasks[i].slot == tasks[first].slot; i++) {
            if (tasks[i].microbatch >= microbatches) continue;
            *at = tasks[i].microbatch;
            const CornuStatus status = run_task(p, &tasks[i]);
            if (status) return cornu__processes_fail(p->ranks.processes, status);
        }
        CORNU__TRY(cornu__pipeline_exchange(p, first, i, microbatches));
    }
    return cornu__pipeline_end(p);
}

int64_t cornu__pipeline_stash(const CornuPipeline *p, int stage)
{
    int64_t bytes = 0;
    for (int c = 0; c < p->stages.crossing_count; c++)
        if (p->stages.crossings[c].from <= stage &&
            p->stages.crossings[c].readers >> (2 * p->stages.stages - 1 - stage) & 1)
            bytes += (int64_t)cornu_type_bytes(
                cornu_program_type(p->program, p->stages.crossings[c].value));
    return bytes;
}
