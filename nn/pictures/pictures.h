/*
 * Pictures of a training and of what came out of it, for files.
 *
 *     CornuPlot  *curves = cornu_picture_curves(history, "mnist_cnn");
 *     CornuStatus status = cornu_plot_save(curves, "curves.png");
 *     cornu_plot_free(curves);
 *
 * They take plain data, which stay the caller's, and give plots (plot.h), which are the caller's
 * too; NULL and a pending error if the data are not what is said here (CORNU_ERR_SHAPE,
 * CORNU_ERR_DTYPE, CORNU_ERR_VALUE, CORNU_ERR_ARGUMENT), are too many for a plot
 * (CORNU_ERR_ARGUMENT), or for want of memory. Names that are too long are shortened.
 */
#ifndef CORNU_NN_PICTURES_H
#define CORNU_NN_PICTURES_H

#include "../../device/type.h"
#include "../training/history.h"
#include "plot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What fit measured, epoch by epoch: a chart for each metric and one for the loss, one below the
 * other, with a line for the training data and one for the validation data where there are any. */
CornuPlot *cornu_picture_curves(const CornuHistory *history, const char *title);

typedef struct {
    char               unset;
    const char        *title;        /* what was predicted: "mnist_cnn, test images of mnist" */
    CornuArray         images;       /* u8 (N, H, W) or (N, H, W, 1): light on dark, N at least 1 */
    CornuArray         labels;       /* whole numbers (N,): true classes */
    CornuArray         predictions;  /* f32 (N, classes), none of them NaN */
    const char *const *names;        /* of the classes */
    int                across, down;  /* default 24 by 7 */
} CornuPicturePredictions;

/* Samples with what is predicted: those that are wrong first, then those that are right, each in
 * the order of the data. They are drawn dark on white, wrong ones with their class in red and the
 * true one below. The title counts all N. */
CornuPlot *cornu_picture_predictions_from(const CornuPicturePredictions *config);
#define cornu_picture_predictions(...) \
    cornu_picture_predictions_from(&(CornuPicturePredictions){ .unset = 0, __VA_ARGS__ })

/* The kernels of a convolution, f32 (H, W, C, F), side by side: red below zero, white, blue above,
 * with a scale. Each channel has a row; no more than the first 8 are drawn, and the title says
 * so. */
CornuPlot *cornu_picture_filters(CornuArray kernel, const char *title);

/* How often each class was taken for each: counts, i64 (classes, classes), a row for each true
 * class, a column for each predicted one, coloured by their part of the row. */
CornuPlot *cornu_picture_confusion(CornuArray counts, const char *const *names,
                                   const char *title);

#ifdef __cplusplus
}
#endif
#endif
