#include "explained.h"

#include <string.h>

static CornuStatus open_network(const CornuReferenceModel *reference, const Options *options,
                                CornuExplainConfig *config)
{
    const int64_t batch = options->batch_size ? options->batch_size : reference->batch_size;
    CornuModel   *model = config->model = reference->build(&(CornuNetworkConfig){ 0 });
    if (!model) return cornu_error_status();
    config->batch_size = batch;
    config->epoch_samples = reference->epoch_samples;
    config->target = reference->target;
    config->inputs[0] = cornu_reference_input_type(model, batch);
    if (config->loss) return CORNU_OK;
    config->labels[0] = cornu_reference_label_type(model, batch);
    if (config->predict) return CORNU_OK;
    return cornu_compile(model, .loss = cornu_loss(reference->loss), .metrics = { CORNU_ACCURACY },
                         .optimizer = cornu_reference_optimizer(
                             reference, reference->epoch_samples / batch + 1, 0.0));
}

static bool keeps_objective(const char *name)
{
    const char *suffix = strrchr(name, '.');
    return suffix && (!strcmp(suffix, ".keras") || !strcmp(suffix, ".h5") ||
                      !strcmp(suffix, ".hdf5"));
}

CornuStatus explained_open(const Subject *subject, const Options *options,
                           CornuExplainConfig *config)
{
    const char *slash = strrchr(subject->name, '/');
    config->name = slash ? slash + 1 : subject->name;
    config->batch_size = options->batch_size;
    if (subject->reference) return open_network(subject->reference, options, config);
    if (keeps_objective(subject->name) && !config->loss && !config->predict)
        config->model = cornu_model_load_compiled(subject->name, NULL);
    if (!config->model) config->model = subject_model(subject);   /* it was not compiled */
    return config->model ? CORNU_OK : cornu_error_status();
}
