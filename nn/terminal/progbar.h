/*
 * The progress bar, byte for byte as keras.utils.Progbar writes it.
 *
 *     469/469 ━━━━━━━━ 3s 6ms/step - accuracy: 0.9123 - loss: 0.2890
 *
 * A CornuBar is given steps, values and the time, in seconds of any clock, and prints. The callback
 * that drives one through fit, evaluate and predict is in progbar_logger.h.
 * Source: keras/src/utils/progbar.py.
 */
#ifndef CORNU_NN_PROGBAR_H
#define CORNU_NN_PROGBAR_H

#include "../../device/status.h"
#include "../metrics/logs.h"
#include "terminal.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuBar CornuBar;

typedef struct {
    int64_t     target;      /* steps; -1 unknown                                          */
    int         width;       /* of the bar itself, in characters                           */
    int         verbose;     /* 0 silent, 1 a bar that moves, 2 one line at the end        */
    double      interval;    /* least seconds between two drawings                         */
    const char *unit;        /* "step"; not copied                                         */
    bool        averaged;    /* values are averaged over the steps, else shown as they are */
    bool        moving;      /* redrawn in place, else each drawing is a new line          */
    bool        utf8;        /* ━, else =                                                  */
    CornuStyling styling;    /* without colours the rest of the bar is thinner: ─, else .  */
} CornuBarStyle;

/* Keras' style for this terminal: width 20, interval 0.05, unit "step". */
CornuBarStyle cornu_bar_style(CornuTerminal terminal);

/* A bar at step 0 that prints to `file`, which stays the caller's. */
CornuBar *cornu_bar_create(const CornuBarStyle *style, FILE *file, double now);
/* Once, without ending its line; NULL is ignored. */
void      cornu_bar_free(CornuBar *bar);

/* Back to step 0 of a bar of `target` steps; keeps the memory. */
void cornu_bar_restart(CornuBar *bar, int64_t target, double now);

/* Whether an update other than the last would draw now, so that its logs are needed. */
bool cornu_bar_due(const CornuBar *bar, double now);

/* Reports that `current` steps are done. Values may be NULL. The last update ends the line; others
 * draw the bar at most once per interval. After a write error, as of a pipe without a reader (if
 * SIGPIPE is ignored), nothing more is drawn. Allocates only for new names. */
CornuStatus cornu_bar_update(CornuBar *bar, int64_t current, const CornuLogs *values, bool last,
                             double now);

#ifdef __cplusplus
}
#endif
#endif
