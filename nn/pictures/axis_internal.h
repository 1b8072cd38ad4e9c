/* Axes of charts: the positions of ticks and values. */
#ifndef CORNU_NN_AXIS_INTERNAL_H
#define CORNU_NN_AXIS_INTERNAL_H

#include <stdbool.h>

/* Maps values from `least` to `most` to pixels from `from` to `to`. */
typedef struct {
    double from, to, least, most;
    double step;          /* between ticks; if logarithmic, 10: powers of ten, or 1: also 2 and 5
                             times those */
    bool   logarithmic;
} CornuAxis;

/* An axis of about `steps` steps between round numbers, the first at most `least`, the last at
 * least `most`. If the two are equal, it leaves room below them. */
CornuAxis cornu__axis_linear(double from, double to, double least, double most, double steps);

/* From the last 1, 2 or 5 times a power of ten that is at most `least` to the first that is at
 * least `most`; both must be positive. */
CornuAxis cornu__axis_logarithmic(double from, double to, double least, double most);

/* From exactly `least` to exactly `most`, with at most about `steps` ticks at integers. */
CornuAxis cornu__axis_whole(double from, double to, double least, double most, double steps);

/* The pixel of a value; the middle of an axis whose ends are equal. */
double cornu__axis_place(const CornuAxis *axis, double value);

/* The first tick, and the one after a tick; NaN after the last. */
double cornu__axis_first_tick(const CornuAxis *axis);
double cornu__axis_next_tick(const CornuAxis *axis, double tick);

/* The label of a tick. */
const char *cornu__axis_tick_text(char text[32], double tick);

#endif
