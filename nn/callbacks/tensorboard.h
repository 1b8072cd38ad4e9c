/*
 * TensorBoard: what a training measures, and its weights, for `tensorboard --logdir logs`.
 *
 *     cornu_fit(model, train, .epochs = 12, .validation_data = test,
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
 * The files' names hold time, host and process, as TensorBoard wants: they are logs, and a run adds
 * its own to those of others.
 * Source: keras/src/callbacks/tensorboard.py. Where Keras 3 loses values of epochs and evaluations
 * whose last batch update_freq leaves out, they are written here, as by tf.keras.
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
    int64_t     update_freq;            /* batches between two batch_ values, 1 is Keras' "batch";
                                           default "epoch": none. Those batches are waited for */
    int64_t     profile_batch;          /* these two are refused (CORNU_ERR_UNSUPPORTED): trace.h */
    int64_t     embeddings_freq;        /* has a step's profile */
} CornuTensorboardConfig;

/* log_dir is made. Fails at once if nothing can be written there. */
CornuCallback *cornu_tensorboard_from(const CornuTensorboardConfig *config);
#define cornu_tensorboard(...) \
    cornu_tensorboard_from(&(CornuTensorboardConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
