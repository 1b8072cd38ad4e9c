/* Axes of charts: which numbers have ticks, and where a value stands. */
#ifndef CORNU_NN_AXIS_INTERNAL_H
#define CORNU_NN_AXIS_INTERNAL_H

#include <stdbool.h>

/* Values from `least`, at the pixel `from`, to `most`, at `to`. */
typedef struct {
    double from, to, least, most;
    double step;          /* from tick to tick; of a logarithmic axis 10: powers of ten, or 1: also
                             2 and 5 times those */
    bool   logarithmic;
} CornuAxis;

/* An axis of about `steps` steps between round numbers, the first not above `least`, the last not
 * below `most`. Where the two are equal there is room below them. */
CornuAxis cornu__axis_linear(double from, double to, double least, double most, double steps);

/* From the first 1, 2 or 5 times a power of ten below `least` to the first not below `most`, both
 * above 0. */
CornuAxis cornu__axis_logarithmic(double from, double to, double least, double most);

/* From `least` to `most` themselves, with ticks at whole numbers between them, about `steps` at
 * most. */
CornuAxis cornu__axis_whole(double from, double to, double least, double most, double steps);

/* The pixel of a value; the middle, on an axis of one value. */
double cornu__axis_place(const CornuAxis *axis, double value);

/* The first tick, and the one after a tick; NaN past the last. */
double cornu__axis_first_tick(const CornuAxis *axis);
double cornu__axis_next_tick(const CornuAxis *axis, double tick);

/* What is written at a tick. */
const char *cornu__axis_tick_text(char text[32], double tick);

#endif
