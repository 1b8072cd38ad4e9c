/*
 * Losses by Keras' names, arguments and formulas (keras/src/losses/losses.py), computed in f32.
 *
 *     cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY)
 *     cornu_compile(model, .loss = cornu_categorical_crossentropy(.label_smoothing = 0.1))
 *     cornu_compile(model, .loss = cornu_loss("mse"))
 *
 * A loss gives one value per element of its result; the model's loss is their mean over the
 * valid rows of the batch.
 */
#ifndef CORNU_NN_LOSS_H
#define CORNU_NN_LOSS_H

#include "../tensor/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuLoss CornuLoss;

/* A user's own loss is a struct that begins with this one. */
struct CornuLoss {
    const char *name;
    /* y_true as it is stored (u8 labels are u8), y_pred f32; both (B, …). Gives f32 values whose
     * axis 0 is B. NULL on failure, as ops do. */
    CornuTensor *(*call)(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred);
    void (*free)(CornuLoss *self);  /* frees self too; NULL: the caller's */
    bool   from_logits;             /* for ours */
    double label_smoothing;
};

/* name: Keras' string for a default of itself: the functions' names below, "mse". */
CornuLoss *cornu_loss(const char *name);
void       cornu_loss_free(CornuLoss *loss);

typedef struct {
    char   unset;
    bool   from_logits;       /* else y_pred are probabilities                       */
    double label_smoothing;   /* 0 to 1: y_true becomes y_true (1 - s) + s / classes */
} CornuCrossentropyConfig;

/* Labels (B, …) or (B, …, 1), whole numbers of any dtype, against y_pred (B, …, C):
 *   - log p[label], p = clip(y_pred / sum(y_pred), 1e-7, 1 - 1e-7), or softmax of logits.
 * A label outside [0, C) is CORNU_ERR_VALUE when the step runs. No label smoothing. */
CornuLoss *cornu_sparse_categorical_crossentropy_from(const CornuCrossentropyConfig *config);
#define cornu_sparse_categorical_crossentropy(...) \
    cornu_sparse_categorical_crossentropy_from(    \
        &(CornuCrossentropyConfig){ .unset = 0, __VA_ARGS__ })

/* y_true (B, …, C), as y_pred: - sum over C of y_true log p. */
CornuLoss *cornu_categorical_crossentropy_from(const CornuCrossentropyConfig *config);
#define cornu_categorical_crossentropy(...) \
    cornu_categorical_crossentropy_from(&(CornuCrossentropyConfig){ .unset = 0, __VA_ARGS__ })

/* y_true and y_pred (B, …, N): the mean over N of - y log p - (1 - y) log(1 - p), with
 * p = clip(y_pred, 1e-7, 1 - 1e-7), or sigmoid of logits. Smoothing: y (1 - s) + s / 2. */
CornuLoss *cornu_binary_crossentropy_from(const CornuCrossentropyConfig *config);
#define cornu_binary_crossentropy(...) \
    cornu_binary_crossentropy_from(&(CornuCrossentropyConfig){ .unset = 0, __VA_ARGS__ })

/* The mean over the last axis of (y_true - y_pred)^2. */
CornuLoss *cornu_mean_squared_error(void);

#define CORNU_SPARSE_CATEGORICAL_CROSSENTROPY cornu_loss("sparse_categorical_crossentropy")
#define CORNU_CATEGORICAL_CROSSENTROPY        cornu_loss("categorical_crossentropy")
#define CORNU_BINARY_CROSSENTROPY             cornu_loss("binary_crossentropy")
#define CORNU_MEAN_SQUARED_ERROR              cornu_loss("mean_squared_error")

#ifdef __cplusplus
}
#endif
#endif
