/* What charts and pictures have in common: colours, sizes, titles, legends. */
#ifndef CORNU_NN_CHART_INTERNAL_H
#define CORNU_NN_CHART_INTERNAL_H

#include "axis_internal.h"
#include "plot.h"

enum {
    CORNU__WHITE = 0xffffff, CORNU__INK = 0x1f2933, CORNU__FAINT_INK = 0x5f6b78,
    CORNU__RULE = 0xdde2e8, CORNU__AXIS = 0x9aa5b1, CORNU__BLUE = 0x3b6fb6,
    CORNU__ORANGE = 0xd98a29, CORNU__RED = 0xc62828,
};

/* Pixels, and heights of capitals. */
enum {
    CORNU__TITLE = 13, CORNU__LABEL = 10, CORNU__SMALL = 9, CORNU__TITLE_ROOM = 30,
    CORNU__LEGEND_ROOM = 26, CORNU__AXIS_ROOM = 48, CORNU__GAP = 12,
};

/* The title, if there is one, and the legend, if there is more than one series, from (x, y) down;
 * returns where the chart itself may begin. */
double cornu__chart_head(CornuPlot *plot, double x, double y, const char *title,
                         const CornuPlotSeries *series, int series_count);

/* A horizontal axis below what lies from `top` to `bottom`: a rule across that for each tick, the
 * numbers below, and below these what it counts, unless that is NULL. */
void cornu__chart_axis(CornuPlot *plot, const CornuAxis *axis, double top, double bottom,
                       const char *name);

#endif
