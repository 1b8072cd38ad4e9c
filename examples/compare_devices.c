/* Trains one network on several devices, in turns, and compares: measured, modelled, published. */
#include <stdio.h>

#include "race.h"
#include "session.h"

static CornuStatus compare(Race *race, const char *devices, const char *json, const char *chart)
{
    CornuStatus status = race_open(race, devices);
    if (!status) status = race_run(race);
    if (status) return status;
    race_print(race, stdout);
    if (json) status = race_write(race, json);
    if (!status && chart) status = race_draw(race, chart);
    return status;
}

int main(int argc, char **argv)
{
    enum { MOST_MODELS = 32 };
    const char *models[MOST_MODELS + 1] = { NULL };
    const char *devices = "cpu,tpu", *json = NULL, *chart = NULL;
    int         count;
    const CornuReferenceModel *all = cornu_reference_models(&count);
    for (int i = 0; i < count && i < MOST_MODELS; i++) models[i] = all[i].name;
    Options      options = { .model = "mnist_cnn", .epochs = 4 };
    const Option extra[] = {
        { "devices", OPTION_TEXT, &devices, "LIST", "devices to compare, separated by commas, such "
          "as cpu,tpu:v3-8,pjrt:cpu; a pjrt device has no options here", 0, 0, NULL },
        { "steps-per-epoch", OPTION_WHOLE, &options.steps_per_epoch, "N",
          "end each epoch after N steps", 1, 1e9, NULL },
        { "json", OPTION_TEXT, &json, "FILE", "write all results as JSON", 0, 0, NULL },
        { "chart", OPTION_TEXT, &chart, "FILE.png", "draw a chart", 0, 0, NULL },
        { NULL, 0, NULL, NULL, NULL, 0, 0, NULL },
    };
    const Program program = { .name = "compare_devices", .models = models,
                              .extra = extra,
                              .groups = OPTIONS_THREADS | OPTIONS_DATA | OPTIONS_TRAINING,
                              .purpose = "Trains a network on several devices in turns and "
                                         "compares their times." };
    const int usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);

    const CornuReferenceModel *reference = cornu_reference_model(options.model);
    CornuTrainTest *data = NULL;
    CornuStatus     status = session_begin(&options);
    if (!status && json) status = cornu_file_check(json);
    if (!status && chart) status = cornu_file_check(chart);
    if (!status && !(data = session_data(&options, reference->load))) status = cornu_error_status();
    Race race = { .reference = reference, .data = data, .epochs = options.epochs,
                  .batch_size = options.batch_size ? options.batch_size : reference->batch_size,
                  .steps = options.steps_per_epoch, .seed = options.seed,
                  .threads = options.threads, .learning_rate = options.learning_rate };
    if (!status) status = compare(&race, devices, json, chart);
    race_close(&race);
    cornu_train_test_free(data);
    return session_end("compare_devices", status);
}
