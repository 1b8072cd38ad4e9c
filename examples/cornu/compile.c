/* cornu compile MODEL -o digits.c: a model as C source, which needs no library. */
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "common/objective.h"
#include "common/refuse.h"
#include "common/session.h"

typedef struct {
    const char *output, *name, *weights;
    bool        train, int8;
    int64_t     rows, extent;
} Settings;

/* -o, as compilers have it, is --output. */
static void rename_output(int argc, char **argv)
{
    static char output[] = "--output";
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "-o")) argv[i] = output;
}

/* A .tflite file that is quantized in whole, in its integers. */
static CornuStatus compile_int8(const Settings *settings, const char *path)
{
    if (settings->train)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "--int8 with --train: models of 8 bits are not "
                                                   "trained");
    if (settings->weights)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "--int8 with --weights: constants of 8 bits are "
                                                   "in the .c file");
    CornuInt8Model *model = cornu_int8_load(path);
    if (!model) return cornu_error_status();
    const CornuStatus status = cornu_int8_compile_to_c(model, settings->output, settings->name);
    cornu_int8_free(model);
    return status;
}

/* Weights that would replace the model they are of. */
static CornuStatus spare_model(const char *weights, const char *model)
{
    struct stat one, other;
    if (!weights || stat(weights, &one) || stat(model, &other) || one.st_dev != other.st_dev ||
        one.st_ino != other.st_ino)
        return CORNU_OK;
    return options_refuse("--weights %s: it is the model's file, which would be lost; expected "
                          "another one", weights);
}

static CornuStatus compile(const Settings *settings, const Objective *objective,
                           const Options *options)
{
    Subject     subject;
    if (settings->int8) return compile_int8(settings, options->arguments[0]);
    CornuStatus status = spare_model(settings->weights, options->arguments[0]);
    if (!status) status = subject_find(&subject, options->arguments[0]);
    if (status) return status;
    CornuModel *model = settings->train ? objective_model(objective, options, &subject, NULL)
                                        : subject_model(&subject);
    if (!model) return cornu_error_status();
    status = cornu_compile_to_c(model, settings->output, settings->name, settings->train,
                                .batch_size = options->batch_size, .rows = settings->rows,
                                .extent = settings->extent, .weights = settings->weights);
    cornu_model_free(model);
    return status;
}

int command_compile(int argc, char **argv)
{
    Options       options = { .device = "cpu" };
    Settings      settings = { .output = "model.c" };
    Objective     objective = { 0 };
    const Option  extra[] = {
        { "output", OPTION_TEXT, &settings.output, "FILE.c",
          "where to write it, or -o; the header FILE.h lies beside it", 0, 0, NULL },
        { "name", OPTION_TEXT, &settings.name, "NAME",
          "what the names in it begin with; default that of the file", 0, 0, NULL },
        { "weights", OPTION_TEXT, &settings.weights, "FILE",
          "the weights into a file of their own: compilers need 50 times the memory of constants",
          0, 0, NULL },
        { "train", OPTION_SWITCH, &settings.train, "", "with a step of training", 0, 0, NULL },
        { "int8", OPTION_SWITCH, &settings.int8, "",
          "of a .tflite file that cornu quantize has written: in its integers", 0, 0, NULL },
        { "batch-size", OPTION_WHOLE, &options.batch_size, "N",
          "rows of a step of training; 32 unless given", 1, 1e6, NULL },
        { "learning-rate", OPTION_NUMBER, &options.learning_rate, "RATE",
          "of --optimizer; default its own", 0, 1e9, NULL },
        { "rows", OPTION_WHOLE, &settings.rows, "N", "of a prediction; 1 unless given", 1, 1e6,
          NULL },
        { "extent", OPTION_WHOLE, &settings.extent, "N",
          "of axes that the model leaves open, as the length of texts", 1, 1e6, NULL },
        OBJECTIVE_OPTIONS(objective),
        OPTION_END,
    };
    const Program program = { .name = "cornu compile",
                              .extra = extra,
                              .arguments = "MODEL",
                              .least_arguments = 1,
                              .purpose = "Writes a model as C source: a .c file and its header." };
    rename_output(argc, argv);
    const int usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;
    return session_report("cornu compile", compile(&settings, &objective, &options));
}
