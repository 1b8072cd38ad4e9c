/*
 * TensorBoard: the logs of a training and its weights, for `tensorboard --logdir logs`.
 *
 *     cornu_fit(model, train, .epochs = 12, .validation_data = { .data = test },
 *               .callbacks = { cornu_tensorboard("logs", .histogram_freq = 1) });
 *
 * Writes event files below log_dir, in train/ and validation/, with Keras' tags, by step:
 *
 *     epoch_loss, epoch_accuracy, …, epoch_learning_rate     both; the epoch, counted from 0
 *     evaluation_loss_vs_iterations, …                       validation/; the optimizer's updates
 *     batch_loss, …                                          train/; batches since fit began, or
 *                                                            executions of several (callback.h)
 *     conv2d/kernel/histogram, conv2d/kernel/image           train/; the epoch. Weights bear their
 *                                                            paths, without the model's name
 *     keras                                                  train/; the layers, for the tab Graphs
 *
 * The file names hold time, host and process, as TensorBoard expects; each run adds its own files.
 * Source: keras/src/callbacks/tensorboard.py. Keras 3 omits values of epochs and evaluations
 * whose last batch update_freq skips; here, as in tf.keras, they are written.
 */
#ifndef CORNU_NN_TENSORBOARD_H
#define CORNU_NN_TENSORBOARD_H

#include "../model/callback.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char        unset;
    const char *log_dir;                /* default "logs" */
    int64_t     histogram_freq;         /* epochs between histograms of the weights; default none */
    bool        no_graph;               /* Keras' write_graph = False */
    bool        write_images;           /* weights as pictures, with their histograms */
    bool        write_steps_per_second; /* epoch_steps_per_second, batch_steps_per_second */
    int64_t     update_freq;            /* batches between batch_ values; 1 is Keras' "batch";
                                           default "epoch": none. fit waits for those batches */
    int64_t     profile_batch;          /* these two are refused (CORNU_ERR_UNSUPPORTED): trace.h */
    int64_t     embeddings_freq;        /* has a step's profile */
} CornuTensorboardConfig;

/* Makes log_dir. Fails at once if nothing can be written there. */
CornuCallback *cornu_tensorboard_from(const CornuTensorboardConfig *config);
#define cornu_tensorboard(...) \
    cornu_tensorboard_from(&(CornuTensorboardConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
