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
 * With profile_batch also plugins/profile/TIME/HOST.xplane.pb, which the plugin XProf opens: this
 * machine's threads as measured, and of a device that emulates a TPU a device as modelled, with
 * steps, instructions and units. It has what cornu_trace (training/trace.h) has, of which there can
 * be only one in a training.
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
    int64_t     profile_batch;          /* the batch that is profiled, from 1; default none. Of
                                           several processes rank 0's own work alone */
    int64_t     profile_until;          /* the last one, if several are: at most 100; default
                                           profile_batch. Keras' profile_batch = (first, last) */
    int64_t     embeddings_freq;        /* refused: CORNU_ERR_UNSUPPORTED */
} CornuTensorboardConfig;

/* Makes log_dir. Fails at once if nothing can be written there. */
CornuCallback *cornu_tensorboard_from(const CornuTensorboardConfig *config);
#define cornu_tensorboard(...) \
    cornu_tensorboard_from(&(CornuTensorboardConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
