/* cornu train NAME, for a network of digits or garments: compile, augment, fit, evaluate. */
#include "train.h"

#include "common/mesh_flags.h"
#include "common/session.h"

static bool is_augmented(const TrainFlags *flags) { return flags->shift || flags->flip; }

/* The part of the training data on which it is validated, in place of the test data. Images that
 * are augmented come one after the other, of which no part is held out. */
static double held_out(const TrainFlags *flags, const CornuReferenceModel *reference)
{
    return flags->validation_split >= 0.0 ? flags->validation_split
           : is_augmented(flags)          ? 0.0 : reference->validation_split;
}

static CornuOptimizer *optimizer(const Options *options, const TrainFlags *flags,
                                 const CornuReferenceModel *reference, int64_t steps)
{
    if (flags->large.recipe) return large_batch_optimizer(&flags->large, options, steps);
    if (!flags->objective.optimizer)
        return cornu_reference_optimizer(reference, steps, options->learning_rate);
    return objective_optimizer(&flags->objective, options);
}

static CornuStatus compile(const Options *options, const TrainFlags *flags,
                           const CornuReferenceModel *reference, CornuModel *model,
                           const CornuTrainTest *data, CornuDevice *device)
{
    const double  split = held_out(flags, reference);
    const int64_t samples = data->train_x.type.shape.extent[0];
    const int64_t steps = session_steps(options, samples - (int64_t)(split * (double)samples));
    Objective     objective = flags->objective;
    const int64_t updates = train_updates(flags, steps);
    if (!objective.loss) objective.loss = reference->loss;
    if (!objective.metrics) objective.metrics = "accuracy";
    return objective_compile(&objective, options, model,
                             optimizer(options, flags, reference, updates), device);
}

static CornuHistory *fit(const Options *options, const TrainFlags *flags,
                         const CornuReferenceModel *reference, CornuModel *model,
                         CornuTrainTest *data)
{
    const double split = held_out(flags, reference);
    CornuArray   x = cornu_reference_input(model, data->train_x), y = data->train_y;
    CornuData    validation = { .x = cornu_reference_input(model, data->test_x),
                                .y = data->test_y };
    if (split > 0.0) validation = (CornuData){ .data = NULL };
    CornuDataset *augmented = NULL;
    if (is_augmented(flags)) {
        augmented = cornu_dataset_augment(cornu_train_test_take_train(data), .shift = flags->shift,
                                          .flip = flags->flip, .seed = (uint64_t)options->seed);
        if (!augmented) return NULL;
        x.data = y.data = NULL;
    }
    CornuHistory *history = cornu_fit(
        model, .x = x, .y = y, .data = augmented, .batch_size = options->batch_size,
        .epochs = options->epochs, .steps_per_epoch = options->steps_per_epoch,
        .validation_split = split, .validation_data = validation,
        .verbose = options->verbose, .callbacks = { SESSION_CALLBACKS(options) });
    cornu_dataset_free(augmented);
    return history;
}

CornuStatus train_images(Options *options, const TrainFlags *flags,
                         const CornuReferenceModel *reference)
{
    if (!options->epochs) options->epochs = reference->epochs;
    if (!options->batch_size) options->batch_size = reference->batch_size;
    CornuDevice    *device = large_batch_check(&flags->large, options) ? NULL
                                                                       : session_open(options);
    CornuTrainTest *data = device ? session_data(options, reference->load) : NULL;
    /* models/NAME.c says how the network is made. */
    CornuModel     *model = data ? reference->build(&(CornuNetworkConfig){ 0 }) : NULL;
    CornuStatus     status = model && !train_check_remat(flags, model) &&
                                     !mesh_lay_out(options, model, device)
                                 ? mesh_blame(options, compile(options, flags, reference, model,
                                                               data, device))
                                   : cornu_error_status();
    if (!status) status = cornu_summary(model);
    if (!status) status = session_prepare(options, model, data);
    if (data && !status)
        status =
            session_conclude(options, model, fit(options, flags, reference, model, data), data);
    cornu_model_free(model);
    cornu_train_test_free(data);
    cornu_device_close(device);
    return status;
}
