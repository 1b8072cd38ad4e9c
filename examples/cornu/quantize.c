/*
 * Quantizes a trained model of images to 8 bits and compares the two on the test set; prints what
 * the 8-bit model would cost on an Edge TPU, and writes it to a file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cornu/cornu.h>

#include "commands.h"
#include "common/session.h"

typedef struct {
    const char *images;    /* mnist, fashion_mnist */
    int64_t     samples;
    bool        operators;
} Settings;

/* ---- Predictions ---- */

/* Of `rows` rows of `classes`; owned. */
typedef struct {
    float  *values;
    int64_t rows, classes;
    double  seconds;
} Predictions;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static Predictions make_predictions(int64_t rows, int64_t classes)
{
    const Predictions p = { calloc((size_t)(rows * classes), sizeof(float)), rows, classes, 0.0 };
    if (!p.values)
        cornu_error_set(CORNU_ERR_MEMORY, "no memory for %lld predictions", (long long)rows);
    return p;
}

static int best_of(const Predictions *p, int64_t row)
{
    const float *values = p->values + row * p->classes;
    int          best = 0;
    for (int c = 1; c < p->classes; c++)
        if (values[c] > values[best]) best = c;
    return best;
}

/* Percent of the rows whose class is the label's, or that of other predictions. */
static double agreement(const Predictions *p, const CornuArray *labels, const Predictions *other)
{
    int64_t equal = 0;
    for (int64_t row = 0; row < p->rows; row++)
        equal += best_of(p, row) == (labels ? (int)cornu_array_get(*labels, row)
                                            : best_of(other, row));
    return 100.0 * (double)equal / (double)p->rows;
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

static void print_accuracy(const CornuModel *model, const CornuInt8Model *small,
                           const Predictions *real, const Predictions *integer,
                           const CornuArray *labels)
{
    const double before = agreement(real, labels, NULL), after = agreement(integer, labels, NULL);
    printf("float:  accuracy %6.2f %%, %9lld bytes of weights\n", before,
           4 * (long long)cornu_model_parameters(model));
    printf("int8:   accuracy %6.2f %%, %9lld bytes of weights; %+.2f points, %.2f %% of the "
           "classes equal\n", after, (long long)cornu_int8_bytes(small), after - before,
           agreement(integer, NULL, real));
    printf("measured here: int8 %.0f images/s, float %.0f images/s\n",
           (double)integer->rows / integer->seconds, (double)real->rows / real->seconds);
}

/* ---- Quantizing ---- */

static CornuStatus compare(const Options *options, const Settings *settings, CornuModel *model,
                           const CornuTrainTest *data, CornuInt8Model *small)
{
    const CornuArray x = cornu_reference_input(model, data->test_x);
    const int64_t    rows = x.type.shape.extent[0];
    const int64_t    classes = cornu_model_output_shape(model).extent[1];
    Predictions      real = make_predictions(rows, classes);
    Predictions      integer = make_predictions(rows, classes);
    CornuStatus      status = real.values && integer.values ? CORNU_OK : cornu_error_status();
    if (!status) {
        const double start = now();
        status = cornu_predict(model, .x = x, .batch_size = 256, .verbose = CORNU_SILENT,
                               .to = cornu_array(real.values, CORNU_F32, rows, classes));
        real.seconds = now() - start;
    }
    if (!status) {
        const double start = now();
        status = cornu_int8_predict(small, x, cornu_array(integer.values, CORNU_F32, rows,
                                                          classes));
        integer.seconds = now() - start;
    }
    if (!status) print_accuracy(model, small, &real, &integer, &data->test_y);
    if (!status) status = print_cost(settings, small);
    if (!status && options->save) {
        status = cornu_int8_save(small, options->save);
        if (!status) printf("saved %s\n", options->save);
    }
    free(real.values);
    free(integer.values);
    return status;
}

static CornuStatus quantize(const Options *options, const Settings *settings, CornuModel *model,
                            const CornuTrainTest *data, CornuDevice *device)
{
    const CornuShape out = cornu_model_output_shape(model);
    CornuText        shape;
    if (out.rank != 2 || out.extent[1] != data->classes)
        return cornu_error_set(CORNU_ERR_SHAPE, "%s has results %s, expected %d classes",
                               options->arguments[0], cornu_shape_print(&shape, out),
                               data->classes);
    CornuStatus status = cornu_compile(model, .device = device);
    if (status) return status;
    CornuInt8Model *small =
        cornu_quantize(model, .x = cornu_reference_input(model, data->train_x),
                       .samples = settings->samples, .threads = (int)options->threads);
    status = small ? compare(options, settings, model, data, small) : cornu_error_status();
    cornu_int8_free(small);
    return status;
}

int command_quantize(int argc, char **argv)
{
    static const char *const sets[] = { "mnist", "fashion_mnist", NULL };
    Options      options = { .shards = 1 };
    Settings     settings = { .images = "mnist", .samples = 512 };
    const Option extra[] = {
        { "images", OPTION_CHOICE, &settings.images, "NAME", "images and labels", 0, 0,
          sets },
        { "samples", OPTION_WHOLE, &settings.samples, "N",
          "training images that give the ranges of activations", 1, 1e6, NULL },
        { "save", OPTION_TEXT, &options.save, "FILE",
          "write the 8-bit model to FILE, .tflite or .onnx", 0, 0, NULL },
        { "operators", OPTION_SWITCH, &settings.operators, "",
          "list the operators, and what an Edge TPU has", 0, 0, NULL },
        { NULL, 0, NULL, NULL, NULL, 0, 0, NULL }
    };
    const Program program = {
        .name = "cornu quantize", .extra = extra, .groups = OPTIONS_DATA | OPTIONS_THREADS,
        .arguments = "MODEL", .least_arguments = 1,
        .purpose = "Quantizes a model of images to 8 bits, and compares the two.",
    };
    const int usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;

    CornuStatus     status = session_begin(&options);
    CornuDevice    *device = status ? NULL
        : cornu_device_open("cpu", .threads = (int)options.threads);
    CornuModel     *model = device ? cornu_model_load(options.arguments[0]) : NULL;
    CornuTrainTest *data = !model ? NULL
        : session_data(&options, strcmp(settings.images, "mnist") == 0
                                 ? cornu_mnist_load_from : cornu_fashion_mnist_load_from);
    status = data ? quantize(&options, &settings, model, data, device) : cornu_error_status();
    cornu_train_test_free(data);
    cornu_model_free(model);
    cornu_device_close(device);
    return session_end("cornu quantize", status);
}
