/* cornu predict MODEL: for --x FILE or --data, predictions as a .npz file, or the first rows
 * printed; for pictures, their classes. */
#include <stdio.h>
#include <stdlib.h>

#include "../commands.h"
#include "../common/data.h"
#include "../common/session.h"
#include "../common/subject.h"
#include "predict.h"

enum { PRINTED = 10 };

/* The values of a row, at most ten of them. */
static void print_row(const float *values, int64_t count)
{
    for (int64_t i = 0; i < count && i < PRINTED; i++)
        printf("%s%.6g", i ? "\t" : "", (double)values[i]);
    puts(count > PRINTED ? "\t..." : "");
}

static void print_output(const CornuModel *model, int output, CornuArray values)
{
    const int64_t rows = values.type.shape.rank ? values.type.shape.extent[0] : 1;
    const int64_t width = rows ? cornu_type_count(values.type) / rows : 0;
    if (cornu_model_output_count(model) > 1) printf("%s\n", cornu_model_output_name(model, output));
    for (int64_t i = 0; i < rows && i < PRINTED; i++)
        print_row((const float *)values.data + i * width, width);
    if (rows > PRINTED) printf("... %lld rows; --save FILE.npz writes all\n", (long long)rows);
}

static CornuStatus run(const Options *options, CornuModel *model, CornuPredictor *predictor,
                       const CornuArray *x)
{
    const int       outputs = cornu_model_output_count(model);
    CornuArray      to[DATA_MOST] = { { .data = NULL } };
    CornuNamedArray named[DATA_MOST];
    CornuType       types[DATA_MOST];
    CornuStatus     status = cornu_predictor_output_types(predictor, x, types);
    for (int i = 0; i < outputs && !status; i++) {
        to[i] = cornu_array_from(malloc(cornu_type_bytes(types[i]) + 1), types[i]);
        named[i] = (CornuNamedArray){ cornu_model_output_name(model, i), to[i] };
        if (!to[i].data) status = cornu_error_set(CORNU_ERR_MEMORY, "no memory for predictions");
    }
    if (!status) status = cornu_predictor_predict(predictor, x, to);
    if (!status && options->save) status = cornu_npz_write(options->save, named, outputs);
    for (int i = 0; i < outputs; i++) {
        if (!status && !options->save) print_output(model, i, to[i]);
        free(to[i].data);
    }
    return status;
}

static CornuStatus predict(const Options *options, const DataFlags *flags, CornuModel *model,
                           CornuDevice *device)
{
    Data        data;
    CornuStatus status = data_load(&data, options, flags, model, DATA_INPUTS);
    if (!status && data.set) fprintf(stderr, "%s\n", data.about);
    CornuPredictor *predictor = status ? NULL : cornu_predictor(model, .device = device);
    if (!status)
        status =
            predictor ? run(options, model, predictor, data_test_x(&data)) : cornu_error_status();
    cornu_predictor_free(predictor);
    data_free(&data);
    return status;
}

/* Pictures are arguments; flags that nothing would read. */
static CornuStatus check(const Options *options, const DataFlags *flags)
{
    if (options->argument_count == 1) return CORNU_OK;
    const char *what =
        data_given(options, flags) ? "pictures, and --x or --data: expected only one of them"
        : options->save || options->limit || flags->target || flags->encoding
            ? "--save, --limit, --target and --encoding are for --x and --data, not for "
              "pictures"
            : NULL;
    return what ? options_refuse("%s", what) : CORNU_OK;
}

int command_predict(int argc, char **argv)
{
    Options       options = { .device = "cpu" };
    DataFlags     flags = DATA_FLAGS;
    const char   *save = NULL;
    const Option  extra[] = {
         DATA_OPTIONS(flags),
         { "save", OPTION_TEXT, &save, "FILE.npz", "all predictions, by the outputs' names", 0, 0,
           NULL },
         OPTION_END,
    };
    const Program program = { .name = "cornu predict",
                              .extra = extra,
                              .arguments = "MODEL [IMAGE...]",
                              .least_arguments = 1,
                              .data = DATA_HELP,
                              .groups = OPTIONS_MACHINE | OPTIONS_DATA | OPTIONS_CLASSES,
                              .purpose =
                                  "Predicts for data and prints the first rows, or classifies "
                                  "pictures.\n\nPictures are files of PNG or JPEG." };
    const int     usage = options_parse(&options, &program, argc, argv);
    Subject       subject;
    int           failed = 0;
    if (usage >= 0) return usage;
    if (options.argument_count > 1 && !options.shards) options.shards = 1;   /* one by one */
    CornuStatus   status = subject_find(&subject, options.arguments[0]);
    CornuDevice  *device = status ? NULL : session_device(&options);
    options.save = save;   /* which is not a model, as session_device would check */
    if (!status) status = device ? check(&options, &flags) : cornu_error_status();
    if (!status && save) status = cornu_file_check(save);
    CornuModel   *model = status ? NULL : subject_model(&subject);
    if (!status && !model) status = cornu_error_status();
    if (!status && options.argument_count > 1)
        status = predict_pictures(&options, &flags, model, device, &failed);
    else if (!status)
        status = predict(&options, &flags, model, device);
    cornu_model_free(model);
    cornu_device_close(device);
    return session_end("cornu predict", status) | failed;
}
