/* One of the processes of a group whose steps are measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../clock.h"
#include "race_scaling.h"

bool race_is_scaled(void) { return getenv("CORNU_SCALING_FD") != NULL; }

/* ---- The clock of the steps ---- */

typedef struct {
    CornuCallback   base;
    CornuProcesses *processes;
    bool            only_one;    /* epoch: its first step, which compiles, does not count */
    bool            counts;
    double          last_s;      /* when the last step ended */
    double         *seconds;     /* of the steps that count */
    int64_t         steps;
    CornuTraffic    before;
    double          sent, waited;
} StepClock;

static void begin_counting(StepClock *clock)
{
    clock->counts = true;
    clock->before = cornu_processes_traffic(clock->processes);
}

static CornuStatus epoch_begin(CornuCallback *base, CornuModel *model, int64_t epoch,
                               const CornuLogs *logs)
{
    (void)model, (void)logs;
    if (epoch > 0) begin_counting((StepClock *)base);
    return CORNU_OK;
}

static CornuStatus step_begin(CornuCallback *base, CornuModel *model, int64_t step,
                              const CornuLogs *logs)
{
    (void)model, (void)logs;
    if (step == 0) ((StepClock *)base)->last_s = clock_seconds();
    return CORNU_OK;
}

static CornuStatus step_end(CornuCallback *base, CornuModel *model, int64_t step,
                            const CornuLogs *logs)
{
    StepClock   *clock = (StepClock *)base;
    const double now = clock_seconds();
    (void)model, (void)logs;
    if (clock->counts) clock->seconds[clock->steps++] = now - clock->last_s;
    else if (clock->only_one && step == 0) begin_counting(clock);
    clock->last_s = now;
    return CORNU_OK;
}

static CornuStatus epoch_end(CornuCallback *base, CornuModel *model, int64_t epoch,
                             const CornuLogs *logs)
{
    StepClock         *clock = (StepClock *)base;
    const CornuTraffic now = cornu_processes_traffic(clock->processes);
    (void)model, (void)epoch, (void)logs;
    if (!clock->counts) return CORNU_OK;
    clock->sent += (double)(now.bytes_sent - clock->before.bytes_sent);
    clock->waited += now.wait_seconds - clock->before.wait_seconds;
    return CORNU_OK;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *numbers, int64_t count)
{
    qsort(numbers, (size_t)count, sizeof *numbers, by_size);
    return (numbers[(count - 1) / 2] + numbers[count / 2]) / 2.0;
}

/* ---- The row ---- */

/* FNV-1a of all weights' bytes. */
static CornuStatus add_checksum(const CornuModel *model, uint64_t *sum)
{
    CornuStatus status = CORNU_OK;
    *sum = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < cornu_model_weight_count(model) && !status; i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        const CornuType    type = weight->type;
        const size_t       bytes = cornu_type_bytes(type);
        unsigned char     *value = malloc(bytes);
        if (!value) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for a weight");
        status = cornu_weight_read(weight, cornu_array_from(value, type));
        for (size_t k = 0; k < bytes && !status; k++)
            *sum = (*sum ^ value[k]) * UINT64_C(0x100000001b3);
        free(value);
    }
    return status;
}

/* The largest of all processes' numbers; sums must be the same for all. */
static CornuStatus collect(CornuProcesses *processes, RanksRow *row)
{
    enum { NUMBERS = 6 };
    const int    ranks = cornu_process_count(processes);
    const double own[NUMBERS] = { row->step_s, row->wait_s, row->sent_bytes, (double)row->threads,
                                  (double)(row->checksum >> 32),
                                  (double)(row->checksum & UINT32_MAX) };
    double      *all = calloc((size_t)ranks * NUMBERS, sizeof *all);
    CornuStatus  status = all ? cornu_processes_gather(processes, own, NUMBERS, all)
                              : cornu_error_set(CORNU_ERR_MEMORY, "no memory for %d processes",
                                                ranks);
    for (int rank = 0; rank < ranks && !status; rank++) {
        const double *of = all + rank * NUMBERS;
        row->step_s = fmax(row->step_s, of[0]);
        row->wait_s = fmax(row->wait_s, of[1]);
        row->sent_bytes = fmax(row->sent_bytes, of[2]);
        row->threads = (int64_t)fmax((double)row->threads, of[3]);
        if (of[4] != own[4] || of[5] != own[5])
            status = cornu_error_set(CORNU_ERR_VALUE, "the weights of rank %d differ from those "
                                     "of rank %d", rank, cornu_process_rank(processes));
    }
    free(all);
    return status;
}

/* Trains, without validation, on whole batches alone. */
static CornuStatus train(const Race *race, CornuModel *model, StepClock *clock, RanksRow *row)
{
    CornuFitConfig fit = race_fit(race, model);
    fit.epochs = race->epochs;
    fit.callbacks[0] = &clock->base;
    CornuHistory *history = cornu_fit_from(&fit);
    if (!history) return cornu_error_status();
    row->loss = cornu_history_get(history, "loss", cornu_history_epochs(history) - 1);
    cornu_history_free(history);
    row->steps = clock->steps;
    row->step_s = median(clock->seconds, clock->steps);
    row->sent_bytes = clock->sent / (double)clock->steps;
    row->wait_s = clock->waited / (double)clock->steps;
    return CORNU_OK;
}

/* As a whole, so that a group that fails hands over nothing. */
static CornuStatus hand_over(const RanksRow *row)
{
    const int to = atoi(getenv("CORNU_SCALING_FD"));
    return write(to, row, sizeof *row) == (ssize_t)sizeof *row
               ? CORNU_OK : cornu_error_set(CORNU_ERR_FILE, "the results cannot be handed over");
}

static CornuStatus measure(Race *race, CornuDevice *device, StepClock *clock)
{
    RanksRow row = { .ranks = cornu_process_count(race->processes),
                     .threads = cornu_device_threads(device),
                     .shards = cornu_device_shards(device), .batch = race->batch_size };
    snprintf(row.description, sizeof row.description, "%s",
             cornu_processes_description(race->processes));
    CornuModel *model = race_model(race, device);
    CornuStatus status = model ? train(race, model, clock, &row) : cornu_error_status();
    if (!status) status = add_checksum(model, &row.checksum);
    if (!status) status = collect(race->processes, &row);
    cornu_model_free(model);
    return status || cornu_process_rank(race->processes) > 0 ? status : hand_over(&row);
}

CornuStatus race_measure_row(Race *race, const char *device_name)
{
    const int64_t samples = race_rows(race);
    const int     ranks = cornu_process_count(race->processes);
    if (samples < race->batch_size)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "%lld samples, fewer than the batch of %lld for "
                               "%d process%s: a smaller --batch-size fits", (long long)samples,
                               (long long)race->batch_size, ranks, ranks == 1 ? "" : "es");
    if (!race->steps || race->steps > samples / race->batch_size)
        race->steps = samples / race->batch_size;
    if (race->epochs * race->steps < 2)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "a training of one step, which compiles: "
                               "expected more, by --epochs or a smaller --batch-size");
    StepClock clock = { .base = { .epoch_begin = epoch_begin, .train_batch_begin = step_begin,
                                  .train_batch_end = step_end, .epoch_end = epoch_end },
                        .processes = race->processes, .only_one = race->epochs == 1 };
    clock.seconds = calloc((size_t)(race->epochs * race->steps), sizeof *clock.seconds);
    CornuDevice *device = cornu_device_open(device_name, .threads = (int)race->threads,
                                            .shards = race->shards,
                                            .processes = race->processes);
    CornuStatus status = !device ? cornu_error_status() : clock.seconds
        ? measure(race, device, &clock)
        : cornu_error_set(CORNU_ERR_MEMORY, "no memory for the times of all steps");
    cornu_device_close(device);
    free(clock.seconds);
    return status;
}
