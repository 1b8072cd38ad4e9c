/*
 * The report of a training as one page for a browser: a file that needs no network.
 *
 *     cornu_fit(model, train, .epochs = 12, .validation_data = { .data = test }, .callbacks = {
 *         cornu_report("report.html", .x = test_x, .y = test_y, .names = names, .classes = 10) });
 *
 * The page has what repeats the run; curves of all logs of fit by epoch, with the best epoch
 * marked, of the learning rate and of samples a second; the model's summary; the filters of the
 * first convolution of 1 or 3 channels; and, for a classifier with .x and .y, the confusion matrix,
 * whose cells open the samples in them, worst first, and the scores of each class
 * (metrics/report.h); the graph of layers; time, energy and price of the run, with what the model
 * of an emulated TPU says of it (device/tpu/model.h). Numbers say whether they are measured,
 * emulated, modelled or published.
 *
 * It is written after every epoch, whole or not at all: after a kill the file is that of the last
 * epoch that ended. The classes are predicted when the training ends; of more than 100 the 20 that
 * are confused most are shown. A model without classes, with .x, and labels that are no classes are
 * refused when the training begins (CORNU_ERR_SHAPE, CORNU_ERR_DTYPE, CORNU_ERR_VALUE). Of several
 * processes rank 0 writes.
 */
#ifndef CORNU_NN_PAGES_REPORT_H
#define CORNU_NN_PAGES_REPORT_H

#include "../../device/type.h"
#include "../model/callback.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char               unset;
    const char        *filename;  /* required */
    const char        *title;     /* default the model's name */
    const char        *command;   /* how the run was started; default: left out */
    const char        *data;      /* what it trains on, "mnist, 60000 images"; default: left out */
    /* Samples and their classes, for a model with one output of a number for each class; they stay
     * the caller's and outlive fit. Default: no matrix. */
    CornuArray         x;         /* (N, …), as cornu_predict takes them */
    CornuArray         y;         /* u8, i32 or i64, N class numbers */
    CornuArray         pictures;  /* how they look: (N, H, W), (N, H, W, 1) or (N, H, W, 3), u8, or
                                     f32, whose least value is black and whose greatest white;
                                     default x, if it is one of these. At most some 1.2 MB of them
                                     are in the page, the worst of each cell first */
    const char *const *names;     /* of the classes; default those of the model, else numbers */
    int                classes;   /* of names */
    double             price_per_hour;   /* of what the run occupies, for the page's cost; default
                                            0: none */
} CornuReportConfig;

/* NULL with a pending error: CORNU_ERR_ARGUMENT without a file name, with x without y, or for a
 * negative price;
 * CORNU_ERR_FILE if the file cannot be written, which is known at once. fit takes and frees it. */
CornuCallback *cornu_report_from(const CornuReportConfig *config);
#define cornu_report(...) \
    cornu_report_from(&(CornuReportConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
