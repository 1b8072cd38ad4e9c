/* Charts of bars and dots. */
#include "chart_internal.h"

#include <math.h>

static const CornuPlotSeries ONE_SERIES = { "", CORNU__BLUE };

enum { DOT = 12 };   /* pixels across */

static bool is_bar(double value) { return isfinite(value) && value > 0.0; }

static CornuAxis make_axis(const CornuPlotBars *config, double left, double right)
{
    enum { STEPS = 6 };
    double least = INFINITY, most = 0.0;
    for (int i = 0; i < config->count; i++) {
        const double value = config->bars[i].value;
        if (!is_bar(value)) continue;
        least = fmin(least, value);
        most = fmax(most, value);
    }
    if (most == 0.0) least = most = 1.0;
    /* Starts low enough for the smallest dot to clear the axis. */
    return config->logarithmic ? cornu__axis_logarithmic(left, right, least / 1.5, most)
                               : cornu__axis_linear(left, right, 0.0, most, STEPS);
}

static double widest(const CornuPlotBars *config, bool labels)
{
    double width = 0.0;
    for (int i = 0; i < config->count; i++) {
        const CornuPlotBar *bar = &config->bars[i];
        const char         *text = labels ? bar->label : bar->text;
        if (text) width = fmax(width, cornu_plot_text_width(text, CORNU__LABEL));
    }
    return width;
}

/* One row: the label, the bar or dot, the text after it. */
static void draw_bar(const CornuPlotBars *config, const CornuPlotBar *bar, const CornuAxis *axis,
                     double middle, double thickness)
{
    const CornuPlotSeries *series = config->series ? &config->series[bar->series] : &ONE_SERIES;
    const double           left = axis->from + 1, top = floor(middle - thickness / 2);
    const double           end = is_bar(bar->value) ? cornu__axis_place(axis, bar->value) : left;
    const double           baseline = floor(middle + CORNU__LABEL / 2.0);
    cornu_plot_text(config->plot, bar->label, axis->from - CORNU__GAP, baseline, CORNU__LABEL,
                    CORNU_PLOT_RIGHT, .colour = CORNU__INK);
    double text_x = end;
    if (!config->logarithmic) {
        cornu_plot_fill(config->plot, left, top, end - left, thickness, series->colour);
    } else if (is_bar(bar->value)) {
        /* Lengths on a logarithmic axis cannot be compared: a dot, with a rule from its label. */
        const double dot = fmin(thickness, DOT);
        cornu_plot_fill(config->plot, left, floor(middle), end - left, 1, CORNU__RULE);
        cornu_plot_line(config->plot, end, middle, end, middle, dot, series->colour);
        text_x += dot / 2;
    }
    if (!bar->text) return;
    /* On a blank background, so that the rules do not cross it. */
    cornu_plot_fill(config->plot, text_x, top,
                    cornu_plot_text_width(bar->text, CORNU__LABEL) + CORNU__GAP, thickness,
                    cornu_plot_paper(config->plot));
    cornu_plot_text(config->plot, bar->text, text_x + CORNU__GAP / 2.0, baseline, CORNU__LABEL,
                    .colour = CORNU__INK);
}

void cornu_plot_bars_from(const CornuPlotBars *config)
{
    const double labels = fmax(widest(config, true), config->label_room);
    const double left = floor(config->x + labels + CORNU__GAP);
    const double right = floor(config->x + config->width - widest(config, false) - CORNU__GAP);
    const double bottom = config->y + config->height - CORNU__AXIS_ROOM;
    const CornuAxis axis = make_axis(config, left, right);
    const double top = cornu__chart_head(config->plot, config->x, config->y, config->title,
                                         config->series, config->series_count);
    cornu__chart_axis(config->plot, &axis, top, bottom, config->axis);
    cornu_plot_fill(config->plot, left, top, 1, bottom - top, CORNU__AXIS);
    const double row = config->count > 0 ? (bottom - top) / config->count : 0.0;
    for (int i = 0; i < config->count; i++)
        draw_bar(config, &config->bars[i], &axis, top + (i + 0.5) * row,
                 floor(fmin(0.62 * row, 26.0)));
}
