/* cornu train MODEL --x FILE --y FILE: trains it, prints what Keras prints, saves it. */
#include <string.h>

#include "../session.h"
#include "arrays.h"
#include "commands.h"
#include "objective.h"

typedef struct {
    const char *x, *y, *test_x, *test_y;
    double      validation_split;
} Data;

typedef struct { Loaded x, y, test_x, test_y; } Arrays;

static CornuStatus load(const Data *data, Arrays *to)
{
    if (!data->x || (!data->y && !strstr(data->x, ".npz")))
        return cornu_error_set(CORNU_ERR_ARGUMENT, "expected --x FILE and --y FILE, or one --x "
                               "FILE.npz with arrays x and y");
    if (arrays_load(&to->x, data->x, "x") || arrays_load(&to->y, data->y ? data->y : data->x, "y") ||
        arrays_load(&to->test_x, data->test_x, "x") || arrays_load(&to->test_y, data->test_y, "y"))
        return cornu_error_status();
    return !data->test_x == !data->test_y
               ? CORNU_OK : cornu_error_set(CORNU_ERR_ARGUMENT, "--test-x and --test-y go together");
}

static CornuStatus train(const Options *options, const Data *data, CornuModel *model,
                         const Arrays *arrays)
{
    CornuType type = cornu_symbol_type(cornu_model_input(model, 0));
    if (cornu_model_input_count(model) > 1)
        return cornu_error_set(CORNU_ERR_UNSUPPORTED, "the model has %d inputs; cornu train takes "
                               "one", cornu_model_input_count(model));
    if (arrays_fit(data->x, arrays->x.array, type)) return cornu_error_status();
    if (data->test_x && arrays_fit(data->test_x, arrays->test_x.array, type))
        return cornu_error_status();
    cornu_summary(model);
    if (session_prepare(options, model, NULL)) return cornu_error_status();
    CornuHistory *history = cornu_fit(
        model, .x = arrays->x.array, .y = arrays->y.array, .batch_size = options->batch_size,
        .epochs = options->epochs, .steps_per_epoch = options->steps_per_epoch,
        .validation_split = data->validation_split, .validation_x = arrays->test_x.array,
        .validation_y = arrays->test_y.array, .verbose = options->verbose,
        .callbacks = { SESSION_CALLBACKS(options) });
    if (!history) return session_stopped(options, model);
    CornuStatus status = session_save(options, model);
    if (!status) status = session_record(options, model, history, NULL, NULL);
    if (!status) status = session_finish(options);
    cornu_history_free(history);
    return status;
}

int command_train(int argc, char **argv)
{
    Options       options = { .device = "cpu", .epochs = 1, .batch_size = 32 };
    Data          data = { .x = NULL };
    Objective     objective = { .loss = NULL };
    Arrays        arrays = { .x = { .file = NULL } };
    const Option  extra[] = {
        { "x", OPTION_TEXT, &data.x, "FILE", "a .npy file, FILE.npz, or FILE.npz:NAME", 0, 0, NULL },
        { "y", OPTION_TEXT, &data.y, "FILE", "the labels, likewise", 0, 0, NULL },
        { "test-x", OPTION_TEXT, &data.test_x, "FILE", "data of the validation", 0, 0, NULL },
        { "test-y", OPTION_TEXT, &data.test_y, "FILE", "and their labels", 0, 0, NULL },
        { "validation-split", OPTION_NUMBER, &data.validation_split, "PART",
          "or this part of the data, its end", 0.0, 0.99, NULL },
        OBJECTIVE_OPTIONS(objective),
        { NULL, 0, NULL, NULL, NULL, 0, 0, NULL },
    };
    const Program program = { .name = "cornu train", .extra = extra, .arguments = "MODEL",
                              .least_arguments = 1,
                              .groups = OPTIONS_MACHINE | OPTIONS_TRAINING | OPTIONS_FIT |
                                        OPTIONS_SEED,
                              .purpose = "Trains a model on arrays." };
    const int     usage = options_parse(&options, &program, argc, argv);
    Subject       subject;
    if (usage >= 0) return usage;
    CornuStatus  status = subject_find(&subject, options.arguments[0]);
    if (!status) status = load(&data, &arrays);
    CornuDevice *device = status ? NULL : session_open(&options);
    CornuModel  *model = device ? objective_model(&objective, &options, &subject, device) : NULL;
    if (!status) status = model ? train(&options, &data, model, &arrays) : cornu_error_status();
    cornu_model_free(model);
    cornu_device_close(device);
    Loaded *all[] = { &arrays.x, &arrays.y, &arrays.test_x, &arrays.test_y };
    for (int i = 0; i < 4; i++) arrays_free(all[i]);
    return session_end("cornu train", status);
}
