/* What does a training step compile to, where does its time go, and how long would a TPU take? */
#include <stdlib.h>

#include <cornu/cornu.h>

#include "explain_ahead.h"
#include "explain_page.h"
#include "session.h"

/* A network with its published optimizer on a device, and its training step for one batch size. */
typedef struct {
    CornuModel      *model;
    CornuType        x, y;
    CornuExecutable *executable;
} Subject;

static CornuStatus take_batch(Subject *subject, int64_t batch)
{
    subject->x = cornu_reference_input_type(subject->model, batch);
    subject->y = cornu_reference_label_type(subject->model, batch);
    subject->executable = cornu_model_train_step(subject->model, subject->x, subject->y);
    return subject->executable ? CORNU_OK : cornu_error_status();
}

static CornuStatus make(Subject *subject, const CornuReferenceModel *reference,
                        CornuDevice *device, int64_t batch)
{
    subject->model = reference->build(&(CornuNetworkConfig){ 0 });
    CornuStatus status = cornu_compile(
        subject->model, .device = device, .loss = cornu_loss(reference->loss),
        .metrics = { CORNU_ACCURACY },
        .optimizer = cornu_reference_optimizer(reference, reference->epoch_samples / batch + 1,
                                               0.0));
    return status ? status : take_batch(subject, batch);
}

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
static CornuStatus measure(Subject *subject, int runs, double *here_s, Explanation *e)
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
    for (int i = 0; !status && i < runs; i++) {
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

static CornuStatus model(const Options *options, const CornuExecutable *executable,
                         const CornuTpuProfile *profile, const CornuTpuModel **to)
{
    static const int passes[] = { [CORNU_PRECISION_HIGHEST] = CORNU_TPU_HIGHEST,
                                  [CORNU_PRECISION_HIGH] = CORNU_TPU_HIGH,
                                  [CORNU_PRECISION_DEFAULT] = CORNU_TPU_DEFAULT };
    *to = cornu_tpu_model(.executable = executable, .profile = profile,
                          .passes = passes[session_precision(options)]);
    return *to ? CORNU_OK : cornu_error_status();
}

/* The step on so many shards: on the profile in question, and on those that have as many by
 * default. */
static CornuStatus model_shards(const Options *options, const CornuReferenceModel *reference,
                                int row, Explanation *e)
{
    const int    shards = 1 << row;
    const bool   has = shards <= (int)e->tpu->profile->replicas.value;
    Subject      subject = { 0 };
    if (shards > e->batch) return CORNU_OK;
    CornuDevice *device = cornu_device_open(has ? options->device : "tpu", .threads = 1,
                                            .shards = shards);
    CornuStatus  status = device ? make(&subject, reference, device, e->batch)
                                 : cornu_error_status();
    if (!status && has)
        status = model(options, subject.executable, e->tpu->profile, &e->by_shards[row]);
    for (int i = 0; !status && cornu_tpu_profile_at(i); i++)
        if ((int)cornu_tpu_profile_at(i)->shards.value == shards)
            status = model(options, subject.executable, cornu_tpu_profile_at(i),
                           &e->by_profile[i]);
    cornu_model_free(subject.model);
    cornu_device_close(device);
    return status;
}

/* With `all` also for other numbers of shards and other TPUs. */
static CornuStatus model_all(const Options *options, const CornuReferenceModel *reference,
                             Subject *subject, bool others, Explanation *e)
{
    CornuStatus status = model(options, subject->executable, NULL, &e->tpu);
    for (int row = 0; others && !status && row < EXPLAIN_SHARDS; row++)
        status = model_shards(options, reference, row, e);
    if (!status) status = take_batch(subject, 2 * e->batch);
    return status ? status : model(options, subject->executable, NULL, &e->doubled);
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
    Subject     subject = { 0 };
    CornuStatus status = make(&subject, reference, device, options->batch_size);
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
    Subject      subject = { 0 }, emulated = { 0 };
    Ahead        ahead = { .topology = topology };
    CornuDevice *tpu = NULL;
    char         name[32];
    CornuStatus  status = make(&subject, reference, device, options->batch_size);
    ahead.ahead = subject.executable;
    if (!status && profile && shards <= (int)profile->replicas.value) {
        snprintf(name, sizeof name, "tpu:%s", profile->name);
        tpu = cornu_device_open(name, .threads = (int)options->threads, .shards = shards,
                                .precision = session_precision(options));
        status = tpu ? make(&emulated, reference, tpu, options->batch_size)
                     : cornu_error_status();
        ahead.emulated = emulated.executable;
        if (!status) status = model(options, emulated.executable, profile, &ahead.model);
    }
    if (!status) explain_ahead_print(&ahead, stdout);
    cornu_tpu_model_free((CornuTpuModel *)ahead.model);
    cornu_model_free(emulated.model);
    cornu_device_close(tpu);
    cornu_model_free(subject.model);
    return status;
}

int main(int argc, char **argv)
{
    enum { MOST = 16 };
    int                        count;
    const CornuReferenceModel *references = cornu_reference_models(&count);
    const char                *models[MOST + 1] = { NULL }, *json = NULL;
    const char                *topology = NULL;
    char                       device_name[512];
    int64_t                    steps = 5;
    bool                       all = false;
    for (int i = 0; i < count && i < MOST; i++) models[i] = references[i].name;
    Options      options = { .model = models[0] };
    const Option extra[] = {
        { "batch-size", OPTION_WHOLE, &options.batch_size, "N", "samples per step", 1, 1e6, NULL },
        { "steps", OPTION_WHOLE, &steps, "N", "steps to measure", 1, 1000, NULL },
        { "all", OPTION_SWITCH, &all, "", "show every step, and other TPUs, in 120 columns",
          0, 0, NULL },
        { "topology", OPTION_TEXT, &topology, "TOPOLOGY",
          "with --device pjrt:tpu or pjrt:cuda: compile for this machine without it, "
          "v3:2x2 or h100", 0, 0, NULL },
        { "json", OPTION_TEXT, &json, "FILE", "write everything as JSON", 0, 0, NULL },
        { NULL, 0, NULL, NULL, NULL, 0, 0, NULL },
    };
    const Program program = { .name = "explain", .models = models,
                              .extra = extra,
                              .groups = OPTIONS_MACHINE,
                              .purpose = "Explains a compiled training step: what it does and "
                                         "where its time goes." };
    const int     usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;

    const CornuReferenceModel *reference = cornu_reference_model(options.model);
    if (!options.batch_size) options.batch_size = reference->batch_size;
    CornuStatus  status = json ? cornu_file_check(json) : CORNU_OK;
    if (!status && topology) {
        status = explain_topology_device(options.device, topology, device_name,
                                         sizeof device_name);
        options.device = device_name;
    }
    topology = explain_topology(options.device);
    CornuDevice *device = status ? NULL : session_open(&options);
    if (!status && !device) status = cornu_error_status();
    if (!status) status = topology ? explain_ahead(&options, reference, device, topology)
                                   : explain(&options, reference, device, (int)steps, all, json);
    cornu_device_close(device);
    return session_end("explain", status);
}
