/*
 * Learns one column of a CSV table from the others, with a small network: a number (regression) or
 * a category (classification); and predicts that column for new tables.
 *
 * The model takes numbers as they are in the file, and words one-hot; its first layer normalizes
 * them to mean 0 and deviation 1, its last one scales a number back to the target. Notes in its
 * file describe the columns: "inputs" and "target" (cornu_table_schema).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cornu/cornu.h>

#include "commands.h"
#include "common/data.h"
#include "common/session.h"

enum { HIDDEN = 64 };

typedef struct {
    const char *target, *task, *delimiter;
    double      test_split;
    bool        drop_missing, predict;
} Settings;

/* Mean and variance of each column of x, and of a target that is a number. */
typedef struct {
    int64_t columns;
    double *mean, *variance;   /* owned, columns + 1: the last are the target's */
} Scales;

static CornuTable *load_table(const Options *options, const Settings *settings,
                              CornuTableConfig config)
{
    config.file = options->arguments[0];
    config.delimiter = settings->delimiter[0];
    if (settings->drop_missing) config.missing = CORNU_MISSING_DROPPED;
    return data_table_load(&config);
}

/* ---- The data ---- */

/* All rows, shuffled once by the seed: x f32 (columns), y f32 (1) or i32 (1). */
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

/* The network computes in f32, where the squares of larger or smaller numbers overflow or
 * vanish. */
static CornuStatus check_scale(const char *column, double variance)
{
    const double deviation = sqrt(variance);
    if (deviation >= 1e-15 && deviation <= 1e15) return CORNU_OK;
    return cornu_error_set(CORNU_ERR_DATA, "column %s has a standard deviation of %.3g, expected "
                           "1e-15 to 1e15: give it in another unit", column, deviation);
}

/* Names the column whose numbers are too large or small. */
static CornuStatus check_scales(const Settings *settings, const CornuTable *table,
                                const Scales *scales)
{
    if (!scales->variance) return CORNU_ERR_DATA;   /* nothing was measured: an error is pending */
    CornuStatus status = check_scale(settings->target, scales->variance[scales->columns]);
    int64_t     at = 0;
    for (int c = 0; c < cornu_table_columns(table) && !status; c++) {
        const char *name = cornu_table_column_name(table, c);
        int         categories;
        cornu_table_categories(table, c, &categories);
        if (!strcmp(name, settings->target)) continue;
        if (!categories) status = check_scale(name, scales->variance[at]);
        at += categories ? categories : 1;
    }
    return status;
}

/* Over the training rows, in two passes. A constant column gets variance 1. */
static CornuStatus measure(CornuDataset *data, Scales *scales)
{
    const int64_t columns = cornu_dataset_type(data, 0).shape.extent[0];
    const double  rows = (double)cornu_dataset_count(data);
    CornuIterator *iterator = cornu_iterator_begin(data, 0);
    CornuStatus    status = iterator ? CORNU_OK : cornu_error_status();
    scales->columns = columns;
    scales->mean = calloc((size_t)columns + 1, sizeof *scales->mean);
    scales->variance = calloc((size_t)columns + 1, sizeof *scales->variance);
    if (!status && (!scales->mean || !scales->variance))
        status = cornu_error_set(CORNU_ERR_MEMORY, "no memory for %lld columns",
                                 (long long)columns);
    for (int pass = 0; pass < 2 && !status; pass++) {
        const CornuBatch *row = NULL;
        status = cornu_iterator_rewind(iterator, 0);
        while (!status && !(status = cornu_iterator_next(iterator, &row)) && row)
            for (int64_t c = 0; c <= columns; c++) {
                const double x = c < columns ? cornu_array_get(row->arrays[0], c)
                                             : cornu_array_get(row->arrays[1], 0);
                if (pass == 0) scales->mean[c] += x / rows;
                else scales->variance[c] += (x - scales->mean[c]) * (x - scales->mean[c]) / rows;
            }
    }
    for (int64_t c = 0; c <= columns && !status; c++)
        if (scales->variance[c] == 0.0) scales->variance[c] = 1.0;
    cornu_iterator_free(iterator);
    return status;
}

/* ---- The network ---- */

static CornuStatus set_statistic(CornuModel *model, const char *path, const double *numbers)
{
    CornuWeight  *weight = cornu_model_find_weight(model, path);
    if (!weight) return cornu_error_set(CORNU_ERR_ARGUMENT, "the model has no %s", path);
    const int64_t count = cornu_type_count(weight->type);
    CornuArray    array = cornu_array(malloc((size_t)count * sizeof(float)), CORNU_F32, count);
    if (!array.data) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for %s", path);
    for (int64_t c = 0; c < count; c++) ((float *)array.data)[c] = (float)numbers[c];
    const CornuStatus status = cornu_weight_write(weight, array);
    free(array.data);
    return status;
}

/* Layers that see numbers as they are in the file, such as years, are float32: bfloat16 would round
 * them. */
static CornuModel *build(const Scales *scales, int classes)
{
    const int64_t columns = scales->columns;
    CornuModel   *model = cornu_sequential(.name = "table", .input_shape = { columns });
    cornu_model_add(model, cornu_normalization(.name = "normalization", .dtype = "float32"));
    cornu_model_add(model, cornu_dense(HIDDEN, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(HIDDEN, .activation = CORNU_RELU));
    if (classes) {
        cornu_model_add(model, cornu_dense(classes, .activation = CORNU_SOFTMAX));
    } else {
        cornu_model_add(model, cornu_dense(1, .dtype = "float32"));
        cornu_model_add(model, cornu_rescaling(sqrt(scales->variance[columns]),
                                               scales->mean[columns], .dtype = "float32"));
    }
    if (set_statistic(model, "normalization/mean", scales->mean) ||
        set_statistic(model, "normalization/variance", scales->variance)) {
        cornu_model_free(model);
        return NULL;
    }
    return model;
}

/* Notes on the columns, for --predict. */
static CornuStatus describe(const Options *options, CornuModel *model, const Settings *settings,
                            const CornuTable *table)
{
    const int         columns = cornu_table_columns(table);
    const char *const target[] = { settings->target, NULL };
    const char      **inputs = calloc((size_t)columns, sizeof *inputs);   /* up to a NULL */
    for (int c = 0, count = 0; inputs && c < columns; c++) {
        const char *name = cornu_table_column_name(table, c);
        if (strcmp(name, settings->target) != 0) inputs[count++] = name;
    }
    char       *input_schema = inputs ? cornu_table_schema(table, inputs) : NULL;
    char       *target_schema = cornu_table_schema(table, target);
    CornuStatus status = input_schema && target_schema ? CORNU_OK
        : cornu_error_set(CORNU_ERR_MEMORY, "no memory for the columns' names");
    if (!status) status = cornu_model_set_note(model, "inputs", input_schema);
    if (!status) status = cornu_model_set_note(model, "target", target_schema);
    if (status == CORNU_ERR_VALUE)
        status = cornu_error_set(status, "%s: holds words that are not UTF-8, expected UTF-8 for "
                                 "--save; iconv -f latin1 -t utf-8 converts from Latin-1",
                                 options->arguments[0]);
    free(input_schema);
    free(target_schema);
    free(inputs);
    return status;
}

/* Regression's loss is the mean square in units of the variance: always guessing the mean has 1. */
static CornuStatus train(const Options *options, CornuDevice *device, CornuModel *model,
                         CornuDataset *data, CornuDataset *test, double variance, int classes)
{
    double      results[2];
    CornuStatus status = cornu_compile(
        model, .optimizer = cornu_adam(.learning_rate = options->learning_rate), .device = device,
        .loss = classes ? CORNU_SPARSE_CATEGORICAL_CROSSENTROPY : CORNU_MEAN_SQUARED_ERROR,
        .loss_weights = { classes ? 1.0 : 1.0 / variance },
        .metrics = { classes ? CORNU_ACCURACY : NULL },
        .steps_per_execution = options->steps_per_execution,
        .gradient_norm = options->gradient_norm,
        .debug_nans = options->debug_nans);
    if (!status) cornu_summary(model);
    if (!status) status = session_train(options, model, data, test, "rows", results);
    if (!status && classes)
        printf("Test loss: %.4f\nTest accuracy: %.4f\n", results[0], results[1]);
    else if (!status)
        printf("Test RMSE: %.4g (always predicting the mean: %.4g)\n",
               sqrt(results[0] * variance), sqrt(variance));
    return status;
}

/* ---- Training ---- */

/* Whether the target is a category, which must agree with --task. */
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
        status = cornu_error_set(CORNU_ERR_DATA, "--test-split leaves %lld of %lld rows for "
                                 "testing, expected some, and some for training",
                                 (long long)tested, (long long)rows);
    if (status) return status;
    printf("%lld rows, %lld of them for testing; %lld skipped for missing values\n",
           (long long)rows, (long long)tested, (long long)cornu_table_dropped(table));
    CornuDataset *all = rows_of(settings, table, classes > 0, (uint64_t)options->seed);
    CornuDataset *data = cornu_dataset_take(cornu_dataset_retain(all), rows - tested);
    CornuDataset *test = cornu_dataset_skip(all, rows - tested);
    status = data && test ? measure(data, &scales) : cornu_error_status();
    if (!status) status = check_scales(settings, table, &scales);
    CornuModel *model = status ? NULL : build(&scales, classes);
    if (!status && !model) status = cornu_error_status();
    if (!status && options->save) status = describe(options, model, settings, table);
    if (!status)
        status = train(options, device, model, data, test, scales.variance[scales.columns],
                       classes);
    cornu_model_free(model);
    cornu_dataset_free(data);
    cornu_dataset_free(test);
    free(scales.mean);
    free(scales.variance);
    return status;
}

/* ---- Predicting ---- */

/* The columns by the notes in the model's file, as tables without rows. */
typedef struct {
    CornuTable        *inputs, *target;
    const char        *name;         /* the target's */
    const char *const *categories;   /* its, or NULL */
    int                classes;      /* 0: a number */
} Columns;

static CornuStatus read_columns(const Options *options, const CornuModel *model, Columns *columns)
{
    const char *inputs = cornu_model_note(model, "inputs");
    const char *target = cornu_model_note(model, "target");
    if (!inputs || !target)
        return cornu_error_set(CORNU_ERR_FORMAT, "%s: does not say which columns it takes, "
                               "expected a model that table --save has written", options->load);
    columns->inputs = cornu_table_schema_parse(inputs);
    columns->target = columns->inputs ? cornu_table_schema_parse(target) : NULL;
    if (!columns->target) return cornu_error_status();
    columns->name = cornu_table_column_name(columns->target, 0);
    columns->categories = cornu_table_categories(columns->target, 0, &columns->classes);
    return CORNU_OK;
}

/* Quoted if CSV needs it. */
static void print_field(const char *text)
{
    const bool plain = *text && !strpbrk(text, ",\"\r\n") && *text != ' ' &&
                       text[strlen(text) - 1] != ' ';
    if (plain) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    putchar('"');
}

/* A line for each row: its line number in the file, and its prediction. */
static CornuStatus print_predictions(const Columns *columns, const CornuTable *table,
                                     const float *y)
{
    fputs("line,", stdout);
    print_field(columns->name);
    puts(columns->classes ? ",probability" : "");
    const int width = columns->classes ? columns->classes : 1;
    for (int64_t row = 0; row < cornu_table_rows(table); row++) {
        const float *values = y + row * width;
        const int    best = (int)cornu_predicted_class(values, width);
        if (best < 0)
            return cornu_error_set(CORNU_ERR_VALUE, "line %lld: the prediction is not a number; "
                                   "weights of the model may not be finite",
                                   (long long)cornu_table_line(table, row));
        printf("%lld,", (long long)cornu_table_line(table, row));
        if (!columns->classes) {
            printf("%.7g\n", (double)values[0]);
            continue;
        }
        print_field(columns->categories[best]);
        printf(",%.4f\n", (double)values[best]);
    }
    return CORNU_OK;
}

/* Warnings about the data, on stderr. */
static void tell_of_rows(const CornuTable *table)
{
    const int64_t rows = cornu_table_rows(table);
    for (int c = 0; c < cornu_table_columns(table); c++) {
        const char   *first;
        const int64_t unknown = cornu_table_unknown(table, c, &first);
        if (unknown)
            fprintf(stderr, "table: column %s: %lld of %lld rows have a value not seen in "
                    "training, such as \"%s\"; it is treated as none of the known categories\n",
                    cornu_table_column_name(table, c), (long long)unknown, (long long)rows, first);
    }
    const int64_t dropped = cornu_table_dropped(table);
    if (dropped)
        fprintf(stderr, "table: %lld row%s skipped for %s\n", (long long)dropped,
                dropped == 1 ? " is" : "s are", dropped == 1 ? "a missing value"
                                                             : "missing values");
}

/* If the file also has the target: how close the predictions are, on stderr, over the rows that
 * have both, matched by line number. */
static void compare(const Options *options, const Settings *settings, const Columns *columns,
                    const CornuTable *table, const float *y)
{
    CornuArray  truth = { .data = NULL };
    CornuTable *told = data_table_load(&(CornuTableConfig){
        .file = options->arguments[0], .like = columns->target,
        .delimiter = settings->delimiter[0], .unknown = CORNU_UNKNOWN_KEPT,
        .missing = CORNU_MISSING_DROPPED });
    CornuStatus status = told ? CORNU_OK : cornu_error_status();
    const bool  there = !status && cornu_table_columns(told) == 1;
    if (there) status = cornu_table_take(told, &truth);
    const int     width = columns->classes ? columns->classes : 1;
    const float  *values = truth.data;
    int64_t       compared = 0, right = 0;
    double        squares = 0.0;
    for (int64_t a = 0, b = 0; values && a < cornu_table_rows(table); a++) {
        while (cornu_table_line(told, b) && cornu_table_line(told, b) < cornu_table_line(table, a))
            b++;
        if (cornu_table_line(told, b) != cornu_table_line(table, a)) continue;
        const double difference = (double)y[a * width] - (double)values[b];
        right += cornu_predicted_class(y + a * width, width) == (int64_t)values[b];
        squares += difference * difference;
        compared++;
    }
    if (status && status != CORNU_ERR_DATA)   /* which means: no row has a value */
        fprintf(stderr, "table: no comparison: %s\n",
                options_translate(cornu_error_message()));
    else if (compared && columns->classes)
        fprintf(stderr, "Accuracy: %.4f on %lld rows that have %s\n",
                (double)right / (double)compared, (long long)compared, columns->name);
    else if (compared)
        fprintf(stderr, "RMSE: %.4g on %lld rows that have %s\n",
                sqrt(squares / (double)compared), (long long)compared, columns->name);
    free(truth.data);
    cornu_table_free(told);
}

/* The rows as inputs of the model; columns are found by name. */
static CornuStatus take_inputs(const CornuModel *model, const Columns *columns,
                               const CornuTable *table, CornuArray *x)
{
    const int    count = cornu_table_columns(columns->inputs);
    const char **names = calloc((size_t)count + 1, sizeof *names);
    if (!names) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for %d columns", count);
    for (int c = 0; c < count; c++) names[c] = cornu_table_column_name(columns->inputs, c);
    const CornuStatus status = cornu_table_take(table, x, .columns = names, .one_hot = true);
    free(names);
    if (status == CORNU_ERR_ARGUMENT)
        return cornu_error_set(status, "%s, which the model was trained with",
                               cornu_error_message());
    if (status) return status;
    const int64_t    width = x->type.shape.extent[1];
    const int64_t    outputs = columns->classes ? columns->classes : 1;
    const CornuShape in = cornu_model_input_shape(model), out = cornu_model_output_shape(model);
    CornuText        texts[2];
    if (in.rank == 2 && in.extent[1] == width && out.rank == 2 && out.extent[1] == outputs)
        return CORNU_OK;
    return cornu_error_set(CORNU_ERR_FORMAT, "the model turns %s into %s, but its columns are "
                           "%lld numbers to predict %lld from", cornu_shape_print(&texts[0], in),
                           cornu_shape_print(&texts[1], out), (long long)width,
                           (long long)outputs);
}

static CornuStatus predict_rows(const Options *options, const Settings *settings,
                                CornuModel *model, const Columns *columns)
{
    CornuArray  x = { .data = NULL };
    float      *y = NULL;
    CornuTable *table = load_table(options, settings, (CornuTableConfig){
        .like = columns->inputs, .unknown = CORNU_UNKNOWN_KEPT });
    CornuStatus   status = table ? take_inputs(model, columns, table, &x) : cornu_error_status();
    const int64_t rows = status ? 0 : cornu_table_rows(table);
    const int64_t width = columns->classes ? columns->classes : 1;
    if (!status && !(y = malloc((size_t)(rows * width) * sizeof *y)))
        status = cornu_error_set(CORNU_ERR_MEMORY, "no memory for %lld predictions",
                                 (long long)rows);
    if (!status)
        status = cornu_predict(model, .x = x, .to = cornu_array(y, CORNU_F32, rows, width),
                               .batch_size = options->batch_size, .verbose = CORNU_SILENT);
    if (!status) status = print_predictions(columns, table, y);
    if (!status) {
        fflush(stdout);
        tell_of_rows(table);
        compare(options, settings, columns, table, y);
    }
    free(x.data);
    free(y);
    cornu_table_free(table);
    return status;
}

static CornuStatus predict(const Options *options, const Settings *settings)
{
    Columns      columns = { .inputs = NULL };
    CornuStatus  status = session_begin(options);
    CornuDevice *device = status ? NULL
        : cornu_device_open(options->device, .threads = (int)options->threads,
                            .shards = (int)options->shards,
                            .precision = session_precision(options),
                            .processes = session_processes());
    CornuModel *model = device ? cornu_model_load(options->load) : NULL;
    if (!status) status = model ? CORNU_OK : cornu_error_status();
    if (!status) status = read_columns(options, model, &columns);
    if (!status) status = cornu_compile(model, .device = device);
    if (!status) status = predict_rows(options, settings, model, &columns);
    cornu_table_free(columns.inputs);
    cornu_table_free(columns.target);
    cornu_model_free(model);
    cornu_device_close(device);
    return status;
}

/* ---- Commands ---- */

/* Why the flags do not fit together, or NULL. */
static const char *check_flags(const Options *options, const Settings *settings)
{
    if (settings->delimiter[1]) return "--delimiter has several characters, expected one";
    if (!settings->predict)
        return settings->target ? NULL : "--target is missing, expected the name of a column";
    return !options->load ? "--predict needs a model, --load FILE"
         : settings->target ? "--target is for training; with --predict the model knows its own"
         : options->save ? "--predict trains nothing, so there is nothing to --save" : NULL;
}

static CornuStatus train_on_file(const Options *options, const Settings *settings)
{
    const char *const words[] = { settings->task[0] == 'c' ? settings->target : NULL, NULL };
    CornuDevice *device = session_open(options);
    CornuTable  *table = !device ? NULL
        : load_table(options, settings, (CornuTableConfig){ .categories = words });
    CornuStatus  status = table ? learn(options, settings, device, table) : cornu_error_status();
    cornu_table_free(table);
    cornu_device_close(device);
    return status;
}

int command_table(int argc, char **argv)
{
    static const char *const tasks[] = { "auto", "regression", "classification", NULL };
    Settings      settings = { .task = "auto", .delimiter = ",", .test_split = 0.2 };
    Options       options = { .epochs = 50, .batch_size = 32, .learning_rate = 1e-3 };
    const Option  extra[] = {
        { "target", OPTION_TEXT, &settings.target, "COLUMN", "column to learn, by its name in the "
          "first line; required for training", 0, 0, NULL },
        { "task", OPTION_CHOICE, &settings.task, "NAME", "auto: regression for numbers, "
          "classification for words", 0, 0, tasks },
        { "test-split", OPTION_NUMBER, &settings.test_split, "X", "fraction of the rows held out "
          "for testing", 0.001, 0.9, NULL },
        { "delimiter", OPTION_TEXT, &settings.delimiter, "C", "field separator", 0, 0,
          NULL },
        { "drop-missing", OPTION_SWITCH, &settings.drop_missing, "", "skip rows with a missing "
          "value; without it they are an error", 0, 0, NULL },
        { "predict", OPTION_SWITCH, &settings.predict, "", "predict the target for the rows of "
          "FILE.csv with the model of --load, as CSV on stdout", 0, 0, NULL },
        OPTION_END,
    };
    const Program program = {
        .name = "cornu table", .extra = extra, .arguments = "FILE.csv", .least_arguments = 1,
        .groups = OPTIONS_MACHINE | OPTIONS_TRAINING | OPTIONS_SEED | OPTIONS_FIT,
        .purpose = "Learns a column of a CSV table from the others, and predicts it for new rows.",
    };
    const int usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;
    const char *wrong = check_flags(&options, &settings);
    if (wrong) {
        fprintf(stderr, "table: %s\nTry 'table --help'.\n", wrong);
        return 2;
    }
    return session_end("cornu table", settings.predict ? predict(&options, &settings)
                                                 : train_on_file(&options, &settings));
}
