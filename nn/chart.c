/* Charts, drawn with what plot.h offers. */
#include "plot.h"

#include <math.h>
#include <stdio.h>

/* Pixels, and heights of capitals. */
enum {
    TITLE = 13, LABEL = 10, SMALL = 9, TITLE_ROOM = 30, LEGEND_ROOM = 26, AXIS_ROOM = 48, GAP = 12,
};
static const CornuColour INK = 0x1f2933, FAINT_INK = 0x5f6b78, RULE = 0xdde2e8, AXIS = 0x9aa5b1;
static const CornuPlotSeries ONE_SERIES = { "", 0x3b6fb6 };

/* Values from `least` at the left end to `most` at the right one. */
typedef struct {
    double left, right, least, most;
    double step;          /* from tick to tick; of a logarithmic axis 10: powers of ten, or 1: also
                             2 and 5 times those */
    bool   logarithmic;
} Scale;

/* ---- 1, 2 and 5 times a power of ten ---- */

static double nice_at_most(double value)
{
    const double power = pow(10.0, floor(log10(value * (1.0 + 1e-9))));
    const double times = value / power * (1.0 + 1e-9);
    return power * (times >= 5.0 ? 5.0 : times >= 2.0 ? 2.0 : 1.0);
}

static double nice_above(double nice)
{
    const double power = pow(10.0, floor(log10(nice * (1.0 + 1e-9))));
    return nice * (nice / power > 1.5 && nice / power < 3.0 ? 2.5 : 2.0);
}

static double nice_at_least(double value)
{
    const double below = nice_at_most(value);
    return below * (1.0 + 1e-9) >= value ? below : nice_above(below);
}

/* ---- Scales ---- */

static bool is_bar(double value) { return isfinite(value) && value > 0.0; }

static Scale make_scale(const CornuPlotBars *config, double left, double right)
{
    enum { LINEAR_STEPS = 6 };
    Scale  scale = { left, right, 0.0, 0.0, 0.0, config->logarithmic };
    double least = INFINITY, most = 0.0;
    for (int i = 0; i < config->count; i++) {
        const double value = config->bars[i].value;
        if (!is_bar(value)) continue;
        least = fmin(least, value);
        most = fmax(most, value);
    }
    if (most == 0.0) least = most = 1.0;
    if (config->logarithmic) {
        /* Far enough below for the shortest bar to be seen. */
        scale.least = nice_at_most(least / 1.5);
        scale.most = nice_at_least(most);
        scale.step = scale.most / scale.least > 1e4 ? 10.0 : 1.0;
    } else {
        scale.step = nice_at_least(most / LINEAR_STEPS);
        scale.most = ceil(most / scale.step - 1e-9) * scale.step;
    }
    return scale;
}

static double place(const Scale *scale, double value)
{
    const double part = scale->logarithmic
                            ? log10(value / scale->least) / log10(scale->most / scale->least)
                            : (value - scale->least) / (scale->most - scale->least);
    return scale->left + part * (scale->right - scale->left);
}

/* The tick after this one. */
static double next_tick(const Scale *scale, double tick)
{
    if (!scale->logarithmic) return tick + scale->step;
    return scale->step > 1.0 ? scale->step * tick : nice_above(tick);
}

static void draw_axis(const CornuPlotBars *config, const Scale *scale, double top, double bottom)
{
    CornuPlot *plot = config->plot;
    const double beyond = scale->most * (1.0 + 1e-9);
    double       tick = scale->least;
    while (tick <= beyond) {
        const double x = floor(place(scale, tick));
        char         text[32];
        snprintf(text, sizeof text, "%.6g", tick);
        cornu_plot_fill(plot, x, top, 1, bottom - top, RULE);
        cornu_plot_text(plot, text, x, bottom + SMALL + 8, SMALL, CORNU_PLOT_CENTRE,
                        .colour = FAINT_INK);
        tick = next_tick(scale, tick);
    }
    cornu_plot_fill(plot, floor(scale->left), top, 1, bottom - top, AXIS);
    if (config->axis)
        cornu_plot_text(plot, config->axis, (scale->left + scale->right) / 2,
                        bottom + 2 * SMALL + 20, SMALL, CORNU_PLOT_CENTRE, .colour = FAINT_INK);
}

static void draw_legend(const CornuPlotBars *config, double x, double y)
{
    for (int i = 0; i < config->series_count; i++) {
        const CornuPlotSeries *series = &config->series[i];
        cornu_plot_fill(config->plot, x, y - LABEL, LABEL, LABEL, series->colour);
        cornu_plot_text(config->plot, series->name, x + LABEL + 6, y, LABEL, .colour = INK);
        x += LABEL + 6 + cornu_plot_text_width(series->name, LABEL) + 2 * GAP;
    }
}

static double widest(const CornuPlotBars *config, bool labels)
{
    double width = 0.0;
    for (int i = 0; i < config->count; i++) {
        const CornuPlotBar *bar = &config->bars[i];
        const char         *text = labels ? bar->label : bar->text;
        if (text) width = fmax(width, cornu_plot_text_width(text, LABEL));
    }
    return width;
}

/* One row: its label, the bar, the text behind it. */
static void draw_bar(const CornuPlotBars *config, const CornuPlotBar *bar, const Scale *scale,
                     double middle, double thickness)
{
    const CornuPlotSeries *series = config->series ? &config->series[bar->series] : &ONE_SERIES;
    const double           left = scale->left + 1, top = floor(middle - thickness / 2);
    const double           end = is_bar(bar->value) ? place(scale, bar->value) : left;
    const double           baseline = floor(middle + LABEL / 2.0);
    cornu_plot_text(config->plot, bar->label, scale->left - GAP, baseline, LABEL,
                    CORNU_PLOT_RIGHT, .colour = INK);
    cornu_plot_fill(config->plot, left, top, end - left, thickness, series->colour);
    if (!bar->text) return;
    /* On a piece of paper, else the rules would cross it. */
    cornu_plot_fill(config->plot, end, top, cornu_plot_text_width(bar->text, LABEL) + GAP,
                    thickness, cornu_plot_paper(config->plot));
    cornu_plot_text(config->plot, bar->text, end + GAP / 2.0, baseline, LABEL, .colour = INK);
}

void cornu_plot_bars_from(const CornuPlotBars *config)
{
    const double left = floor(config->x + fmax(widest(config, true), config->label_room) + GAP);
    const double right = floor(config->x + config->width - widest(config, false) - GAP);
    const double bottom = config->y + config->height - AXIS_ROOM;
    const Scale  scale = make_scale(config, left, right);
    double       top = config->y;
    if (config->title) {
        cornu_plot_text(config->plot, config->title, config->x, top + TITLE + 2, TITLE,
                        .bold = true, .colour = INK);
        top += TITLE_ROOM;
    }
    if (config->series_count > 1) {
        draw_legend(config, config->x, top + LABEL + 2);
        top += LEGEND_ROOM;
    }
    draw_axis(config, &scale, top, bottom);
    const double row = config->count > 0 ? (bottom - top) / config->count : 0.0;
    for (int i = 0; i < config->count; i++)
        draw_bar(config, &config->bars[i], &scale, top + (i + 0.5) * row,
                 floor(fmin(0.62 * row, 26.0)));
}
