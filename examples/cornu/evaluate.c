/* cornu evaluate MODEL --x FILE --y FILE: loss and metrics. */
#include <stdio.h>

#include "common/session.h"
#include "common/arrays.h"
#include "commands.h"
#include "common/objective.h"

enum { MOST_RESULTS = 32 };

static CornuStatus evaluate(const Options *options, CornuModel *model, const char *what,
                            CornuArray x, CornuArray y)
{
    double results[MOST_RESULTS];
    if (cornu_model_metric_count(model) > MOST_RESULTS)
        return cornu_error_set(CORNU_ERR_UNSUPPORTED, "over %d metrics", MOST_RESULTS);
    if (arrays_fit(what, x, cornu_symbol_type(cornu_model_input(model, 0))) ||
        cornu_evaluate(model, .x = x, .y = y, .batch_size = options->batch_size, .results = results,
                       .verbose = CORNU_SILENT))
        return cornu_error_status();
    for (int i = 0; i < cornu_model_metric_count(model); i++)
        printf("%s: %.6g\n", cornu_model_metric_name(model, i), results[i]);
    return CORNU_OK;
}

int command_evaluate(int argc, char **argv)
{
    Options       options = { .device = "cpu", .batch_size = 32 };
    const char   *x_file = NULL, *y_file = NULL;
    Objective     objective = { .loss = NULL };
    const Option  extra[] = {
        { "x", OPTION_TEXT, &x_file, "FILE", "a .npy file, FILE.npz, or FILE.npz:NAME", 0, 0, NULL },
        { "y", OPTION_TEXT, &y_file, "FILE", "the labels, likewise", 0, 0, NULL },
        { "batch-size", OPTION_WHOLE, &options.batch_size, "N", "rows at once; 32 unless given", 1,
          1e9, NULL },
        OBJECTIVE_OPTIONS(objective),
        { NULL, 0, NULL, NULL, NULL, 0, 0, NULL },
    };
    const Program program = { .name = "cornu evaluate", .extra = extra, .arguments = "MODEL",
                              .least_arguments = 1, .groups = OPTIONS_MACHINE,
                              .purpose = "Computes loss and metrics of a model on arrays." };
    const int     usage = options_parse(&options, &program, argc, argv);
    Subject       subject;
    Loaded        x = { .file = NULL }, y = x;
    if (usage >= 0) return usage;
    CornuStatus status = subject_find(&subject, options.arguments[0]);
    if (!status && !x_file) status = cornu_error_set(CORNU_ERR_ARGUMENT, "expected --x FILE");
    if (!status) status = arrays_load(&x, x_file, "x");
    if (!status) status = arrays_load(&y, y_file ? y_file : x_file, "y");
    CornuDevice *device = status ? NULL : cornu_device_open(options.device,
                                                            .threads = (int)options.threads);
    CornuModel  *model = device ? objective_model(&objective, &options, &subject, device) : NULL;
    if (!status)
        status = model ? evaluate(&options, model, x_file, x.array, y.array) : cornu_error_status();
    cornu_model_free(model);
    cornu_device_close(device);
    arrays_free(&x), arrays_free(&y);
    return session_end("cornu evaluate", status);
}
