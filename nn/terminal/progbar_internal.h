/* The state of a progress bar, for the callback that drives it. */
#ifndef CORNU_NN_PROGBAR_INTERNAL_H
#define CORNU_NN_PROGBAR_INTERNAL_H

#include "progbar.h"

typedef struct {
    char  *name;
    double sum, weight;
} CornuBarValue;

struct CornuBar {
    CornuBarStyle  style;
    FILE          *file;
    int64_t        seen;              /* steps at the last update */
    double         start, last_draw;
    double         first_step_end;    /* NAN until step 1 was reported */
    int            drawn_width;       /* characters of the last drawing */
    bool           unfinished;        /* its line has not ended */
    CornuBarValue *values;            /* in order of appearance; names survive a restart */
    int            value_count, name_count, value_space;
};

#endif
