/* cornu evaluate MODEL --x FILE --y FILE, or --data: loss and metrics. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "common/data.h"
#include "common/objective.h"
#include "common/session.h"

static CornuStatus evaluate(const Options *options, CornuModel *model, const Data *data)
{
    double              results[CORNU_MAX_METRICS * CORNU_MAX_MODEL_TENSORS];
    CornuEvaluateConfig config = { .model = model,
                                   .batch_size = objective_batch(options, model, 32),
                                   .results = results,
                                   .verbose = CORNU_SILENT };
    config.data = data->rows;
    if (!data->rows) {
        memcpy(config.xs, data_test_x(data), sizeof config.xs);
        memcpy(config.ys, data_test_y(data), sizeof config.ys);
    }
    printf("%s\n", data->about);
    if (cornu_model_metric_count(model) > (int)(sizeof results / sizeof *results))
        return cornu_error_set(CORNU_ERR_UNSUPPORTED, "%d metrics are too many",
                               cornu_model_metric_count(model));
    if (cornu_evaluate_from(&config)) return cornu_error_status();
    printf("On %lld rows%s%s:\n",
           (long long)(data->rows ? data_count(data) : config.xs[0].type.shape.extent[0]),
           data->test_x[0].data ? " for testing" : "", data->synthetic ? ", SYNTHETIC" : "");
    for (int i = 0; i < cornu_model_metric_count(model); i++)
        printf("%s: %.6g\n", cornu_model_metric_name(model, i), results[i]);
    return CORNU_OK;
}

int command_evaluate(int argc, char **argv)
{
    Options       options = { .device = "cpu" };
    DataFlags     flags = DATA_FLAGS;
    Objective     objective = { .loss = NULL };
    const Option  extra[] = {
         DATA_OPTIONS(flags),
         DATA_LABEL_OPTIONS(flags),
         { "batch-size", OPTION_WHOLE, &options.batch_size, "N",
           "rows at once; default 32, or what the model fixes", 1, 1e6, NULL },
         OBJECTIVE_LOSS_OPTIONS(objective),
         OPTION_END,
    };
    const Program program = { .name = "cornu evaluate", .extra = extra, .arguments = "MODEL",
                              .least_arguments = 1, .data = DATA_HELP,
                              .groups = OPTIONS_MACHINE | OPTIONS_DATA | OPTIONS_CLASSES,
                              .purpose = "Computes loss and metrics of a model on your data." };
    const int     usage = options_parse(&options, &program, argc, argv);
    Subject       subject;
    Data          data = { .set = NULL };
    if (usage >= 0) return usage;
    CornuStatus  status = subject_find(&subject, options.arguments[0]);
    CornuDevice *device = status ? NULL : session_device(&options);
    CornuModel  *model = device ? objective_model(&objective, &options, &subject, device) : NULL;
    if (!status)
        status =
            model ? data_load(&data, &options, &flags, model, DATA_LABELS) : cornu_error_status();
    if (!status)
        status = objective_logits(&objective, &options, model, device, data_test_x(&data));
    if (!status) status = evaluate(&options, model, &data);
    cornu_model_free(model);
    cornu_device_close(device);
    data_free(&data);
    return session_end("cornu evaluate", status);
}
