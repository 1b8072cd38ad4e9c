/*
 * The progress bar of fit, evaluate and predict, byte for byte as Keras' ProgbarLogger writes it.
 *
 *     Epoch 1/12
 *     469/469 ━━━━━━━━ 3s 6ms/step - accuracy: 0.9123 - loss: 0.2890
 *
 * Source: keras/src/callbacks/progbar_logger.py.
 */
#ifndef CORNU_NN_PROGBAR_LOGGER_H
#define CORNU_NN_PROGBAR_LOGGER_H

#include "../model/callback.h"
#include "../terminal/progbar.h"

#ifdef __cplusplus
extern "C" {
#endif

/* After the first epoch of a fit whose steps waited for batches for a tenth of the time, and a
 * second at least, a further line says so, and which stages of the data set take how long.
 *
 * params.verbose is 0, 1 or 2; anything else is "auto", 1 on a terminal and 2 elsewhere, so that a
 * log file gets one line per epoch. Batch logs are requested only when they will be drawn. Of
 * several processes rank 0 alone prints. */
typedef struct {
    char     unset;
    FILE    *file;                 /* default stdout */
    const CornuBarStyle *style;    /* default by the capabilities of the file; copied */
    double (*clock)(void);         /* seconds; default the monotonic clock */
} CornuProgbarConfig;

CornuCallback *cornu_progbar_from(const CornuProgbarConfig *config);
#define cornu_progbar(...) cornu_progbar_from(&(CornuProgbarConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
