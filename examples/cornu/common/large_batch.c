#include "large_batch.h"

#include <math.h>
#include <string.h>

enum { BASE_BATCH = 128 };

const char *const large_batch_optimizers[] = { "sgd", "lars", "lamb", NULL };

/* The program's rates for batches of BASE_BATCH. */
static double highest_rate(const char *optimizer, int64_t batch_size)
{
    const double times = (double)batch_size / BASE_BATCH;
    if (!strcmp(optimizer, "lamb")) return 0.005 * sqrt(times);
    return cornu_scaled_learning_rate(0.01, BASE_BATCH, batch_size);
}

CornuStatus large_batch_check(const LargeBatch *large, const Options *options)
{
    if (large->warmup_epochs > 0.0 && !large->recipe)
        return options_refuse("--warmup-epochs %g: expected a --large-batch NAME "
                              "with it",
                              large->warmup_epochs);
    if (large->warmup_epochs < (double)options->epochs) return CORNU_OK;
    return options_refuse("--warmup-epochs %g: expected less than the %lld "
                          "epochs", large->warmup_epochs, (long long)options->epochs);
}

CornuOptimizer *large_batch_optimizer(const LargeBatch *large, const Options *options,
                                      int64_t steps_per_epoch)
{
    const double epochs = (double)options->epochs, steps = (double)steps_per_epoch;
    const double warmup = large->warmup_epochs > 0.0 ? large->warmup_epochs : epochs / 6.0;
    const double rate = options->learning_rate > 0.0
                            ? options->learning_rate
                            : highest_rate(large->recipe, options->batch_size);
    /* The rate at the end of the warm-up is the highest: the decay starts from a higher one. */
    const double left = 1.0 - warmup / epochs;
    CornuSchedule *decay = cornu_polynomial_decay(rate / (left * left), epochs * steps,
                                                  .end_learning_rate = (double)CORNU_ZERO,
                                                  .power = 2.0);
    CornuSchedule *schedule = cornu_warmup(decay, .warmup_steps = warmup * steps);
    if (!strcmp(large->recipe, "sgd"))
        return cornu_sgd(.schedule = schedule, .momentum = 0.9, .nesterov = true);
    if (!strcmp(large->recipe, "lamb")) return cornu_lamb(.schedule = schedule);
    /* Biases move by the rate itself, kernels by a fiftieth of their norm times it. */
    return cornu_lars(.schedule = schedule, .eeta = 0.02, .weight_decay = 1e-4,
                      .exclude_from_weight_decay = { "bias", "gamma", "beta" });
}
