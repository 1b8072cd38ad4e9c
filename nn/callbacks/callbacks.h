/*
 * The built-in callbacks, with Keras' names, arguments and messages (keras/src/callbacks).
 *
 *     cornu_fit(model, train, .epochs = 50, .validation_data = { .data = test }, .callbacks = {
 *         cornu_early_stopping(.patience = 3, .restore_best_weights = true),
 *         cornu_reduce_lr_on_plateau(.factor = 0.5, .patience = 2, .verbose = 1),
 *         cornu_csv_logger("training.csv"),
 *     });
 *
 * ModelCheckpoint is in checkpoint.h, TensorBoard in tensorboard.h, the bar in progbar_logger.h.
 * fit takes callbacks and frees them. Strings are copied. Constructors return NULL with a pending
 * error.
 *
 * Of several processes (device/processes) all give fit the same callbacks, and what these decide is
 * the same on all, as the logs are. Rank 0 alone prints and writes; if it cannot write, fit fails
 * on all with its message. Constructors meet no other process: one that fails on rank 0 leaves it
 * to the program to end the others (cornu_processes_leave).
 *
 * A monitored log that no epoch can have ends the training with CORNU_ERR_ARGUMENT after the first
 * epoch, where Keras only warns; epochs without validation (validation_freq) are skipped. Values
 * are compared in f32, as in Keras.
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
    int              verbose;              /* 1: prints when it stops or restores weights */
    CornuMonitorMode mode;
    bool             has_baseline;         /* whether baseline is set */
    double           baseline;             /* only a better value than this is an improvement */
    bool             restore_best_weights; /* at the end the weights become those of the best epoch,
                                              kept on the host; also without an early stop */
    int64_t          start_from_epoch;     /* epochs before this index are ignored */
    FILE            *file;                 /* for verbose; default stdout */
} CornuEarlyStoppingConfig;

CornuCallback *cornu_early_stopping_from(const CornuEarlyStoppingConfig *config);
#define cornu_early_stopping(...) \
    cornu_early_stopping_from(&(CornuEarlyStoppingConfig){ .unset = 0, __VA_ARGS__ })

/* The rate for an epoch, counted from 0, from the previous rate. */
typedef double CornuEpochRate(void *context, int64_t epoch, double learning_rate);

/* Sets the learning rate at the start of each epoch, and adds learning_rate to the epoch's logs. An
 * optimizer with a schedule refuses (CORNU_ERR_UNSUPPORTED). */
typedef struct {
    char            unset;
    CornuEpochRate *schedule;              /* required */
    int             verbose;               /* 1: prints each rate */
    void           *context;               /* for schedule */
    FILE           *file;                  /* for verbose; default stdout */
} CornuLearningRateSchedulerConfig;

CornuCallback *cornu_learning_rate_scheduler_from(const CornuLearningRateSchedulerConfig *config);
#define cornu_learning_rate_scheduler(...) \
    cornu_learning_rate_scheduler_from(    \
        &(CornuLearningRateSchedulerConfig){ .unset = 0, __VA_ARGS__ })

/* Multiplies the learning rate by `factor` when the monitored log has not improved for `patience`
 * epochs. Adds learning_rate, that of the epoch, to its logs. An optimizer with a schedule refuses
 * (CORNU_ERR_UNSUPPORTED). */
typedef struct {
    char             unset;
    const char      *monitor;              /* default val_loss */
    double           factor;               /* default 0.1, or CORNU_ZERO; below 1 */
    int64_t          patience;             /* epochs; default 10; CORNU_ZERO is as 1 */
    int              verbose;              /* 1: prints each reduction */
    CornuMonitorMode mode;
    double           min_delta;            /* default 1e-4, or CORNU_ZERO */
    int64_t          cooldown;             /* epochs after a reduction that do not count */
    double           min_lr;               /* the lowest rate */
    FILE            *file;                 /* for verbose; default stdout */
} CornuReduceLrOnPlateauConfig;

CornuCallback *cornu_reduce_lr_on_plateau_from(const CornuReduceLrOnPlateauConfig *config);
#define cornu_reduce_lr_on_plateau(...) \
    cornu_reduce_lr_on_plateau_from(&(CornuReduceLrOnPlateauConfig){ .unset = 0, __VA_ARGS__ })

/* Writes a line for each epoch: its index, and its logs sorted by name, with numbers as Python
 * prints them. The columns are those of the first epoch and, if it was not validated, their val_
 * counterparts; NA stands for a missing value. Lines end with CR LF, as in Python's csv. Logs that
 * callbacks add are included if those callbacks come before this one. */
typedef struct {
    char        unset;
    const char *filename;                  /* required */
    const char *separator;                 /* one character; default "," */
    bool        append;                    /* to an existing file, which is otherwise replaced */
} CornuCsvLoggerConfig;

CornuCallback *cornu_csv_logger_from(const CornuCsvLoggerConfig *config);
#define cornu_csv_logger(...) \
    cornu_csv_logger_from(&(CornuCsvLoggerConfig){ .unset = 0, __VA_ARGS__ })

/* Ends the training after a batch whose loss is not finite, without the error of fit: it returns
 * the history, with that loss. Reads the loss after every batch, which waits for it. */
typedef struct {
    char  unset;
    bool  raise_error;                     /* fail with CORNU_ERR_VALUE instead */
    FILE *file;                            /* for messages; default stdout */
} CornuTerminateOnNanConfig;

CornuCallback *cornu_terminate_on_nan_from(const CornuTerminateOnNanConfig *config);
#define cornu_terminate_on_nan(...) \
    cornu_terminate_on_nan_from(&(CornuTerminateOnNanConfig){ .unset = 0, __VA_ARGS__ })

/* A callback made of functions, each the hook of its name in CornuCallback; the first six are
 * Keras', in Keras' order. Without any it does nothing, which serves as an optional callback.
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

/* The context of a callback made by cornu_lambda_callback. */
void *cornu_lambda_context(const CornuCallback *lambda);

/* Evaluates and predicts with the weights' moving averages, which an optimizer with .use_ema keeps
 * (CORNU_ERR_ARGUMENT without it); training continues with the weights. Before the first step there
 * are not averages, and the weights are used. In Keras 3.15 predict leaves the averages in the
 * model; here the weights return. */
typedef struct {
    char unset;
    bool swap_on_epoch;                    /* keep the averages in the model from the end of an
                                              epoch to the start of the next: ModelCheckpoint after
                                              this callback saves them. A callback that stops the
                                              training comes before it */
} CornuSwapEmaWeightsConfig;

CornuCallback *cornu_swap_ema_weights_from(const CornuSwapEmaWeightsConfig *config);
#define cornu_swap_ema_weights(...) \
    cornu_swap_ema_weights_from(&(CornuSwapEmaWeightsConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
