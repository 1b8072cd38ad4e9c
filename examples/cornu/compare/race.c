#include "race.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../common/mesh_flags.h"

/* ---- Model and data ---- */

const char *race_name(const Race *race) { return race->own ? race->name : race->reference->name; }

int64_t race_rows(const Race *race)
{
    return race->own ? data_count(race->own) : race->data->train_x.type.shape.extent[0];
}

const char *race_data(const Race *race) { return race->own ? race->own->name : race->data->name; }

bool race_is_synthetic(const Race *race)
{
    return race->own ? race->own->synthetic || race->own->random : race->data->synthetic;
}

const char *race_data_note(const Race *race)
{
    return race->own && race->own->random ? " on RANDOM data"
           : race_is_synthetic(race)      ? " on SYNTHETIC data" : "";
}

const char *race_target_word(const Race *race)
{
    return race->own ? "row" : race->reference->target;
}

bool race_validates(const Race *race) { return !race->own || race->own->test_x[0].data; }

CornuFitConfig race_fit(const Race *race, CornuModel *model)
{
    CornuFitConfig fit = { .model = model, .batch_size = race->batch_size,
                           .steps_per_epoch = race->steps, .verbose = CORNU_SILENT };
    if (race->own && race->own->rows) {
        fit.data = race->own->rows;
    } else if (race->own) {
        memcpy(fit.xs, race->own->x, sizeof fit.xs);
        memcpy(fit.ys, race->own->y, sizeof fit.ys);
    } else {
        fit.x = cornu_reference_input(model, race->data->train_x);
        fit.y = race->data->train_y;
    }
    return fit;
}

/* On the held-out part of the training data, else on the test data. */
static void validate(const Race *race, CornuFitConfig *fit)
{
    CornuData *held_out = &fit->validation_data;
    if (race->own && race->own->rows) {
        held_out->data = race->own->test_rows;
    } else if (race->own) {
        memcpy(held_out->xs, race->own->test_x, sizeof held_out->xs);
        memcpy(held_out->ys, race->own->test_y, sizeof held_out->ys);
    } else if (race->reference->validation_split > 0.0) {
        fit->validation_split = race->reference->validation_split;
    } else {
        held_out->x = cornu_reference_input(fit->model, race->data->test_x);
        held_out->y = race->data->test_y;
    }
}

/* ---- Devices and models ---- */

static int shards_of(const Race *race, const char *device)
{
    const int ranks = cornu_process_count(race->processes);
    return !race->shards && ranks > 1 && strcmp(device, "cpu") == 0 ? ranks : race->shards;
}

static CornuStatus add_racer(Race *race, const char *name, size_t length)
{
    if (length == 0)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "a device without a name, expected a list such "
                               "as cpu,tpu:v3-8");
    if (race->count == RACE_DEVICES)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "more than %d devices", RACE_DEVICES);
    if (length >= sizeof race->racers->name)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "a device's name of %zu characters, expected at "
                               "most %zu", length, sizeof race->racers->name - 1);
    Racer *racer = &race->racers[race->count++];
    snprintf(racer->name, sizeof racer->name, "%.*s", (int)length, name);
    racer->seconds = calloc(3 * (size_t)race->epochs, sizeof *racer->seconds);
    if (!racer->seconds) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for the epochs");
    racer->joules = racer->seconds + race->epochs;
    racer->accuracies = racer->joules + race->epochs;
    racer->device = cornu_device_open(racer->name, .threads = (int)race->threads,
                                      .shards = shards_of(race, racer->name),
                                      .processes = race->processes);
    if (!racer->device) return cornu_error_status();
    printf("%s\n", cornu_device_description(racer->device));
    return CORNU_OK;
}

CornuModel *race_model(const Race *race, CornuDevice *device)
{
    /* Determines the weights, dropout and shuffling. */
    cornu_set_random_seed((uint64_t)race->seed);
    if (race->own) return race->make(race, device);
    CornuModel *model = race->reference->build(&(CornuNetworkConfig){ 0 });
    if (model && !mesh_lay_out(race->meshed, model, device) &&
        mesh_blame(race->meshed,
                   cornu_compile(model, .loss = cornu_loss(race->reference->loss),
                                 .metrics = { CORNU_ACCURACY }, .device = device,
                                 .optimizer = cornu_reference_optimizer(
                                     race->reference, race->steps,
                                     race->learning_rate))) == CORNU_OK)
        return model;
    cornu_model_free(model);
    return NULL;
}

static int64_t all_batches(const Race *race)
{
    const double  held_out = race->own ? 0.0 : race->reference->validation_split;
    const int64_t all = race_rows(race);
    const int64_t trained = (int64_t)floor((double)all * (1.0 - held_out));
    return (trained + race->batch_size - 1) / race->batch_size;
}

CornuStatus race_open(Race *race, const char *devices)
{
    if (!race->steps) race->steps = all_batches(race);
    for (const char *name = devices, *comma; name; name = comma ? comma + 1 : NULL) {
        comma = strchr(name, ',');
        CornuStatus status = add_racer(race, name, strcspn(name, ","));
        if (status) return status;
    }
    return CORNU_OK;
}

void race_close(Race *race)
{
    for (int i = 0; i < race->count; i++) {
        cornu_model_free(race->racers[i].model);
        cornu_device_close(race->racers[i].device);
        free(race->racers[i].seconds);
    }
}

/* ---- Training ---- */

static CornuStatus run_epoch(Race *race, Racer *racer, int64_t epoch)
{
    const double   before = cornu_energy_joules(&race->energy);
    CornuFitConfig fit = race_fit(race, racer->model);
    fit.initial_epoch = epoch;
    fit.epochs = epoch + 1;
    validate(race, &fit);
    CornuHistory  *history = cornu_fit_from(&fit);
    if (!history) return cornu_error_status();
    race->samples = cornu_history_samples(history, 0);
    racer->seconds[epoch] = cornu_history_seconds(history, 0);
    racer->loss = cornu_history_get(history, "loss", 0);
    racer->val_loss = race_validates(race) ? cornu_history_get(history, "val_loss", 0) : NAN;
    racer->val_accuracy =
        race_validates(race) ? cornu_history_get(history, "val_accuracy", 0) : NAN;
    racer->accuracies[epoch] = racer->val_accuracy;
    racer->joules[epoch] = cornu_energy_joules(&race->energy) - before;
    cornu_history_free(history);
    printf("Epoch %lld/%lld  %-9s  %7.2f s  loss: %.4f", (long long)epoch + 1,
           (long long)(epoch < race->least ? race->least : race->epochs), racer->name,
           racer->seconds[epoch], racer->loss);
    if (!isnan(racer->val_accuracy)) printf(" - val_accuracy: %.4f", racer->val_accuracy);
    else if (!isnan(racer->val_loss)) printf(" - val_loss: %.4f", racer->val_loss);
    putchar('\n');
    return CORNU_OK;
}

static bool goes_on(const Race *race)
{
    if (race->done >= race->epochs) return false;
    if (!(race->enough > 0.0) || race->done < race->least) return true;
    for (int i = 0; i < race->count; i++)
        if (!(race->racers[i].val_accuracy >= race->enough)) return true;
    return false;
}

/* The sums over all processes. */
static CornuStatus add_up(const Race *race, double *numbers, int count)
{
    const int   ranks = cornu_process_count(race->processes);
    double     *all = calloc((size_t)ranks * (size_t)count, sizeof *all);
    if (!all) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for %d processes", ranks);
    CornuStatus status = cornu_processes_gather(race->processes, numbers, count, all);
    for (int i = 0; !status && i < count; i++) {
        numbers[i] = 0.0;
        for (int rank = 0; rank < ranks; rank++) numbers[i] += all[rank * count + i];
    }
    free(all);
    return status;
}

/* All processes measure at the same time, with the threads that they train with. */
static CornuStatus measure_limits(Race *race)
{
    CornuCpuLimits *best = &race->limits, now;
    const int       each = cornu_device_threads(race->racers[0].device);
    const bool      alone = cornu_process_count(race->processes) == 1;
    CornuStatus     status = cornu_cpu_limits(alone ? (int)race->threads : each, &now);
    double          sums[] = { now.f32_flops, now.bf16_flops, now.read_bytes, now.threads };
    if (!status) status = add_up(race, sums, sizeof sums / sizeof *sums);
    if (status) return status;
    now.f32_flops = sums[0], now.bf16_flops = sums[1], now.read_bytes = sums[2];
    now.threads = (int)sums[3];
    if (best->f32_flops > now.f32_flops) now.f32_flops = best->f32_flops;
    if (best->bf16_flops > now.bf16_flops) now.bf16_flops = best->bf16_flops;
    if (best->read_bytes > now.read_bytes) now.read_bytes = best->read_bytes;
    *best = now;
    return CORNU_OK;
}

int64_t race_first(const Race *race) { return race->done > 1 ? 1 : 0; }

/* The median of the epochs that count; NAN if one of them is. */
static double median_of(const Race *race, const double *epochs)
{
    const int64_t first = race_first(race), n = race->done - first;
    const double *values = epochs + first;
    /* The k-th smallest has k before it; equal ones count in their order. */
    double middle[2] = { NAN, NAN };
    for (int64_t i = 0; i < n; i++) {
        int64_t before = 0;
        if (isnan(values[i])) return NAN;
        for (int64_t k = 0; k < n; k++)
            before += values[k] < values[i] || (k < i && values[k] == values[i]);
        if (before == (n - 1) / 2) middle[0] = values[i];
        if (before == n / 2) middle[1] = values[i];
    }
    return (middle[0] + middle[1]) / 2.0;
}

double race_median(const Race *race, const Racer *racer) { return median_of(race, racer->seconds); }

double race_joules(const Race *race, const Racer *racer) { return median_of(race, racer->joules); }

/* The slowest minus the fastest epoch that counts. */
static double range_of(const Race *race, const Racer *racer)
{
    double least = INFINITY, most = 0.0;
    for (int64_t i = race_first(race); i < race->done; i++) {
        least = fmin(least, racer->seconds[i]);
        most = fmax(most, racer->seconds[i]);
    }
    return most - least;
}

double race_ratio(const Race *race, const Racer *racer, const Racer *than)
{
    const int64_t epochs = race->done - race_first(race);
    const double  here = race_median(race, racer), there = race_median(race, than);
    const double  spread = range_of(race, racer) + range_of(race, than);
    if (epochs < 2 || fabs(here - there) <= (epochs == 2 ? 3.0 : 1.0) * spread) return 0.0;
    return there / here;
}

int64_t race_targets(const Race *race)
{
    if (race->own) return 1;
    return cornu_type_count(race->data->train_y.type) / race->data->train_y.type.shape.extent[0];
}

double race_gflops(const Race *race, const Racer *racer)
{
    const CornuStatistics *step = cornu_model_statistics(racer->model);
    const double           own = step ? (double)step->flops : NAN;
    return 1e-9 * (racer->flops > 0.0 ? racer->flops : own) * (double)race->steps /
           race_median(race, racer);
}

/* Whether it computes here, and not on an accelerator, which its description begins with. */
static bool is_this_cpu(const CornuDevice *device)
{
    return strcmp(cornu_device_name(device), "pjrt") != 0 ||
           strncmp(cornu_device_description(device), "pjrt: cpu,", 10) == 0;
}

double race_of_limit(const Race *race, const Racer *racer)
{
    const char  *policy = cornu_model_policy(racer->model)->name;
    const double gflops = race_gflops(race, racer);
    if (strcmp(cornu_device_name(racer->device), "reference") == 0) return NAN;
    if (!is_this_cpu(racer->device)) return NAN;
    if (strcmp(policy, "float32") == 0) return 1e9 * gflops / race->limits.f32_flops;
    if (strcmp(policy, "mixed_bfloat16") == 0) return 1e9 * gflops / race->limits.bf16_flops;
    return NAN;
}

static bool is_tpu(const char *name) { return strncmp(name, "tpu", 3) == 0; }

const char *race_kind(const Racer *racer) { return is_tpu(racer->name) ? "emulated" : "native"; }

/* ---- Modelled ---- */

/* The type of a batch of arrays. */
static CornuType batch_of(CornuArray rows, int64_t batch_size)
{
    rows.type.shape.extent[0] = batch_size;
    return rows.type;
}

/* Its training step for batches of that size. */
static const CornuExecutable *step_of(const Race *race, CornuModel *model, int64_t batch_size)
{
    if (race->own)
        return cornu_model_train_step(model, batch_of(race->own->x[0], batch_size),
                                      batch_of(race->own->y[0], batch_size));
    return cornu_model_train_step(model, cornu_reference_input_type(model, batch_size),
                                  cornu_reference_label_type(model, batch_size));
}

/* Records and compiles the step for that device and batch, and models it; nothing runs. */
static CornuStatus model_epoch(const Race *race, const char *name, ModelledEpoch *row)
{
    CornuDevice   *device = cornu_device_open(name, .threads = (int)race->threads,
                                              .shards = race->own || race->meshed
                                                            ? race->shards : 0);
    CornuModel    *model = device ? race_model(race, device) : NULL;
    CornuTpuModel *cost = NULL;
    if (model) {
        const CornuExecutable *step = step_of(race, model, row->batch_size);
        row->shards = cornu_device_shards(device);
        if (step) cost = cornu_tpu_model(.executable = step, .profile = row->profile);
    }
    if (cost) {
        const double steps = (double)row->steps;
        row->chips = cost->slice.chips;
        row->device_s = steps * cost->device_s;
        row->infeed_s = steps * cost->infeed_s;
        row->dispatch_s = steps * cost->dispatch_s;
        row->total_s = steps * cost->step_s;
        row->bound = cost->bound;
    }
    CornuStatus status = cost ? CORNU_OK : cornu_error_status();
    cornu_tpu_model_free(cost);
    cornu_model_free(model);
    cornu_device_close(device);
    return status;
}

/* Adds such an epoch on this profile, unless it is listed already. */
static CornuStatus add_epoch(Race *race, const CornuTpuProfile *profile, int64_t batch_size,
                             int64_t steps)
{
    char          name[32];
    ModelledEpoch row = { .profile = profile, .batch_size = batch_size, .steps = steps };
    for (int k = 0; k < race->modelled_count; k++)
        if (race->modelled[k].profile == profile && race->modelled[k].batch_size == batch_size &&
            race->modelled[k].steps == steps)
            return CORNU_OK;
    if (race->modelled_count == RACE_MODELLED) return CORNU_OK;
    snprintf(name, sizeof name, "tpu:%s", profile->name);
    CornuStatus status = model_epoch(race, name, &row);
    if (!status) race->modelled[race->modelled_count++] = row;
    return status;
}

const CornuPublishedEpoch *race_published(const Race *race, int i)
{
    int count;
    const CornuPublishedEpoch *all = cornu_published_epochs(&count);
    for (int k = 0; k < count; k++)
        if (!race->own && strcmp(all[k].model, race->reference->name) == 0 && i-- == 0)
            return &all[k];
    return NULL;
}

/* Epochs of each published length; of the length run here if none is published. */
static CornuStatus model_profile(Race *race, const CornuTpuProfile *profile)
{
    const CornuPublishedEpoch *row = race_published(race, 0);
    if (!row) return add_epoch(race, profile, race->batch_size, race->steps);
    for (int i = 1; row; row = race_published(race, i++)) {
        CornuStatus status = add_epoch(race, profile, row->batch_size, row->steps);
        if (status) return status;
    }
    return CORNU_OK;
}

/* A step of several inputs or outputs cannot be recorded without running it. */
static bool can_model(const Race *race)
{
    const CornuModel *model = race->racers[0].model;
    return cornu_model_input_count(model) == 1 && cornu_model_output_count(model) == 1;
}

static CornuStatus model_tpus(Race *race)
{
    if (!can_model(race)) return CORNU_OK;
    for (int i = 0; i < race->count; i++) {
        const char *name = race->racers[i].name, *colon = strchr(name, ':');
        if (!is_tpu(name)) continue;
        CornuStatus status = model_profile(race, cornu_tpu_profile(NULL));
        if (!status) status = model_profile(race, cornu_tpu_profile(colon ? colon + 1 : NULL));
        if (status) return status;
    }
    return CORNU_OK;
}

/* ---- Running a race ---- */

CornuStatus race_run(Race *race)
{
    CornuStatus status = measure_limits(race);
    for (int i = 0; !status && i < race->count; i++) {
        race->racers[i].model = race_model(race, race->racers[i].device);
        if (!race->racers[i].model) status = cornu_error_status();
    }
    for (; !status && goes_on(race); race->done++)
        for (int i = 0; !status && i < race->count; i++)
            status = run_epoch(race, &race->racers[i], race->done);
    if (!status) status = measure_limits(race);
    for (int i = 0; !status && i < race->count; i++) {
        const CornuStatistics *step = cornu_model_statistics(race->racers[i].model);
        race->racers[i].flops = step ? (double)step->flops : 0.0;
        status = add_up(race, &race->racers[i].flops, 1);
    }
    return status || cornu_process_rank(race->processes) > 0 ? status : model_tpus(race);
}
