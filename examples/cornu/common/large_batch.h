/*
 * Optimizers for large batches, by the flags of a program:
 *
 *     LargeBatch   large = { 0 };
 *     const Option extra[] = { LARGE_BATCH_OPTIONS(large),
 *                              OPTION_END };
 *     ... options_parse ...
 *     CornuOptimizer *optimizer = large.recipe ? large_batch_optimizer(&large, &options, steps)
 *                                                 : ... the usual one ...
 */
#ifndef CORNU_EXAMPLES_LARGE_BATCH_H
#define CORNU_EXAMPLES_LARGE_BATCH_H

#include <cornu/cornu.h>

#include "options.h"

typedef struct {
    const char *recipe;            /* "sgd", "lars", "lamb"; NULL: the model's */
    double      warmup_epochs;     /* 0: a sixth of the epochs */
} LargeBatch;

extern const char *const large_batch_optimizers[];

#define LARGE_BATCH_OPTIONS(large)                                                            \
    { "large-batch", OPTION_CHOICE, &(large).recipe, "NAME",                                  \
      "optimizer for large batches, whose rate grows with --batch-size, rises at first and "  \
      "then decays; default the model's", 0, 0, large_batch_optimizers },                     \
    { "warmup-epochs", OPTION_NUMBER, &(large).warmup_epochs, "X",                            \
      "epochs in which the rate rises, with --large-batch; default a sixth of them", 0, 1e6, NULL }

/* The optimizer for steps of options->batch_size samples. Its rate rises linearly in
 * warmup_epochs and then decays to 0, with the square of the steps that are left. The highest one
 * is --learning-rate, else the program's, which is scaled from batches of 128: linearly, for LAMB
 * with the square root. Sources: You et al., arXiv 1708.03888, sections 5 and 6, and
 * arXiv 1904.00962, section 4.3. */
CornuOptimizer *large_batch_optimizer(const LargeBatch *large, const Options *options,
                                      int64_t steps_per_epoch);

/* CORNU_ERR_ARGUMENT for --warmup-epochs without --large-batch, or beyond the last epoch. */
CornuStatus large_batch_check(const LargeBatch *large, const Options *options);

#endif
