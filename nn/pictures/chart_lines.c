/* Line charts. */
#include "chart_internal.h"

#include <math.h>
#include <stdio.h>

#include "../../device/text/print.h"

enum { VALUE_ROOM = 58, VALUE_HEIGHT = CORNU__SMALL + 4, MOST_VALUES = 8 };
enum { INSET = 14, TICK_WIDTH = 60, TICK_HEIGHT = 44, POINT = 7, POINT_ROOM = 12 };

/* From 0 to 1 if there are no finite values. */
static CornuAxis vertical_axis(const CornuPlotLines *config, double top, double bottom)
{
    double least = INFINITY, most = -INFINITY;
    for (int s = 0; s < config->series_count; s++)
        for (int i = 0; i < config->count; i++) {
            const double value = config->values[s][i];
            if (!isfinite(value)) continue;
            least = fmin(least, value);
            most = fmax(most, value);
        }
    if (least > most) {
        least = 0.0;
        most = 1.0;
    }
    return cornu__axis_linear(bottom, top, least, most, (bottom - top) / TICK_HEIGHT);
}

static double widest_tick(const CornuAxis *axis)
{
    char   text[32];
    double width = 0.0, tick = cornu__axis_first_tick(axis);
    for (; !isnan(tick); tick = cornu__axis_next_tick(axis, tick))
        width = fmax(width, cornu_plot_text_width(cornu__axis_tick_text(text, tick),
                                                  CORNU__SMALL));
    return width;
}

static void draw_vertical_axis(CornuPlot *plot, const CornuAxis *axis, double left, double right)
{
    char   text[32];
    double tick = cornu__axis_first_tick(axis);
    for (; !isnan(tick); tick = cornu__axis_next_tick(axis, tick)) {
        const double y = floor(cornu__axis_place(axis, tick));
        cornu_plot_fill(plot, left, y, right - left, 1, CORNU__RULE);
        cornu_plot_text(plot, cornu__axis_tick_text(text, tick), left - CORNU__GAP,
                        y + floor(CORNU__SMALL / 2.0) + 1, CORNU__SMALL, CORNU_PLOT_RIGHT,
                        .colour = CORNU__FAINT_INK);
    }
}

static void draw_series(const CornuPlotLines *config, int series, const CornuAxis *across,
                        const CornuAxis *up)
{
    const double      room = fabs(across->to - across->from) / config->count;
    const double      point = room < POINT_ROOM ? 0.0 : POINT;
    const CornuColour colour = config->series[series].colour;
    double            last_x = NAN, last_y = NAN;
    int               drawn = 0;
    for (int i = 0; i < config->count; i++) {
        const double value = config->values[series][i];
        if (!isfinite(value)) continue;
        const double x = cornu__axis_place(across, (double)config->first + i);
        const double y = cornu__axis_place(up, value);
        if (drawn++) cornu_plot_line(config->plot, last_x, last_y, x, y, 2, colour);
        if (point > 0.0) cornu_plot_line(config->plot, x, y, x, y, point, colour);
        last_x = x;
        last_y = y;
    }
    /* A single value makes no line: a point. */
    if (drawn == 1) cornu_plot_line(config->plot, last_x, last_y, last_x, last_y, POINT, colour);
}

/* The last finite value of a series; NaN if there is none. */
static double last_value(const CornuPlotLines *config, int series)
{
    for (int i = config->count - 1; i >= 0; i--)
        if (isfinite(config->values[series][i])) return config->values[series][i];
    return NAN;
}

/* The last values at the height of their points; those that would overlap are moved apart, the
 * order kept. */
static void draw_last_values(const CornuPlotLines *config, const CornuAxis *up, double right)
{
    int    order[MOST_VALUES], count = 0;
    double place[MOST_VALUES];
    for (int s = 0; s < config->series_count && count < MOST_VALUES; s++) {
        const double value = last_value(config, s);
        if (isnan(value)) continue;
        const double y = cornu__axis_place(up, value);
        int          at = count++;
        for (; at > 0 && place[at - 1] > y; at--) {
            place[at] = place[at - 1];
            order[at] = order[at - 1];
        }
        place[at] = y;
        order[at] = s;
    }
    for (int i = 1; i < count; i++)
        if (place[i] - place[i - 1] < VALUE_HEIGHT) {
            const double apart = (VALUE_HEIGHT - (place[i] - place[i - 1])) / 2.0;
            place[i - 1] -= i == 1 ? apart : 0.0;
            place[i] = place[i - 1] + VALUE_HEIGHT;
        }
    for (int i = 0; i < count; i++) {
        char text[32];
        cornu__format(text, sizeof text, "%.4g", last_value(config, order[i]));
        cornu_plot_text(config->plot, text, right + CORNU__GAP / 2.0,
                        place[i] + CORNU__SMALL / 2.0, CORNU__SMALL,
                        .colour = config->series[order[i]].colour);
    }
}

void cornu_plot_lines_from(const CornuPlotLines *config)
{
    const double top = cornu__chart_head(config->plot, config->x, config->y, config->title,
                                         config->series, config->series_count) + POINT;
    const double bottom = floor(config->y + config->height - CORNU__AXIS_ROOM);
    const CornuAxis up = vertical_axis(config, top, bottom);
    const double left = floor(config->x + fmax(widest_tick(&up), config->label_room) + CORNU__GAP);
    const double right = floor(config->x + config->width - (config->last_values ? VALUE_ROOM : 0));
    const double first = (double)config->first, last = first + fmax(config->count - 1, 0.0);
    const CornuAxis across = cornu__axis_whole(left + INSET, right - INSET, first, last,
                                               (right - left) / TICK_WIDTH);
    cornu__chart_axis(config->plot, &across, top, bottom, config->axis);
    draw_vertical_axis(config->plot, &up, left, right);
    cornu_plot_fill(config->plot, left, top, 1, bottom + 1 - top, CORNU__AXIS);
    cornu_plot_fill(config->plot, left, bottom, right - left, 1, CORNU__AXIS);
    for (int s = 0; s < config->series_count; s++) draw_series(config, s, &across, &up);
    if (config->last_values) draw_last_values(config, &up, right);
}
