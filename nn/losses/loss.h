/*
 * Losses by Keras' names, arguments and formulas (keras/src/losses/losses.py), computed in f32.
 *
 *     cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY)
 *     cornu_compile(model, .loss = cornu_categorical_crossentropy(.label_smoothing = 0.1))
 *     cornu_compile(model, .loss = cornu_loss("mse"))
 *
 * A loss gives several values or one per row; the model's loss is their mean over the valid rows of
 * the batch. Sample weights (fit.h) multiply the values; the sum is divided by the number of
 * values, not by the sum of the weights. losses.h has each loss.
 */
#ifndef CORNU_NN_LOSS_H
#define CORNU_NN_LOSS_H

#include "../../tensor/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The reduction of the values: their weighted sum / their number (Keras' "sum_over_batch_size", and
 * "mean"), the weighted sum, or the weighted sum / the sum of the weights. */
typedef enum { CORNU_MEAN, CORNU_SUM, CORNU_MEAN_WITH_SAMPLE_WEIGHT } CornuReduction;

typedef struct CornuLoss        CornuLoss;
typedef struct CornuSerializableClass CornuSerializableClass;

/* A custom loss is a struct that begins with this one. */
struct CornuLoss {
    const char *name;
    /* y_true as stored (u8 labels are u8), y_pred f32; both (B, …). Returns f32 values whose axis 0
     * is B. NULL on failure, as ops. */
    CornuTensor *(*call)(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred);
    /* In place of it, for a loss that compares rows (across_rows): `valid`, bool (B), tells which
     * rows are. */
    CornuTensor *(*call_rows)(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred,
                              CornuTensor *valid);
    /* Whether each value counts: bool, of their shape. NULL: all do. */
    CornuTensor *(*mask)(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred);
    void (*free)(CornuLoss *self);  /* frees self, too; NULL: the caller's */
    CornuReduction reduction;
    /* The rows depend on each other. On a device with several shards `call` gets one shard's rows,
     * so its sums over rows pass through cornu_op_all_reduce; rows that are not valid are zeros. It
     * may return a scalar, the loss of the whole batch. */
    bool across_rows;
    bool positive_alone;   /* values of 0 do not count */
    bool valid_rows;       /* as CornuOwnStep's: `call` gets whole batches, without rows that fill
                              them up, on any number of shards of one process */
    /* For files: Keras' class, and the constructor's config; NULL for a custom loss. */
    const CornuSerializableClass *kind;
    const void             *config;
    const char             *record;  /* of a custom loss: JSON that files have of it, as Keras
                                        writes classes and functions; NULL: none */
    bool taken;   /* owned by a model: it cannot be passed again */
};

/* For an output without a loss, beside outputs that have one (compile.h). */
extern CornuLoss cornu_no_loss;
#define CORNU_NO_LOSS (&cornu_no_loss)

/* name: Keras' string for a loss with default arguments: the function names below, or "bce", "kld",
 * "mae", "mape", "mse", "msle", "logcosh", "kullback_leibler_divergence"; also "MSE" for "mse". */
CornuLoss *cornu_loss(const char *name);
/* Frees a loss that was never given to a model. NULL is ignored. */
void       cornu_loss_free(CornuLoss *loss);

/* For steps recorded by hand (graph.h): the loss of a batch, Keras' loss(y_true, y_pred,
 * sample_weight), in the graph of y_pred: y_true as stored, y_pred any float, both (B, …), the
 * weights (B) or (B, T), or NULL. f32, a scalar on one shard; on several its part of it. */
CornuTensor *cornu_loss_record(const CornuLoss *loss, CornuTensor *y_true, CornuTensor *y_pred,
                               CornuTensor *sample_weight);
/* Likewise the values that it reduces, f32 (B, …): keras.losses.mean_squared_error(y_true,
 * y_pred). */
CornuTensor *cornu_loss_record_values(const CornuLoss *loss, CornuTensor *y_true,
                                      CornuTensor *y_pred);

/* For losses without arguments of their own. */
typedef struct {
    char           unset;
    CornuReduction reduction;
    const char    *name;   /* default: the function's; copied */
} CornuLossConfig;

#ifdef __cplusplus
}
#endif

#include "losses.h"

#endif
