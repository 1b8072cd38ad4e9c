#include "axis_internal.h"

#include <math.h>
#include <stdio.h>

#include "../../device/text/print.h"

/* Quotients of decimal fractions miss integers by a few last bits. */
static const double MORE = 1.0 + 1e-9;

/* ---- 1, 2 and 5 times a power of ten ---- */

static double nice_at_most(double value)
{
    const double power = pow(10.0, floor(log10(value * MORE)));
    const double times = value / power * MORE;
    return power * (times >= 5.0 ? 5.0 : times >= 2.0 ? 2.0 : 1.0);
}

static double nice_above(double nice)
{
    const double power = pow(10.0, floor(log10(nice * MORE)));
    return nice * (nice / power > 1.5 && nice / power < 3.0 ? 2.5 : 2.0);
}

static double nice_at_least(double value)
{
    const double below = nice_at_most(value);
    return below * MORE >= value ? below : nice_above(below);
}

/* ---- Axes ---- */

CornuAxis cornu__axis_linear(double from, double to, double least, double most, double steps)
{
    if (least == most) least -= most == 0.0 ? 1.0 : 0.1 * fabs(most);
    const double step = nice_at_least((most - least) / fmax(steps, 1.0));
    return (CornuAxis){ .from = from, .to = to, .step = step,
                        .least = floor(least / step + 1e-9) * step,
                        .most = ceil(most / step - 1e-9) * step };
}

CornuAxis cornu__axis_logarithmic(double from, double to, double least, double most)
{
    CornuAxis axis = { .from = from, .to = to, .logarithmic = true,
                       .least = nice_at_most(least), .most = nice_at_least(most) };
    axis.step = axis.most / axis.least > 1e4 ? 10.0 : 1.0;
    return axis;
}

CornuAxis cornu__axis_whole(double from, double to, double least, double most, double steps)
{
    const double range = fmax(most - least, 1.0);
    return (CornuAxis){ .from = from, .to = to, .least = least, .most = most,
                        .step = fmax(1.0, nice_at_least(range / fmax(steps, 1.0))) };
}

double cornu__axis_place(const CornuAxis *axis, double value)
{
    double part = 0.5;
    if (axis->logarithmic) part = log10(value / axis->least) / log10(axis->most / axis->least);
    else if (axis->most > axis->least) part = (value - axis->least) / (axis->most - axis->least);
    return axis->from + part * (axis->to - axis->from);
}

double cornu__axis_first_tick(const CornuAxis *axis)
{
    if (axis->logarithmic) return axis->least;
    return ceil(axis->least / axis->step - 1e-9) * axis->step + 0.0;   /* no -0 */
}

double cornu__axis_next_tick(const CornuAxis *axis, double tick)
{
    /* A multiple of the step each time: sums of steps would miss 0. */
    const double next = !axis->logarithmic ? (round(tick / axis->step) + 1.0) * axis->step
                        : axis->step > 1.0 ? axis->step * tick
                                           : nice_above(tick);
    return next <= axis->most + 1e-9 * fmax(fabs(axis->most), axis->step) ? next : NAN;
}

const char *cornu__axis_tick_text(char text[32], double tick)
{
    cornu__format(text, 32, "%.6g", tick);
    return text;
}
