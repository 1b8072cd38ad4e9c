#include "input.h"

#include "../clock.h"

enum { MOST_BATCHES = 64, MOST_STAGES = 64 };

/* As fit makes it, of the first rows, which are enough to time it. */
static CornuDataset *make_batches(const Data *data, int64_t rows, uint64_t seed)
{
    CornuDataset *dataset = cornu_dataset_take(data_rows(data), MOST_BATCHES * rows);
    return cornu_dataset_batch(cornu_dataset_shuffle(dataset, seed), rows, false);
}

/* Reads for a second, and whole passes until then; a batch takes *seconds. */
static CornuStatus read_batches(CornuIterator *iterator, double *seconds)
{
    const double begin = clock_seconds();
    int64_t      batches = 0;
    for (int64_t epoch = 0; epoch < 2 || clock_seconds() - begin < 1.0; epoch++) {
        const CornuBatch *batch = NULL;
        CornuStatus       status = cornu_iterator_rewind(iterator, epoch);
        while (!status && (status = cornu_iterator_next(iterator, &batch)) == CORNU_OK && batch)
            batches++;
        if (status) return status;
    }
    *seconds = (clock_seconds() - begin) / (double)batches;
    return CORNU_OK;
}

static void print_times(CornuIterator *iterator, double seconds, double step_seconds, FILE *to)
{
    CornuStageTime times[MOST_STAGES];
    int            count = cornu_iterator_stage_times(iterator, times, MOST_STAGES);
    if (count > MOST_STAGES) count = MOST_STAGES;
    for (int i = 0; i < count; i++)
        fprintf(to, "  %-20s %9.4f ms\n", times[i].name, 1e3 * times[i].seconds);
    fprintf(to, "  %-20s %9.4f ms", "a batch", 1e3 * seconds);
    if (step_seconds > 0.0)
        fprintf(to, ", beside a step of %.4f ms: %s", 1e3 * step_seconds,
                seconds < step_seconds ? "steps do not wait for input"
                                       : "input is the limit, of one thread");
    fputc('\n', to);
}

CornuStatus explain_input(const Options *options, const DataFlags *flags,
                          const CornuExplainConfig *config, double step_seconds, FILE *to)
{
    const int64_t rows = config->batch_size ? config->batch_size : 32;
    Data          data = { .set = NULL };
    double        seconds = 0.0;
    CornuStatus   status = data_load(&data, options, flags, config->model,
                                     config->predict ? DATA_INPUTS : DATA_LABELS);
    CornuDataset  *batches = status ? NULL : make_batches(&data, rows, (uint64_t)options->seed);
    CornuIterator *iterator = batches ? cornu_iterator_begin(batches, 0) : NULL;
    if (!status) status = iterator ? read_batches(iterator, &seconds) : cornu_error_status();
    if (!status) {
        fprintf(to, "\nInput: %s\nBatches of %lld rows, made by one thread:\n", data.about,
                (long long)rows);
        print_times(iterator, seconds, step_seconds, to);
    }
    cornu_iterator_free(iterator);
    cornu_dataset_free(batches);
    data_free(&data);
    return status;
}
