/* cornu train MODEL --x FILE --y FILE: prints what Keras prints, saves the model. */
#include "train.h"

#include <math.h>
#include <string.h>

#include "common/arrays.h"
#include "common/session.h"

typedef struct { Loaded x, y, test_x, test_y; } Arrays;

static CornuStatus load(const TrainFlags *flags, Arrays *to)
{
    const char *x = flags->x, *y = flags->y ? flags->y : flags->x;
    if (!x || (!flags->y && !strstr(x, ".npz")))
        return cornu_error_set(CORNU_ERR_ARGUMENT, "expected --x FILE and --y FILE, or one --x "
                               "FILE.npz with arrays x and y");
    if (arrays_load(&to->x, x, "x") || arrays_load(&to->y, y, "y") ||
        arrays_load(&to->test_x, flags->test_x, "x") || arrays_load(&to->test_y, flags->test_y, "y"))
        return cornu_error_status();
    return !flags->test_x == !flags->test_y
               ? CORNU_OK : cornu_error_set(CORNU_ERR_ARGUMENT, "--test-x and --test-y go together");
}

static CornuStatus train(const Options *options, const TrainFlags *flags, CornuModel *model,
                         const Arrays *arrays)
{
    CornuType type = cornu_symbol_type(cornu_model_input(model, 0));
    if (cornu_model_input_count(model) > 1)
        return cornu_error_set(CORNU_ERR_UNSUPPORTED, "the model has %d inputs; cornu train takes "
                               "one", cornu_model_input_count(model));
    if (arrays_fit(flags->x, arrays->x.array, type)) return cornu_error_status();
    if (flags->test_x && arrays_fit(flags->test_x, arrays->test_x.array, type))
        return cornu_error_status();
    cornu_summary(model);
    if (session_prepare(options, model, NULL)) return cornu_error_status();
    const double  split = flags->validation_split < 0.0 ? 0.0 : flags->validation_split;
    CornuHistory *history = cornu_fit(
        model, .x = arrays->x.array, .y = arrays->y.array, .batch_size = options->batch_size,
        .epochs = options->epochs, .steps_per_epoch = options->steps_per_epoch,
        .validation_split = split, .validation_x = arrays->test_x.array,
        .validation_y = arrays->test_y.array, .verbose = options->verbose,
        .callbacks = { SESSION_CALLBACKS(options) });
    if (!history) return session_stopped(options, model);
    const CornuTrainTest about = { .name = flags->x, .train_x.type = arrays->x.array.type,
                                   .test_x.type = flags->test_x ? arrays->test_x.array.type
                                                                : cornu_type(CORNU_U8, 0) };
    const double none[2] = { NAN, NAN };
    CornuStatus  status = session_save(options, model);
    if (!status) session_remarks(cornu_model_device(model), cornu_model_statistics(model));
    if (!status) status = session_record(options, model, history, &about, none);
    if (!status) status = session_finish(options);
    cornu_history_free(history);
    return status;
}

CornuStatus train_arrays(Options *options, const TrainFlags *flags, const Subject *subject)
{
    Arrays       arrays = { .x = { .file = NULL } };
    CornuStatus  status = load(flags, &arrays);
    if (!options->epochs) options->epochs = 1;
    if (!options->batch_size) options->batch_size = 32;
    CornuDevice *device = status ? NULL : session_open(options);
    CornuModel  *model = device ? objective_model(&flags->objective, options, subject, device) : NULL;
    if (!status) status = model ? train(options, flags, model, &arrays) : cornu_error_status();
    cornu_model_free(model);
    cornu_device_close(device);
    Loaded *all[] = { &arrays.x, &arrays.y, &arrays.test_x, &arrays.test_y };
    for (int i = 0; i < 4; i++) arrays_free(all[i]);
    return status;
}
