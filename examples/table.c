/*
 * Learns one column of a table of one's own from the others, with a small network: a number
 * (regression) or a category (classification). Numbers are brought to mean 0 and deviation 1, words
 * become a column for each.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cornu/cornu.h>
#include <cornu/datasets/table.h>

#include "session.h"

enum { HIDDEN = 64 };

typedef struct {
    const char *target, *task, *delimiter;
    double      test_split;
    bool        drop_missing;
} Settings;

/* Mean and deviation of each column of x, and of a target that is a number. */
typedef struct {
    int64_t columns;
    double *mean, *deviation;   /* owned, columns + 1: the last are the target's */
} Scales;

/* ---- The data ---- */

/* All rows, in one order drawn by the seed: x f32 (columns), y f32 (1) or i32 (1). */
static CornuDataset *rows_of(const Settings *settings, const CornuTable *table, bool classify,
                             uint64_t seed)
{
    const char *const target[] = { settings->target, NULL };
    CornuArray        arrays[2] = { { .data = NULL }, { .data = NULL } };
    if (cornu_table_take(table, &arrays[0], .except = target, .one_hot = true) ||
        cornu_table_take(table, &arrays[1], .columns = target,
                         .dtype = classify ? CORNU_I32 : CORNU_F32)) {
        free(arrays[0].data);
        return NULL;
    }
    return cornu_dataset_cache(cornu_dataset_shuffle(cornu_dataset_own_arrays(arrays, 2), seed));
}

/* Of the rows that are learnt from, in two passes. A column of one value gets a deviation of 1. */
static CornuStatus measure(CornuDataset *data, Scales *scales)
{
    const int64_t columns = cornu_dataset_type(data, 0).shape.extent[0];
    const double  rows = (double)cornu_dataset_count(data);
    CornuIterator *iterator = cornu_iterator_begin(data, 0);
    CornuStatus    status = iterator ? CORNU_OK : cornu_error_status();
    scales->columns = columns;
    scales->mean = calloc((size_t)columns + 1, sizeof *scales->mean);
    scales->deviation = calloc((size_t)columns + 1, sizeof *scales->deviation);
    if (!status && (!scales->mean || !scales->deviation))
        status = cornu_error_set(CORNU_ERR_MEMORY, "no room for %lld columns", (long long)columns);
    for (int pass = 0; pass < 2 && !status; pass++) {
        const CornuBatch *row = NULL;
        status = cornu_iterator_rewind(iterator, 0);
        while (!status && !(status = cornu_iterator_next(iterator, &row)) && row)
            for (int64_t c = 0; c <= columns; c++) {
                const double x = c < columns ? cornu_array_get(row->arrays[0], c)
                                             : cornu_array_get(row->arrays[1], 0);
                if (pass == 0) scales->mean[c] += x / rows;
                else scales->deviation[c] += (x - scales->mean[c]) * (x - scales->mean[c]) / rows;
            }
    }
    for (int64_t c = 0; c <= columns && !status; c++)
        scales->deviation[c] = scales->deviation[c] > 0.0 ? sqrt(scales->deviation[c]) : 1.0;
    cornu_iterator_free(iterator);
    return status;
}

static CornuStatus scale_row(void *context, CornuSample sample, const CornuArray *in,
                             const CornuArray *out)
{
    (void)sample;
    const Scales *scales = context;
    const float  *from = in[0].data;
    float        *to = out[0].data;
    for (int64_t c = 0; c < scales->columns; c++)
        to[c] = (float)((from[c] - scales->mean[c]) / scales->deviation[c]);
    double y = cornu_array_get(in[1], 0);
    if (in[1].type.dtype == CORNU_F32)
        y = (y - scales->mean[scales->columns]) / scales->deviation[scales->columns];
    cornu_array_set(out[1], 0, y);
    return CORNU_OK;
}

/* ---- The network ---- */

static CornuModel *build(int64_t columns, int classes)
{
    CornuModel *model = cornu_sequential(.name = "table", .input_shape = { columns });
    cornu_model_add(model, cornu_dense(HIDDEN, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(HIDDEN, .activation = CORNU_RELU));
    cornu_model_add(model, classes ? cornu_dense(classes, .activation = CORNU_SOFTMAX)
                                   : cornu_dense(1));
    return model;
}

static CornuStatus train(const Options *options, CornuDevice *device, CornuDataset *data,
                         CornuDataset *test, const Scales *scales, int classes)
{
    double         results[2];
    const double   unit = scales->deviation[scales->columns];
    CornuModel    *model = build(scales->columns, classes);
    CornuStatus    status = cornu_compile(
        model, .optimizer = cornu_adam(.learning_rate = options->learning_rate), .device = device,
        .loss = classes ? CORNU_SPARSE_CATEGORICAL_CROSSENTROPY : CORNU_MEAN_SQUARED_ERROR,
        .metrics = { classes ? CORNU_ACCURACY : NULL },
        .steps_per_execution = options->steps_per_execution,
        .gradient_norm = options->gradient_norm,
        .debug_nans = options->debug_nans);
    if (!status) cornu_summary(model);
    if (!status) status = session_train(options, model, data, test, "rows", results);
    if (!status && classes)
        printf("Test loss: %.4f\nTest accuracy: %.4f\n", results[0], results[1]);
    else if (!status)
        printf("Test error: %.4g, root of the mean square (always guessing the mean: %.4g)\n",
               sqrt(results[0]) * unit, unit);
    cornu_model_free(model);
    return status;
}

/* ---- All of it ---- */

/* Whether the target is a category. It must be what --task asks for, if it does. */
static CornuStatus find_task(const Settings *settings, const CornuTable *table, int *classes)
{
    const int column = cornu_table_find(table, settings->target);
    if (column < 0) return cornu_error_status();
    cornu_table_categories(table, column, classes);
    if (*classes && settings->task[0] == 'r')
        return cornu_error_set(CORNU_ERR_ARGUMENT, "column %s holds words, expected numbers for a "
                               "regression", settings->target);
    if (*classes != 1) return CORNU_OK;
    return cornu_error_set(CORNU_ERR_DATA, "column %s has one category, expected 2 or more",
                           settings->target);
}

static CornuStatus learn(const Options *options, const Settings *settings, CornuDevice *device,
                         const CornuTable *table)
{
    int           classes;
    Scales        scales = { .columns = 0 };
    CornuStatus   status = find_task(settings, table, &classes);
    const int64_t rows = cornu_table_rows(table);
    const int64_t tested = (int64_t)(settings->test_split * (double)rows);
    if (!status && (tested < 1 || tested == rows))
        status = cornu_error_set(CORNU_ERR_DATA, "%lld of %lld rows for the test, expected some, "
                                 "and others to train", (long long)tested, (long long)rows);
    if (status) return status;
    printf("%lld rows, %lld of them for the test, %lld left out for missing values\n",
           (long long)rows, (long long)tested, (long long)cornu_table_dropped(table));
    CornuDataset *all = rows_of(settings, table, classes > 0, (uint64_t)options->seed);
    CornuDataset *data = cornu_dataset_take(cornu_dataset_retain(all), rows - tested);
    CornuDataset *test = cornu_dataset_skip(all, rows - tested);
    status = data && test ? measure(data, &scales) : cornu_error_status();
    data = cornu_dataset_map(data, scale_row, &scales, NULL, 0);
    test = cornu_dataset_map(test, scale_row, &scales, NULL, 0);
    if (!status) status = data && test ? train(options, device, data, test, &scales, classes)
                                       : cornu_error_status();
    cornu_dataset_free(data);
    cornu_dataset_free(test);
    free(scales.mean);
    free(scales.deviation);
    return status;
}

int main(int argc, char **argv)
{
    static const char *const tasks[] = { "auto", "regression", "classification", NULL };
    Settings      settings = { .task = "auto", .delimiter = ",", .test_split = 0.2 };
    Options       options = { .epochs = 50, .batch_size = 32, .learning_rate = 1e-3 };
    const Option  extra[] = {
        { "target", OPTION_TEXT, &settings.target, "COLUMN", "what is learnt, by its name in the "
          "first line; required", 0, 0, NULL },
        { "task", OPTION_CHOICE, &settings.task, "NAME", "auto: numbers are regressed, words "
          "classified", 0, 0, tasks },
        { "test-split", OPTION_NUMBER, &settings.test_split, "X", "the part of the rows that is "
          "held out", 0.001, 0.9, NULL },
        { "delimiter", OPTION_TEXT, &settings.delimiter, "C", "what stands between fields", 0, 0,
          NULL },
        { "drop-missing", OPTION_SWITCH, &settings.drop_missing, "", "leave out rows with a "
          "missing value; else they are refused", 0, 0, NULL },
        { NULL, 0, NULL, NULL, NULL, 0, 0, NULL },
    };
    const Program program = {
        .name = "table", .extra = extra, .arguments = "FILE.csv", .least_arguments = 1,
        .groups = OPTIONS_MACHINE | OPTIONS_TRAINING | OPTIONS_SEED | OPTIONS_FIT,
        .purpose = "Learns a column of a CSV table from the others.",
    };
    const int usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;
    if (!settings.target || settings.delimiter[1]) {
        fprintf(stderr, "table: %s\n\nTry 'table --help'.\n",
                settings.target ? "--delimiter has several characters, expected one"
                                : "--target is missing, expected the name of a column");
        return 2;
    }
    const char *const words[] = { settings.task[0] == 'c' ? settings.target : NULL, NULL };
    CornuDevice *device = session_open(&options);
    CornuTable  *table = !device ? NULL : cornu_table_load(
        options.arguments[0], .delimiter = settings.delimiter[0], .categories = words,
        .missing = settings.drop_missing ? CORNU_MISSING_DROPPED : CORNU_MISSING_REFUSED);
    CornuStatus  status = table ? learn(&options, &settings, device, table) : cornu_error_status();
    cornu_table_free(table);
    cornu_device_close(device);
    return session_end("table", status);
}
