/* Shared by charts and pictures: colours, sizes, titles, legends. */
#ifndef CORNU_NN_CHART_INTERNAL_H
#define CORNU_NN_CHART_INTERNAL_H

#include "axis_internal.h"
#include "plot.h"

enum {
    CORNU__WHITE = 0xffffff, CORNU__INK = 0x1f2933, CORNU__FAINT_INK = 0x5f6b78,
    CORNU__RULE = 0xdde2e8, CORNU__AXIS = 0x9aa5b1, CORNU__BLUE = 0x3b6fb6,
    CORNU__ORANGE = 0xd98a29, CORNU__RED = 0xc62828,
};

/* In pixels; of text, the height of a capital. */
enum {
    CORNU__TITLE = 13, CORNU__LABEL = 10, CORNU__SMALL = 9, CORNU__TITLE_ROOM = 30,
    CORNU__LEGEND_ROOM = 26, CORNU__AXIS_ROOM = 48, CORNU__GAP = 12,
};

/* Draws the title, if there is one, and the legend, if there is more than one series, from (x, y)
 * down; returns the y at which the chart itself begins. */
double cornu__chart_head(CornuPlot *plot, double x, double y, const char *title,
                         const CornuPlotSeries *series, int series_count);

/* A horizontal axis below an area from `top` to `bottom`: a rule across the area for each tick, the
 * numbers below it, and below them the name of the axis, unless that is NULL. */
void cornu__chart_axis(CornuPlot *plot, const CornuAxis *axis, double top, double bottom,
                       const char *name);

#endif
