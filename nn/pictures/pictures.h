/*
 * Pictures of a training and its results, for files.
 *
 *     CornuPlot  *curves = cornu_picture_curves(history, "mnist_cnn");
 *     CornuStatus status = cornu_plot_save(curves, "curves.png");
 *     cornu_plot_free(curves);
 *
 * These take plain data, which stays the caller's, and return plots (plot.h), which the caller
 * frees. NULL and a pending error for data other than documented here (CORNU_ERR_SHAPE,
 * CORNU_ERR_DTYPE, CORNU_ERR_VALUE, CORNU_ERR_ARGUMENT), for more than fits into a plot
 * (CORNU_ERR_ARGUMENT), or out of memory. Long names are shortened.
 */
#ifndef CORNU_NN_PICTURES_H
#define CORNU_NN_PICTURES_H

#include "../../device/type.h"
#include "../training/history.h"
#include "plot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The logs of fit by epoch: a chart for each metric and one for the loss, one below the other, with
 * a line for the training data and, if there is any, one for the validation data; the last values
 * are written beside them. */
CornuPlot *cornu_picture_curves(const CornuHistory *history, const char *title);

typedef struct {
    char               unset;
    const char        *title;        /* "mnist_cnn, test images of mnist" */
    CornuArray         images;       /* u8 (N, H, W) or (N, H, W, 1): light on dark, or RGB images
                                        (N, H, W, 3); N at least 1 */
    CornuArray         labels;       /* whole numbers (N,): true classes */
    CornuArray         predictions;  /* f32 (N, classes), none of them NaN */
    const char *const *names;        /* of the classes */
    int                across, down;   /* default: as many as fit a page of A4, 12 by 10 where
                                          names are short */
    bool               dark_on_light;  /* such images of one channel, as photographs, are drawn as
                                          they are; others dark on white */
} CornuPicturePredictions;

/* Samples with their predictions: the wrong ones first, then the right ones, which have a fifth
 * of the rows at least, both in the order of the data. Below each are the predicted class, in red
 * if it is wrong, its probability, and then the true class. The line below the title counts all
 * N. */
CornuPlot *cornu_picture_predictions_from(const CornuPicturePredictions *config);
#define cornu_picture_predictions(...) \
    cornu_picture_predictions_from(&(CornuPicturePredictions){ .unset = 0, __VA_ARGS__ })

/* The kernels of a convolution, f32 (H, W, C, F), side by side: red below zero, white at zero, blue
 * above, with a scale. Each channel has a row; at most the first 8 are drawn, which the line below
 * the title says. Three channels are drawn together, as red, green and blue, and zero as grey. */
CornuPlot *cornu_picture_filters(CornuArray kernel, const char *title);

/* The confusion matrix: counts, i64 (classes, classes), a row for each true class and a column for
 * each predicted one, coloured by their share of the row: the diagonal in blue, up to 100 %, the
 * others in red, up to the largest of them, as the two scales say. */
CornuPlot *cornu_picture_confusion(CornuArray counts, const char *const *names,
                                   const char *title);

#ifdef __cplusplus
}
#endif
#endif
