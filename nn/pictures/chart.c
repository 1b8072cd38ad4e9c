#include "chart_internal.h"

#include <math.h>

static void draw_legend(CornuPlot *plot, double x, double y, const CornuPlotSeries *series,
                        int count)
{
    for (int i = 0; i < count; i++) {
        cornu_plot_fill(plot, x, y - CORNU__LABEL, CORNU__LABEL, CORNU__LABEL, series[i].colour);
        cornu_plot_text(plot, series[i].name, x + CORNU__LABEL + 6, y, CORNU__LABEL,
                        .colour = CORNU__INK);
        x += CORNU__LABEL + 6 + cornu_plot_text_width(series[i].name, CORNU__LABEL) +
             2 * CORNU__GAP;
    }
}

double cornu__chart_head(CornuPlot *plot, double x, double y, const char *title,
                         const CornuPlotSeries *series, int series_count)
{
    if (title) {
        cornu_plot_text(plot, title, x, y + CORNU__TITLE + 2, CORNU__TITLE, .bold = true,
                        .colour = CORNU__INK);
        y += CORNU__TITLE_ROOM;
    }
    if (series_count > 1) {
        draw_legend(plot, x, y + CORNU__LABEL + 2, series, series_count);
        y += CORNU__LEGEND_ROOM;
    }
    return y;
}

void cornu__chart_axis(CornuPlot *plot, const CornuAxis *axis, double top, double bottom,
                       const char *name)
{
    char   text[32];
    double tick = cornu__axis_first_tick(axis);
    for (; !isnan(tick); tick = cornu__axis_next_tick(axis, tick)) {
        const double x = floor(cornu__axis_place(axis, tick));
        cornu_plot_fill(plot, x, top, 1, bottom - top, CORNU__RULE);
        cornu_plot_text(plot, cornu__axis_tick_text(text, tick), x, bottom + CORNU__SMALL + 8,
                        CORNU__SMALL, CORNU_PLOT_CENTRE, .colour = CORNU__FAINT_INK);
    }
    if (name)
        cornu_plot_text(plot, name, (axis->from + axis->to) / 2, bottom + 2 * CORNU__SMALL + 20,
                        CORNU__SMALL, CORNU_PLOT_CENTRE, .colour = CORNU__FAINT_INK);
}
