/* cornu predict MODEL: for --x FILE, predictions as a .npz file, or the first rows printed; for
 * pictures, their classes. */
#include <stdio.h>
#include <stdlib.h>

#include "common/session.h"
#include "common/arrays.h"
#include "commands.h"
#include "predict.h"
#include "common/subject.h"

enum { PRINTED = 10, MOST_INPUTS = 16 };

/* The values of a row, at most ten of them. */
static void print_row(const float *values, int64_t count)
{
    for (int64_t i = 0; i < count && i < PRINTED; i++)
        printf("%s%.6g", i ? "\t" : "", (double)values[i]);
    puts(count > PRINTED ? "\t..." : "");
}

static CornuStatus give(const Options *options, CornuModel *model, int output, CornuArray values)
{
    const CornuNamedArray named = { cornu_model_output_name(model, output), values };
    const int64_t rows = values.type.shape.extent[0];
    const int64_t width = rows ? cornu_type_count(values.type) / rows : 0;
    if (options->save) return CORNU_OK;
    if (cornu_model_output_count(model) > 1) printf("%s\n", named.name);
    for (int64_t i = 0; i < rows && i < PRINTED; i++)
        print_row((const float *)values.data + i * width, width);
    if (rows > PRINTED) printf("... %lld rows; --save FILE.npz writes all\n", (long long)rows);
    return CORNU_OK;
}

static CornuStatus predict(const Options *options, CornuModel *model, CornuPredictor *predictor,
                           const Loaded *x)
{
    const int       outputs = cornu_model_output_count(model);
    CornuArray      in[MOST_INPUTS], to[MOST_INPUTS] = { { .data = NULL } };
    CornuNamedArray named[MOST_INPUTS];
    CornuType       types[MOST_INPUTS];
    for (int i = 0; i < cornu_model_input_count(model); i++) in[i] = x[i].array;
    CornuStatus status = cornu_predictor_output_types(predictor, in, types);
    for (int i = 0; i < outputs && !status; i++) {
        to[i] = cornu_array_from(malloc(cornu_type_bytes(types[i]) + 1), types[i]);
        named[i] = (CornuNamedArray){ cornu_model_output_name(model, i), to[i] };
        if (!to[i].data) status = cornu_error_set(CORNU_ERR_MEMORY, "no memory for predictions");
    }
    if (!status) status = cornu_predictor_predict(predictor, in, to);
    if (!status && options->save) status = cornu_npz_write(options->save, named, outputs);
    for (int i = 0; i < outputs; i++) {
        if (!status) status = give(options, model, i, to[i]);
        free(to[i].data);
    }
    return status;
}

/* --x for each input, in the model's order. */
static CornuStatus load(CornuModel *model, const OptionTexts *given, Loaded *x)
{
    const int inputs = cornu_model_input_count(model);
    if (given->count != inputs)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "expected --x FILE for its input %s, and so for "
                               "each of %d; %d given", cornu_model_input_name(model, 0), inputs,
                               given->count);
    for (int i = 0; i < inputs; i++) {
        const char *name = cornu_model_input_name(model, i);
        if (arrays_load(&x[i], given->text[i], inputs == 1 ? "x" : name)) return cornu_error_status();
        if (arrays_fit(given->text[i], x[i].array, cornu_symbol_type(cornu_model_input(model, i))))
            return cornu_error_status();
    }
    return CORNU_OK;
}

int command_predict(int argc, char **argv)
{
    Options       options = { .device = "cpu" };
    OptionTexts   given = { .count = 0 };
    const Option  extra[] = {
        { "x", OPTION_TEXTS, &given, "FILE", "a .npy file, or FILE.npz:NAME; once for each input", 0,
          0, NULL },
        { "save", OPTION_TEXT, &options.save, "FILE.npz", "all predictions, by the outputs' names", 0,
          0, NULL },
        { NULL, 0, NULL, NULL, NULL, 0, 0, NULL },
    };
    const Program program = { .name = "cornu predict", .extra = extra, .arguments = "MODEL [IMAGE...]",
                              .least_arguments = 1, .groups = OPTIONS_MACHINE,
                              .purpose = "Predicts for arrays, and prints the first rows; or "
                                         "classifies pictures (PNG or JPEG)." };
    const int     usage = options_parse(&options, &program, argc, argv);
    Subject       subject;
    Loaded        x[MOST_INPUTS] = { { .file = NULL } };
    if (usage >= 0) return usage;
    if (options.argument_count > 1) return predict_pictures(&options, "cornu predict");
    CornuStatus     status = subject_find(&subject, options.arguments[0]);
    CornuDevice    *device = status ? NULL : cornu_device_open(options.device,
                                                               .threads = (int)options.threads);
    CornuModel     *model = device ? subject_model(&subject) : NULL;
    CornuPredictor *predictor = NULL;
    if (!status && !model) status = cornu_error_status();
    if (!status && cornu_model_input_count(model) > MOST_INPUTS)
        status = cornu_error_set(CORNU_ERR_UNSUPPORTED, "%s has over %d inputs", subject.name,
                                 MOST_INPUTS);
    if (!status) status = load(model, &given, x);
    if (!status) predictor = cornu_predictor(model, .device = device);
    if (!status) status = predictor ? predict(&options, model, predictor, x) : cornu_error_status();
    cornu_predictor_free(predictor);
    for (int i = 0; i < MOST_INPUTS; i++) arrays_free(&x[i]);
    cornu_model_free(model);
    cornu_device_close(device);
    return session_report("cornu predict", status);
}
