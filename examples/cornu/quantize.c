/*
 * cornu quantize MODEL --data WHAT: quantizes a trained model to 8 bits, by what its activations
 * are on the data, and compares the two; prints what the 8-bit model would cost on an Edge TPU, and
 * writes it to a file.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cornu/cornu.h>

#include "clock.h"
#include "commands.h"
#include "common/picture_input.h"
#include "common/session.h"
#include "common/subject.h"

typedef struct {
    DataFlags data;
    int64_t   samples;
    bool      operators;
} Settings;

/* ---- Predictions ---- */

/* Of each output; owned. */
typedef struct {
    CornuArray to[DATA_MOST];
    int        count;
    double     seconds;
} Predictions;

static CornuStatus make_predictions(Predictions *p, CornuModel *model, const CornuArray *x)
{
    CornuType   types[DATA_MOST];
    CornuStatus status = cornu_model_predict_types(model, x, types);
    *p = (Predictions){ .count = cornu_model_output_count(model) };
    for (int i = 0; i < p->count && !status; i++) {
        p->to[i] = cornu_array_from(calloc(cornu_type_bytes(types[i]), 1), types[i]);
        if (!p->to[i].data) status = cornu_error_set(CORNU_ERR_MEMORY, "no memory for predictions");
    }
    return status;
}

static void free_predictions(Predictions *p)
{
    for (int i = 0; i < p->count; i++) free(p->to[i].data);
}

static int64_t rows_of(const Predictions *p) { return p->to[0].type.shape.extent[0]; }

/* Whether the first output is one of classes. */
static bool classifies(const Predictions *p)
{
    return p->to[0].type.shape.rank == 2 && p->to[0].type.shape.extent[1] > 1;
}

static int64_t best_of(CornuArray values, int64_t row)
{
    const int64_t classes = values.type.shape.extent[1];
    int64_t       best = 0;
    for (int64_t c = 1; c < classes; c++)
        if (cornu_array_get(values, row * classes + c) >
            cornu_array_get(values, row * classes + best)) best = c;
    return best;
}

/* Class numbers, or one-hot. */
static int64_t label_of(CornuArray labels, int64_t row)
{
    const int64_t rows = labels.type.shape.extent[0];
    return cornu_type_count(labels.type) == rows ? (int64_t)cornu_array_get(labels, row)
                                                 : best_of(labels, row);
}

/* What all rows are, block by block. */
typedef struct {
    CornuModel     *model;
    CornuInt8Model *small;
    int             inputs;
    bool            classified, labelled;
    int64_t         rows, right, right_small, equal;   /* classes, of which the labels' */
    int64_t         values;
    double          distance, least, greatest;         /* of the first output; a sum */
    double          seconds, seconds_small;
} Comparison;

static void count_classes(Comparison *all, const Predictions *real, const Predictions *integer,
                          const CornuArray *labels)
{
    for (int64_t row = 0; row < rows_of(real); row++) {
        const int64_t a = best_of(real->to[0], row), b = best_of(integer->to[0], row);
        const int64_t label = labels ? label_of(*labels, row) : -1;
        all->right += a == label;
        all->right_small += b == label;
        all->equal += a == b;
    }
}

static void add_distances(Comparison *all, CornuArray real, CornuArray integer)
{
    const int64_t count = cornu_type_count(real.type);
    for (int64_t i = 0; i < count; i++) {
        const double value = cornu_array_get(real, i);
        all->least = fmin(all->least, value), all->greatest = fmax(all->greatest, value);
        all->distance += fabs(value - cornu_array_get(integer, i));
    }
    all->values += count;
}

static double percent(int64_t count, const Comparison *all)
{
    return 100.0 * (double)count / (double)all->rows;
}

/* ---- The report ---- */

static void print_operators(const CornuEdgeTpuOperator *operators, int count)
{
    for (int i = 0; i < count; i++)
        printf("  %-24s %12lld multiply-adds %9lld bytes of parameters  %s%s\n", operators[i].name,
               (long long)operators[i].multiply_adds, (long long)operators[i].parameter_bytes,
               operators[i].mapped ? "edgetpu" : "host: ",
               operators[i].mapped ? "" : operators[i].why);
}

static CornuStatus print_cost(const Settings *settings, const CornuInt8Model *small)
{
    const int             count = cornu_int8_operator_count(small);
    CornuEdgeTpuOperator *operators = calloc((size_t)count + 1, sizeof *operators);
    CornuEdgeTpuCost      cost;
    if (!operators)
        return cornu_error_set(CORNU_ERR_MEMORY, "no memory for %d operators", count);
    const CornuStatus status = cornu_int8_edgetpu_cost(small, &cost, operators);
    if (!status) {
        printf("edgetpu (emulated; %s, %g TOPS, %g W): %d operators mapped, %d on the host\n",
               cornu_edgetpu_profile.name, cornu_edgetpu_profile.ops_per_s * 1e-12,
               cornu_edgetpu_profile.watts, cost.mapped, cost.host);
        if (settings->operators) print_operators(operators, count);
        printf("  parameters: %lld bytes cached, %lld sent for each image\n",
               (long long)cost.cached_bytes, (long long)cost.streamed_bytes);
        printf("  modelled for each image, at least: %.2f us = %.2f us of products + %.2f us on "
               "the link; %.2f uJ%s\n", 1e6 * cost.total_s, 1e6 * cost.compute_s,
               1e6 * cost.transfer_s, 1e6 * cost.joules,
               cost.host ? "; without what runs on the host" : "");
    }
    free(operators);
    return status;
}

static void print_accuracy(const Comparison *all)
{
    const long long before = 4 * (long long)cornu_model_parameters(all->model);
    const long long after = (long long)cornu_int8_bytes(all->small);
    if (all->labelled) {
        const double was = percent(all->right, all), is = percent(all->right_small, all);
        printf("float:  accuracy %6.2f %%, %9lld bytes of weights\n", was, before);
        printf("int8:   accuracy %6.2f %%, %9lld bytes of weights; %+.2f points, %.2f %% of the "
               "classes equal\n", is, after, is - was, percent(all->equal, all));
    } else {
        printf("float:  %9lld bytes of weights\nint8:   %9lld bytes of weights; ", before, after);
        if (all->classified)
            printf("%.2f %% of the classes equal\n", percent(all->equal, all));
        else
            printf("%.3g from float's values in the mean, which are %.3g to %.3g\n",
                   all->distance / (double)all->values, all->least, all->greatest);
    }
    printf("measured here: int8 %.0f rows/s, float %.0f rows/s\n",
           (double)all->rows / all->seconds_small, (double)all->rows / all->seconds);
}

/* ---- Quantizing ---- */

static CornuStatus run_both(Comparison *all, const CornuArray *x, Predictions *real,
                            Predictions *integer)
{
    CornuPredictConfig config = {
        .model = all->model, .verbose = CORNU_SILENT,
        .batch_size = cornu_model_batch_size(all->model) > 0 ? 0 : 256 };
    CornuStatus status = make_predictions(real, all->model, x);
    if (!status) status = make_predictions(integer, all->model, x);
    if (status) return status;
    memcpy(config.xs, x, (size_t)all->inputs * sizeof *x);
    memcpy(config.tos, real->to, sizeof config.tos);
    const double start = clock_seconds();
    status = cornu_predict_from(&config);
    const double middle = clock_seconds();
    if (!status)
        status = cornu_int8_predict_many(all->small, x, all->inputs, integer->to, integer->count);
    all->seconds += middle - start;
    all->seconds_small += clock_seconds() - middle;
    return status;
}

static CornuStatus compare_block(void *context, const CornuArray *arrays, int64_t first, bool *more)
{
    Comparison *all = context;
    Predictions real = { .count = 0 }, integer = real;
    CornuStatus status = run_both(all, arrays, &real, &integer);
    (void)first, (void)more;
    if (!status) {
        all->classified = classifies(&real);
        all->labelled &= all->classified;
        if (all->classified)
            count_classes(all, &real, &integer, all->labelled ? &arrays[all->inputs] : NULL);
        else
            add_distances(all, real.to[0], integer.to[0]);
        all->rows += rows_of(&real);
    }
    free_predictions(&real);
    free_predictions(&integer);
    return status;
}

static CornuStatus compare(const Options *options, const Settings *settings, CornuModel *model,
                           const Data *data, CornuInt8Model *small)
{
    CornuDataset *rows = data_rows(data);
    Comparison    all = { .model = model, .small = small, .inputs = cornu_model_input_count(model),
                          .least = INFINITY, .greatest = -INFINITY };
    if (!rows) return cornu_error_status();
    all.labelled = cornu_dataset_components(rows) > all.inputs;
    CornuStatus status = data_rows_each(rows, data_rows_block(rows), compare_block, &all);
    cornu_dataset_free(rows);
    if (!status) print_accuracy(&all);
    if (!status) status = print_cost(settings, small);
    if (!status && options->save) {
        status = cornu_int8_save(small, options->save);
        if (!status) printf("saved %s\n", options->save);
    }
    return status;
}

/* The first rows, which give the ranges. */
static CornuStatus take_samples(const Settings *settings, const CornuModel *model, Data *data,
                                CornuArray *x)
{
    CornuArray y[DATA_MOST];
    if (data->rows)
        return data_rows_first(data, data->rows, cornu_model_input_count(model), settings->samples,
                               x, y);
    memcpy(x, data->x, sizeof data->x);
    return CORNU_OK;
}

static CornuStatus quantize(const Options *options, const Settings *settings, CornuModel *model,
                            CornuDevice *device)
{
    Data           data;
    CornuStatus    status = data_load(&data, options, &settings->data, model, DATA_INPUTS);
    if (!status) printf("%s\n", data.about);
    if (!status) status = cornu_compile(model, .device = device);
    CornuQuantizeConfig config = { .model = model, .samples = settings->samples,
                                   .threads = (int)options->threads };
    if (!status) status = take_samples(settings, model, &data, config.xs);
    CornuInt8Model *small = status ? NULL : cornu_quantize_from(&config);
    if (!status)
        status = small ? compare(options, settings, model, &data, small) : cornu_error_status();
    cornu_int8_free(small);
    data_free(&data);
    return status;
}

/* Without data, and for a folder of sets, those of the digits, if the model takes such pictures. */
static void choose_digits(Options *options, const DataFlags *flags, const CornuModel *model)
{
    const DataKind kind = options->data ? data_kind(options->data) : DATA_SETS;
    PictureInput   input;
    if (flags->x.count || kind != DATA_SETS) return;
    if (picture_input(&input, model, flags) || input.channels != 1 ||
        input.height != CORNU_DIGIT_SIZE) {
        cornu_error_take();
        return;
    }
    if (options->data) options->data_dir = options->data;
    options->data = "mnist";
}

int command_quantize(int argc, char **argv)
{
    Options      options = { .shards = 1 };
    Settings     settings = { .data = DATA_FLAGS, .samples = 512 };
    const char  *save = NULL;
    const Option  extra[] = { DATA_OPTIONS(settings.data),
                              DATA_LABEL_OPTIONS(settings.data),
                              { "samples", OPTION_WHOLE, &settings.samples, "N",
                                "rows that give the ranges of activations", 1, 1e6, NULL },
                              { "save", OPTION_TEXT, &save, "FILE",
                                "write the 8-bit model to FILE, .tflite or .onnx", 0, 0, NULL },
                              { "operators", OPTION_SWITCH, &settings.operators, "",
                                "list the operators, and what an Edge TPU has", 0, 0, NULL },
                              OPTION_END };
    const Program program = {
        .name = "cornu quantize", .extra = extra, .arguments = "MODEL", .least_arguments = 1,
        .groups = OPTIONS_DATA | OPTIONS_CLASSES | OPTIONS_THREADS,
        .data = DATA_HELP "; default mnist",
        .purpose = "Quantizes a model to 8 bits on your data, and compares the two.",
    };
    const int usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;

    Subject      subject;
    options.save = save;
    CornuStatus  status = session_begin(&options);
    if (!status) status = subject_find(&subject, options.arguments[0]);
    CornuDevice *device = status ? NULL : cornu_device_open("cpu", .threads = (int)options.threads);
    CornuModel  *model = device ? subject_model(&subject) : NULL;
    if (model) choose_digits(&options, &settings.data, model);
    status = model ? quantize(&options, &settings, model, device) : cornu_error_status();
    cornu_model_free(model);
    cornu_device_close(device);
    return session_end("cornu quantize", status);
}
