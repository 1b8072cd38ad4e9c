#include "step.h"

#include "../common/session.h"

CornuStatus explain_take_batch(ExplainStep *step, int64_t batch)
{
    step->x = cornu_reference_input_type(step->model, batch);
    step->y = cornu_reference_label_type(step->model, batch);
    step->executable = cornu_model_train_step(step->model, step->x, step->y);
    return step->executable ? CORNU_OK : cornu_error_status();
}

CornuStatus explain_make(ExplainStep *step, const CornuReferenceModel *reference,
                         CornuDevice *device, int64_t batch)
{
    step->model = reference->build(&(CornuNetworkConfig){ 0 });
    CornuStatus status = cornu_compile(
        step->model, .device = device, .loss = cornu_loss(reference->loss),
        .metrics = { CORNU_ACCURACY },
        .optimizer = cornu_reference_optimizer(reference, reference->epoch_samples / batch + 1,
                                               0.0));
    return status ? status : explain_take_batch(step, batch);
}

int explain_passes(const Options *options)
{
    static const int passes[] = { [CORNU_PRECISION_HIGHEST] = CORNU_TPU_HIGHEST,
                                  [CORNU_PRECISION_HIGH] = CORNU_TPU_HIGH,
                                  [CORNU_PRECISION_DEFAULT] = CORNU_TPU_DEFAULT };
    return passes[session_precision(options)];
}

CornuStatus explain_model(const Options *options, const CornuExecutable *executable,
                          const CornuTpuProfile *profile, const CornuTpuModel **to)
{
    *to = cornu_tpu_model(.executable = executable, .profile = profile,
                          .passes = explain_passes(options));
    return *to ? CORNU_OK : cornu_error_status();
}
