/*
 * The ready-made callbacks, by Keras' names, arguments and texts (keras/src/callbacks).
 *
 *     cornu_fit(model, train, .epochs = 50, .validation_data = test, .callbacks = {
 *         cornu_early_stopping(.patience = 3, .restore_best_weights = true),
 *         cornu_reduce_lr_on_plateau(.factor = 0.5, .patience = 2, .verbose = 1),
 *         cornu_csv_logger("training.csv"),
 *     });
 *
 * ModelCheckpoint is in checkpoint.h, TensorBoard in tensorboard.h, the bar in progbar_logger.h. fit
 * takes callbacks and frees them. Texts are copied. Constructors return NULL with a pending error.
 *
 * A monitored log that no epoch can have ends the training with CORNU_ERR_ARGUMENT after the first
 * one, where Keras warns and goes on; epochs that are not validated (validation_freq) are passed
 * over. Values are compared in f32, as Keras' are.
 */
#ifndef CORNU_NN_CALLBACKS_H
#define CORNU_NN_CALLBACKS_H

#include "../model/callback.h"
#include "../config/keywords.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ends the training when the monitored log has not improved by more than min_delta for `patience`
 * epochs. */
typedef struct {
    char             unset;
    const char      *monitor;              /* default val_loss */
    double           min_delta;
    int64_t          patience;             /* epochs */
    int              verbose;              /* 1: says that it stops, and what it restores */
    CornuMonitorMode mode;
    bool             has_baseline;         /* whether the next one counts */
    double           baseline;             /* only what is better than this counts as progress */
    bool             restore_best_weights; /* the weights become those of the best epoch, which
                                              are kept on the host; also without an early stop */
    int64_t          start_from_epoch;     /* epochs before this index are not looked at */
    FILE            *file;                 /* for verbose; default stdout */
} CornuEarlyStoppingConfig;

CornuCallback *cornu_early_stopping_from(const CornuEarlyStoppingConfig *config);
#define cornu_early_stopping(...) \
    cornu_early_stopping_from(&(CornuEarlyStoppingConfig){ .unset = 0, __VA_ARGS__ })

/* The rate for an epoch, counted from 0, from the one before it. */
typedef double CornuEpochRate(void *context, int64_t epoch, double learning_rate);

/* Sets the learning rate as each epoch begins, and adds learning_rate to the epoch's logs. An
 * optimizer that has a schedule of its own refuses (CORNU_ERR_UNSUPPORTED). */
typedef struct {
    char            unset;
    CornuEpochRate *schedule;              /* required */
    int             verbose;               /* 1: says each rate */
    void           *context;               /* for schedule */
    FILE           *file;                  /* for verbose; default stdout */
} CornuLearningRateSchedulerConfig;

CornuCallback *cornu_learning_rate_scheduler_from(const CornuLearningRateSchedulerConfig *config);
#define cornu_learning_rate_scheduler(...) \
    cornu_learning_rate_scheduler_from(    \
        &(CornuLearningRateSchedulerConfig){ .unset = 0, __VA_ARGS__ })

/* Multiplies the learning rate by `factor` when the monitored log has not improved for `patience`
 * epochs. Adds learning_rate, that of the epoch, to its logs. An optimizer that has a schedule of
 * its own refuses (CORNU_ERR_UNSUPPORTED). */
typedef struct {
    char             unset;
    const char      *monitor;              /* default val_loss */
    double           factor;               /* default 0.1, or CORNU_ZERO; below 1 */
    int64_t          patience;             /* epochs; default 10, or CORNU_ZERO, which is as 1 */
    int              verbose;              /* 1: says each reduction */
    CornuMonitorMode mode;
    double           min_delta;            /* default 1e-4, or CORNU_ZERO */
    int64_t          cooldown;             /* epochs after a reduction that do not count */
    double           min_lr;               /* the rate falls no lower */
    FILE            *file;                 /* for verbose; default stdout */
} CornuReduceLrOnPlateauConfig;

CornuCallback *cornu_reduce_lr_on_plateau_from(const CornuReduceLrOnPlateauConfig *config);
#define cornu_reduce_lr_on_plateau(...) \
    cornu_reduce_lr_on_plateau_from(&(CornuReduceLrOnPlateauConfig){ .unset = 0, __VA_ARGS__ })

/* Writes a line for each epoch: its index, and its logs sorted by name, numbers as Python shows
 * them. The columns are those of the first epoch and, unless it has val_ ones, as many again for
 * them; NA is what an epoch lacks. Lines end with CR LF, as Python's csv writes them. Logs that
 * callbacks add are there if those stand before it. */
typedef struct {
    char        unset;
    const char *filename;                  /* required */
    const char *separator;                 /* one character; default "," */
    bool        append;                    /* to what is there, else it is replaced */
} CornuCsvLoggerConfig;

CornuCallback *cornu_csv_logger_from(const CornuCsvLoggerConfig *config);
#define cornu_csv_logger(...) \
    cornu_csv_logger_from(&(CornuCsvLoggerConfig){ .unset = 0, __VA_ARGS__ })

/* Ends the training after the batch whose loss is not finite, instead of fit's own error: the
 * history, with that loss, is returned. Reads the loss after every batch, which waits for it. */
typedef struct {
    char  unset;
    bool  raise_error;                     /* fit fails at once, with CORNU_ERR_VALUE */
    FILE *file;                            /* for what it says; default stdout */
} CornuTerminateOnNanConfig;

CornuCallback *cornu_terminate_on_nan_from(const CornuTerminateOnNanConfig *config);
#define cornu_terminate_on_nan(...) \
    cornu_terminate_on_nan_from(&(CornuTerminateOnNanConfig){ .unset = 0, __VA_ARGS__ })

/* A callback made of functions, each like the hook of its name in CornuCallback; the first six are
 * Keras' in their order. Without any it does nothing, which may stand where one is optional.
 *
 *     static CornuStatus show(CornuCallback *self, CornuModel *model, int64_t epoch,
 *                             const CornuLogs *logs) { FILE *to = cornu_lambda_context(self); … }
 *     cornu_lambda_callback(.epoch_end = show, .context = stderr)
 */
typedef struct {
    char            unset;
    CornuIndexHook *epoch_begin, *epoch_end;
    CornuHook      *train_begin, *train_end;
    CornuIndexHook *train_batch_begin, *train_batch_end;
    CornuHook      *test_begin, *test_end;
    CornuIndexHook *test_batch_begin, *test_batch_end;
    CornuHook      *predict_begin, *predict_end;
    CornuIndexHook *predict_batch_begin, *predict_batch_end;
    void           *context;               /* stays the caller's */
} CornuLambdaCallbackConfig;

CornuCallback *cornu_lambda_callback_from(const CornuLambdaCallbackConfig *config);
#define cornu_lambda_callback(...) \
    cornu_lambda_callback_from(&(CornuLambdaCallbackConfig){ .unset = 0, __VA_ARGS__ })

/* Of a callback that cornu_lambda_callback made. */
void *cornu_lambda_context(const CornuCallback *lambda);

/* Evaluates and predicts with the weights' moving averages, which an optimizer with .use_ema keeps
 * (CORNU_ERR_ARGUMENT without); training goes on with the weights. Before the first step there are
 * no averages, and the weights stay.
 * In Keras 3.15 predict leaves the averages in the model; here the weights return. */
typedef struct {
    char unset;
    bool swap_on_epoch;                    /* the averages are in the model from the end of an
                                              epoch to the next one's begin: ModelCheckpoint behind
                                              this callback saves them. One that stops the training
                                              stands before it */
} CornuSwapEmaWeightsConfig;

CornuCallback *cornu_swap_ema_weights_from(const CornuSwapEmaWeightsConfig *config);
#define cornu_swap_ema_weights(...) \
    cornu_swap_ema_weights_from(&(CornuSwapEmaWeightsConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
