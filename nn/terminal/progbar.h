/*
 * The progress bar, byte for byte as keras.utils.Progbar writes it.
 *
 *     469/469 ━━━━━━━━ 3s 6ms/step - accuracy: 0.9123 - loss: 0.2890
 *
 * A CornuBar is a state machine: it is told steps, values and the time, in seconds on any clock, and
 * prints. The callback that drives one through fit, evaluate and predict is in progbar_logger.h.
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
    double      interval;    /* seconds between two drawings                               */
    const char *unit;        /* "step"; not copied                                         */
    bool        averaged;    /* values are averaged over the steps, else shown as they are */
    bool        moving;      /* drawn over itself, else each drawing is a line of its own  */
    bool        utf8;        /* ━, else =                                                  */
    CornuStyling styling;    /* without colours the part to come is thinner: ─, else .     */
} CornuBarStyle;

/* Keras' choices for what this terminal can show: width 20, interval 0.05, unit "step". */
CornuBarStyle cornu_bar_style(CornuTerminal terminal);

/* A bar at step 0 that prints to `file`, which stays the caller's. */
CornuBar *cornu_bar_create(const CornuBarStyle *style, FILE *file, double now);
void      cornu_bar_free(CornuBar *bar);

/* Back to step 0 of a bar of `target` steps; what is allocated stays. */
void cornu_bar_restart(CornuBar *bar, int64_t target, double now);

/* Whether an update that does not end the bar would draw: logs are worth reading. */
bool cornu_bar_due(const CornuBar *bar, double now);

/* `current` steps are done. Values may be NULL. The last update ends the line; before it the
 * bar is drawn at most once per interval. Once the file cannot be written, as a pipe whose reader
 * has left (to a program that ignores SIGPIPE), nothing more is drawn. Allocates only for names it
 * has not seen. */
CornuStatus cornu_bar_update(CornuBar *bar, int64_t current, const CornuLogs *values, bool last,
                             double now);

#ifdef __cplusplus
}
#endif
#endif
