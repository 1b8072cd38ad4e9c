/* What does a training step compile to, where does its time go, and how long would a TPU take? */
#include <stdlib.h>

#include <cornu/cornu.h>

#include "../commands.h"
#include "../common/session.h"
#include "ahead.h"
#include "check.h"
#include "page.h"
#include "scaling.h"
#include "step.h"

/* ---- Measured ---- */

/* Pseudo-random bytes below `range`; their values do not affect the time. */
static CornuArray invent(CornuType type, int range)
{
    const int64_t count = cornu_type_count(type);
    uint8_t      *bytes = malloc((size_t)count);
    for (int64_t i = 0; bytes && i < count; i++) bytes[i] = (uint8_t)(i * 7919 % 65521 % range);
    return cornu_array_from(bytes, type);
}

typedef struct {
    const CornuStepEvent *events;
    double                begin_s, wall_s;
} Run;

/* From the start of the first step to the end of the last one. */
static Run read_run(const CornuStepEvent *events, int count)
{
    double begin = 0.0, end = 0.0;
    for (int i = 0; i < count; i++) {
        if (events[i].begin_s > 0.0 && (begin == 0.0 || events[i].begin_s < begin))
            begin = events[i].begin_s;
        if (events[i].end_s > end) end = events[i].end_s;
    }
    return (Run){ .events = events, .wall_s = end - begin };
}

static int by_wall(const void *a, const void *b)
{
    const double x = ((const Run *)a)->wall_s, y = ((const Run *)b)->wall_s;
    return (x > y) - (x < y);
}

/* Runs the step `runs` times after a warm-up, and keeps the median run. */
static CornuStatus measure(ExplainStep *subject, int runs, double *here_s, Explanation *e)
{
    const int       count = cornu_executable_event_count(subject->executable);
    const CornuShape out = cornu_model_output_shape(subject->model);
    CornuArray       x = invent(subject->x, 256);
    CornuArray       y = invent(subject->y, (int)out.extent[out.rank - 1]);
    CornuStepEvent *events = calloc((size_t)runs * (size_t)count + 1, sizeof *events);
    Run            *run = calloc((size_t)runs, sizeof *run);
    CornuStatus     status = x.data && y.data && events && run
                                 ? CORNU_OK : cornu_error_set(CORNU_ERR_MEMORY, "no memory for %d "
                                                              "measured steps", runs);
    if (!status) status = cornu_train_on_batch(subject->model, x, y, NULL);
    for (int i = 0; !status && run && i < runs; i++) {
        cornu_executable_record(subject->executable, events + (size_t)i * (size_t)count);
        status = cornu_train_on_batch(subject->model, x, y, NULL);
        run[i] = read_run(events + (size_t)i * (size_t)count, count);
    }
    cornu_executable_record(subject->executable, NULL);
    if (!status) {
        qsort(run, (size_t)runs, sizeof *run, by_wall);
        cornu_executable_shares(subject->executable, run[runs / 2].events, here_s);
        e->wall_s = run[runs / 2].wall_s;
        e->clock = run[runs / 2].events->clock;
    }
    free(x.data), free(y.data), free(events), free(run);
    return status;
}

/* ---- Modelled ---- */

/* The step on so many shards: on the profile in question, and on those that have as many by
 * default. */
static CornuStatus model_shards(const Options *options, const CornuReferenceModel *reference,
                                int row, Explanation *e)
{
    const int    shards = 1 << row;
    const bool   has = shards <= (int)e->tpu->profile->replicas.value;
    ExplainStep  subject = { 0 };
    if (shards > e->batch) return CORNU_OK;
    CornuDevice *device = cornu_device_open(has ? options->device : "tpu", .threads = 1,
                                            .shards = shards);
    CornuStatus  status = device ? explain_make(&subject, reference, device, e->batch)
                                 : cornu_error_status();
    if (!status && has)
        status = explain_model(options, subject.executable, e->tpu->profile, &e->by_shards[row]);
    for (int i = 0; !status && cornu_tpu_profile_at(i); i++)
        if ((int)cornu_tpu_profile_at(i)->shards.value == shards)
            status = explain_model(options, subject.executable, cornu_tpu_profile_at(i),
                                   &e->by_profile[i]);
    cornu_model_free(subject.model);
    cornu_device_close(device);
    return status;
}

/* With `all` also for other numbers of shards and other TPUs. */
static CornuStatus model_all(const Options *options, const CornuReferenceModel *reference,
                             ExplainStep *subject, bool others, Explanation *e)
{
    CornuStatus status = explain_model(options, subject->executable, NULL, &e->tpu);
    for (int row = 0; others && !status && row < EXPLAIN_SHARDS; row++)
        status = model_shards(options, reference, row, e);
    if (!status) status = explain_take_batch(subject, 2 * e->batch);
    return status ? status : explain_model(options, subject->executable, NULL, &e->doubled);
}

static void free_models(Explanation *e)
{
    cornu_tpu_model_free((CornuTpuModel *)e->tpu);
    cornu_tpu_model_free((CornuTpuModel *)e->doubled);
    for (int i = 0; i < EXPLAIN_SHARDS; i++)
        cornu_tpu_model_free((CornuTpuModel *)e->by_shards[i]);
    for (int i = 0; i < EXPLAIN_PROFILES; i++)
        cornu_tpu_model_free((CornuTpuModel *)e->by_profile[i]);
}

static CornuStatus explain(const Options *options, const CornuReferenceModel *reference,
                           CornuDevice *device, int runs, bool all, const char *json)
{
    ExplainStep subject = { 0 };
    CornuStatus status = explain_make(&subject, reference, device, options->batch_size);
    Explanation e = { .model = reference->name, .description = cornu_device_description(device),
                      .batch = options->batch_size, .epoch_samples = reference->epoch_samples,
                      .target = reference->target,
                      .shards = cornu_device_shards(device),
                      .threads = cornu_device_threads(device), .runs = runs };
    double *here_s = NULL;
    if (!status) {
        e.policy = cornu_model_policy(subject.model)->name;
        e.parameters = cornu_model_parameters(subject.model);
        e.targets = cornu_type_count(subject.y) / e.batch;
        e.statistics = *cornu_executable_statistics(subject.executable);
        e.steps = cornu_executable_steps(subject.executable, &e.step_count);
        e.here_s = here_s = calloc((size_t)e.step_count, sizeof *here_s);
        status = here_s ? measure(&subject, runs, here_s, &e)
                        : cornu_error_set(CORNU_ERR_MEMORY, "no memory for the times");
        e.exchanges = explain_exchanges(subject.executable);
    }
    e.memory = cornu_device_memory(device);
    if (!status && cornu_device_profile(device))
        status = model_all(options, reference, &subject, all || json, &e);
    if (!status) (all ? explain_print : explain_overview)(&e, stdout);
    if (!status && json) status = explain_write(&e, json);
    free_models(&e);
    free(here_s);
    cornu_model_free(subject.model);
    return status;
}

/* ---- Compiled ahead of time ---- */

/* The step on the tpu device of the same generation, on as many shards, is not run: it is compiled
 * for its plan and its model. */
static CornuStatus explain_ahead(const Options *options, const CornuReferenceModel *reference,
                                 CornuDevice *device, const char *topology)
{
    const CornuTpuProfile *profile = explain_topology_profile(topology);
    const int              shards = cornu_device_shards(device);
    ExplainStep  subject = { 0 }, emulated = { 0 };
    Ahead        ahead = { .topology = topology };
    CornuDevice *tpu = NULL;
    char         name[32];
    CornuStatus  status = explain_make(&subject, reference, device, options->batch_size);
    ahead.ahead = subject.executable;
    if (!status && profile && shards <= (int)profile->replicas.value) {
        snprintf(name, sizeof name, "tpu:%s", profile->name);
        tpu = cornu_device_open(name, .threads = (int)options->threads, .shards = shards,
                                .precision = session_precision(options));
        status = tpu ? explain_make(&emulated, reference, tpu, options->batch_size)
                     : cornu_error_status();
        ahead.emulated = emulated.executable;
        if (!status) status = explain_model(options, emulated.executable, profile, &ahead.model);
    }
    if (!status) explain_ahead_print(&ahead, stdout);
    cornu_tpu_model_free((CornuTpuModel *)ahead.model);
    cornu_model_free(emulated.model);
    cornu_device_close(tpu);
    cornu_model_free(subject.model);
    return status;
}

/* ---- Placement ---- */

/* The step is compiled, but not run. */
static CornuStatus explain_check(const Options *options, const CornuReferenceModel *reference,
                                 CornuDevice *device, const char *json)
{
    ExplainStep subject = { 0 };
    CornuStatus status = explain_make(&subject, reference, device, options->batch_size);
    const Check check = { reference->name, options->batch_size, subject.executable };
    if (!status) status = explain_check_print(&check, stdout);
    if (!status && json) status = explain_check_write(&check, json);
    cornu_model_free(subject.model);
    return status;
}

/* ---- Scaling ---- */

/* On slices of the device's TPU; nothing runs. */
static CornuStatus explain_slices(const Options *options, const CornuReferenceModel *reference,
                                  const char *list, const char *json)
{
    Scaling     scaling;
    CornuStatus status = session_begin(options);
    if (!status) status = explain_scaling(options, reference, list, &scaling);
    if (!status) explain_scaling_print(&scaling, stdout);
    return status || !json ? status : explain_scaling_write(&scaling, json);
}

int command_explain(int argc, char **argv)
{
    enum { MOST = 16 };
    int                        count;
    const CornuReferenceModel *references = cornu_reference_models(&count);
    const char                *models[MOST + 1] = { NULL }, *json = NULL;
    const char                *topology = NULL, *scaling = NULL;
    char                       device_name[512];
    int64_t                    steps = 5;
    bool                       all = false, check = false;
    for (int i = 0; i < count && i < MOST; i++) models[i] = references[i].name;
    Options      options = { .model = models[0] };
    const Option extra[] = {
        { "batch-size", OPTION_WHOLE, &options.batch_size, "N", "samples per step", 1, 1e6, NULL },
        { "steps", OPTION_WHOLE, &steps, "N", "steps to measure", 1, 1000, NULL },
        { "all", OPTION_SWITCH, &all, "", "show every step, and other TPUs, in 120 columns",
          0, 0, NULL },
        { "check", OPTION_SWITCH, &check, "", "instead, list how the device computes each op: "
          "natively, decomposed or by a reference kernel, and why", 0, 0, NULL },
        { "topology", OPTION_TEXT, &topology, "TOPOLOGY",
          "with --device pjrt:tpu or pjrt:cuda: compile for this machine without it, "
          "v3:2x2 or h100", 0, 0, NULL },
        { "scaling", OPTION_TEXT, &scaling, "LIST",
          "with --device tpu: instead, model the step on slices of so many shards, such as "
          "8,32,128,512,2048", 0, 0, NULL },
        { "json", OPTION_TEXT, &json, "FILE", "write everything as JSON", 0, 0, NULL },
        { NULL, 0, NULL, NULL, NULL, 0, 0, NULL },
    };
    const Program program = { .name = "cornu explain", .models = models,
                              .extra = extra,
                              .groups = OPTIONS_MACHINE,
                              .purpose = "Explains a compiled training step: what it does and "
                                         "where its time goes." };
    const int     usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;

    const CornuReferenceModel *reference = cornu_reference_model(options.model);
    if (!options.batch_size) options.batch_size = reference->batch_size;
    CornuStatus  status = json ? cornu_file_check(json) : CORNU_OK;
    if (!status && scaling)
        return session_end("cornu explain", explain_slices(&options, reference, scaling, json));
    if (!status && topology) {
        status = explain_topology_device(options.device, topology, device_name,
                                         sizeof device_name);
        options.device = device_name;
    }
    topology = explain_topology(options.device);
    CornuDevice *device = status ? NULL : session_open(&options);
    if (!status && !device) status = cornu_error_status();
    if (!status && check) status = explain_check(&options, reference, device, json);
    else if (!status) status = topology ? explain_ahead(&options, reference, device, topology)
                                   : explain(&options, reference, device, (int)steps, all, json);
    cornu_device_close(device);
    return session_end("cornu explain", status);
}
