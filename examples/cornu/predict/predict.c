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

/* The first rows; `all`: how many there are, 0 if these are all. */
static void print_output(const CornuModel *model, int output, CornuArray values, int64_t all)
{
    const int64_t rows = values.type.shape.rank ? values.type.shape.extent[0] : 1;
    const int64_t width = rows ? cornu_type_count(values.type) / rows : 0;
    if (cornu_model_output_count(model) > 1) printf("%s\n", cornu_model_output_name(model, output));
    for (int64_t i = 0; i < rows && i < PRINTED; i++)
        print_row((const float *)values.data + i * width, width);
    if (all < rows) all = rows;
    if (all > PRINTED) printf("... %lld rows; --save FILE.npz writes all\n", (long long)all);
}

/* Predictions of all outputs, whole; owned. */
typedef struct {
    CornuPredictor *predictor;
    int             inputs, outputs;
    int64_t         rows, wanted;     /* of the data, and those that are predicted */
    CornuArray      to[DATA_MOST];
} Predictions;

static CornuStatus make_space(Predictions *p, const CornuArray *x, int64_t rows)
{
    CornuType   types[DATA_MOST];
    CornuStatus status = cornu_predictor_output_types(p->predictor, x, types);
    for (int i = 0; i < p->outputs && !status; i++) {
        if (rows >= 0 && types[i].shape.rank) types[i].shape.extent[0] = rows;
        p->to[i] = cornu_array_from(malloc(cornu_type_bytes(types[i]) + 1), types[i]);
        if (!p->to[i].data) status = cornu_error_set(CORNU_ERR_MEMORY, "no memory for predictions");
    }
    return status;
}

/* Rows of a block, into those of the predictions. */
static CornuStatus predict_block(void *context, const CornuArray *x, int64_t first, bool *more)
{
    Predictions  *p = context;
    const int64_t rows = x[0].type.shape.extent[0];
    CornuArray    to[DATA_MOST];
    CornuStatus   status = first ? CORNU_OK : make_space(p, x, p->wanted);
    for (int i = 0; i < p->outputs && !status; i++) {
        CornuType type = p->to[i].type;
        type.shape.extent[0] = rows;
        to[i] = cornu_array_from((char *)p->to[i].data + (size_t)first * cornu_type_bytes(type) /
                                                             (size_t)rows, type);
    }
    if (!status) status = cornu_predictor_predict(p->predictor, x, to);
    *more = first + rows < p->wanted && cornu_predictor_cuts(p->predictor);
    return status;
}

/* By blocks; all rows at once where they depend on each other, which the first block shows. */
static CornuStatus predict_rows(Predictions *p, Data *data, CornuDataset *rows)
{
    const int64_t block = data_rows_block(rows) < p->wanted ? data_rows_block(rows) : p->wanted;
    CornuDataset *wanted = cornu_dataset_take(cornu_dataset_retain(rows), p->wanted);
    CornuStatus   status = wanted ? data_rows_each(wanted, block, predict_block, p)
                                  : cornu_error_status();
    cornu_dataset_free(wanted);
    if (status || cornu_predictor_cuts(p->predictor) || block == p->rows) return status;
    CornuArray all[2 * DATA_MOST];
    for (int i = 0; i < p->outputs; i++) free(p->to[i].data), p->to[i].data = NULL;
    status = data_rows_first(data, rows, p->inputs, p->rows, all, all + p->inputs);
    if (!status) status = make_space(p, all, -1);
    return status ? status : cornu_predictor_predict(p->predictor, all, p->to);
}

static CornuStatus run(const Options *options, CornuModel *model, Predictions *p, Data *data)
{
    CornuNamedArray named[DATA_MOST];
    CornuStatus     status = CORNU_OK;
    CornuDataset   *rows = cornu_model_is_function(model) ? NULL : data_rows(data);
    if (cornu_model_is_function(model)) {
        status = make_space(p, data->x, -1);
        if (!status) status = cornu_predictor_predict(p->predictor, data->x, p->to);
    } else if (!rows) {
        status = cornu_error_status();
    } else {
        p->rows = cornu_dataset_count(rows);
        p->wanted = options->save || p->rows < PRINTED ? p->rows : PRINTED;
        status = predict_rows(p, data, rows);
    }
    cornu_dataset_free(rows);
    for (int i = 0; i < p->outputs && !status; i++)
        named[i] = (CornuNamedArray){ cornu_model_output_name(model, i), p->to[i] };
    if (!status && options->save) status = cornu_npz_write(options->save, named, p->outputs);
    for (int i = 0; i < p->outputs; i++) {
        if (!status && !options->save) print_output(model, i, p->to[i], p->rows);
        free(p->to[i].data);
    }
    return status;
}

static CornuStatus predict(const Options *options, const DataFlags *flags, CornuModel *model,
                           CornuDevice *device)
{
    Data        data;
    Predictions predictions = { .inputs = cornu_model_input_count(model),
                                .outputs = cornu_model_output_count(model) };
    CornuStatus status = data_load(&data, options, flags, model, DATA_INPUTS);
    if (!status && data.set) fprintf(stderr, "%s\n", data.about);
    if (!status) {
        predictions.predictor = cornu_predictor(model, .device = device);
        status = predictions.predictor ? run(options, model, &predictions, &data)
                                       : cornu_error_status();
    }
    cornu_predictor_free(predictions.predictor);
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
