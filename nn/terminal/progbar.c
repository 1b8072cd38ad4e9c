#include "progbar_internal.h"

#include "../../device/memory_internal.h"
#include "../../device/text/print.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

CornuBarStyle cornu_bar_style(CornuTerminal terminal)
{
    return (CornuBarStyle){
        .target = -1, .width = 20, .verbose = 1, .interval = 0.05, .unit = "step",
        .moving = terminal.is_terminal && terminal.styling != CORNU_PLAIN,
        .utf8 = terminal.utf8, .styling = terminal.styling,
    };
}

CornuBar *cornu_bar_create(const CornuBarStyle *style, FILE *file, double now)
{
    CornuBar *bar = cornu__allocate(1, sizeof *bar);
    if (!bar) return cornu__null();
    bar->style = *style;
    bar->file = file;
    cornu_bar_restart(bar, style->target, now);
    return bar;
}

void cornu_bar_free(CornuBar *bar)
{
    if (!bar) return;
    for (int i = 0; i < bar->name_count; i++)
        cornu__release(bar->values[i].name);
    cornu__release(bar->values);
    cornu__release(bar);
}

void cornu_bar_restart(CornuBar *bar, int64_t target, double now)
{
    bar->style.target = target;
    bar->seen = 0;
    bar->start = now;
    bar->last_draw = -INFINITY;
    bar->first_step_end = NAN;
    bar->drawn_width = 0;
    bar->unfinished = false;
    bar->value_count = 0;
}

bool cornu_bar_due(const CornuBar *bar, double now)
{
    return bar->style.verbose == 1 && now - bar->last_draw >= bar->style.interval &&
           !ferror(bar->file);
}

/* ---- Values ---- */

/* The entry of that name, a new one if there is none. */
static CornuBarValue *find_value(CornuBar *bar, const char *name)
{
    for (int i = 0; i < bar->value_count; i++)
        if (strcmp(bar->values[i].name, name) == 0) return &bar->values[i];

    if (cornu__reserve(&bar->values, &bar->value_space, bar->name_count, 1,
                       sizeof *bar->values) != CORNU_OK)
        return NULL;
    /* A name of an earlier epoch becomes the first unused one. */
    int at = bar->value_count;
    while (at < bar->name_count && strcmp(bar->values[at].name, name) != 0) at++;
    if (at == bar->name_count) {
        char *copy = cornu__copy_text(name);
        if (!copy) return NULL;
        bar->values[bar->name_count++].name = copy;
    }
    CornuBarValue *new = &bar->values[bar->value_count++], moved = bar->values[at];
    bar->values[at] = *new;
    *new = (CornuBarValue){ .name = moved.name };
    return new;
}

static CornuStatus take_values(CornuBar *bar, int64_t current, const CornuLogs *values, bool last)
{
    int64_t steps = current - bar->seen > 1 ? current - bar->seen : 1;
    for (int i = 0; values && i < values->count; i++) {
        double value = values->logs[i].value;
        CornuBarValue *to = find_value(bar, values->logs[i].name);
        if (!to) return CORNU_ERR_MEMORY;
        if (bar->style.averaged && !last) {
            to->sum += value * (double)steps;
            to->weight += (double)steps;
        } else {
            to->sum = value;
            to->weight = 1.0;
        }
    }
    bar->seen = current;
    return CORNU_OK;
}

/* ---- Drawing. Functions that print return the number of visible characters. ---- */

static int print(CornuBar *bar, const char *format, ...) CORNU__PRINTF(2, 3);

static int print(CornuBar *bar, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int written = cornu__vprint(bar->file, format, arguments);
    va_end(arguments);
    return written > 0 ? written : 0;
}

static void repeat(CornuBar *bar, const char *text, int64_t times)
{
    for (int64_t i = 0; i < times; i++)
        fputs(text, bar->file);
}

static const char *escape(const CornuBar *bar, CornuStyling needed, const char *code)
{
    return bar->style.styling >= needed ? code : "";
}

/* "  9/100", of the same width for every step. */
static int print_count(CornuBar *bar, int64_t current)
{
    char target[24];
    int digits = snprintf(target, sizeof target, "%lld", (long long)bar->style.target);
    return print(bar, "%*lld/%s", digits, (long long)current, target);
}

static int print_strip(CornuBar *bar, int64_t current)
{
    const bool  coloured = bar->style.styling >= CORNU_16_COLOURS;
    const char *done = bar->style.utf8 ? "━" : "=";
    const char *rest = coloured ? done : bar->style.utf8 ? "─" : ".";
    int64_t width = bar->style.width;
    int64_t filled = (int64_t)((double)width * ((double)current / (double)bar->style.target));
    if (filled > 0) {
        fputs(escape(bar, CORNU_16_COLOURS, "\033[32m"), bar->file);
        repeat(bar, done, filled);
        fputs(escape(bar, CORNU_16_COLOURS, "\033[0m"), bar->file);
    }
    fputs(escape(bar, CORNU_16_COLOURS, "\033[37m"), bar->file);
    repeat(bar, rest, width - filled);
    fputs(escape(bar, CORNU_16_COLOURS, "\033[0m"), bar->file);
    return (int)(filled > width ? filled : width);
}

static int print_remaining(CornuBar *bar, double seconds)
{
    long long whole = (long long)seconds;
    if (seconds > 3600)
        return print(bar, "%lld:%02lld:%02lld", whole / 3600, whole % 3600 / 60, whole % 60);
    if (seconds > 60) return print(bar, "%lld:%02lld", whole / 60, whole % 60);
    return print(bar, "%llds", whole);
}

static int print_per_step(CornuBar *bar, double seconds)
{
    const char *unit = bar->style.unit;
    if (seconds >= 1 || seconds == 0) return print(bar, " %.0fs/%s", seconds, unit);
    if (seconds >= 1e-3) return print(bar, " %.0fms/%s", seconds * 1e3, unit);
    return print(bar, " %.0fus/%s", seconds * 1e6, unit);
}

/* Four decimals, in exponent form for small values. The bar goes by |value|, the line of verbose 2
 * by value, as in Keras. */
static int print_values(CornuBar *bar, bool by_magnitude)
{
    int width = 0;
    for (int i = 0; i < bar->value_count; i++) {
        const CornuBarValue *value = &bar->values[i];
        CornuShown   shown;
        double mean = value->sum / (value->weight > 1.0 ? value->weight : 1.0);
        width += print(bar, " - %s: ", cornu_shown(&shown, value->name));
        if (isnan(mean))
            width += print(bar, "nan");           /* printf may say -nan */
        else if ((by_magnitude ? fabs(mean) : mean) > 1e-3)
            width += print(bar, "%.4f", mean);
        else
            width += print(bar, "%.4e", mean);
    }
    return width;
}

static void draw_bar(CornuBar *bar, int64_t current, bool last, double per_step, double now)
{
    const char *bold = escape(bar, CORNU_BOLD, "\033[1m");
    const char *plain = escape(bar, CORNU_BOLD, "\033[0m");
    const bool  known = bar->style.target > 0;
    int         width = 0;

    if (bar->style.moving) repeat(bar, "\b", bar->drawn_width);
    fputc(bar->style.moving ? '\r' : '\n', bar->file);

    if (known) {
        fputs(bold, bar->file);
        width += print_count(bar, current);
        fputs(plain, bar->file);
        width += print(bar, " ");
        width += print_strip(bar, current);
    } else {
        width += print(bar, "%7lld/Unknown", (long long)current);
    }

    width += print(bar, " ");
    fputs(bold, bar->file);
    if (known && !last)
        width += print_remaining(bar, per_step * (double)(bar->style.target - current));
    else
        width += print(bar, "%.0fs", now - bar->start);
    fputs(plain, bar->file);
    width += print_per_step(bar, per_step);
    width += print_values(bar, true);

    repeat(bar, " ", bar->drawn_width - width);   /* erases the rest of a longer line */
    if (last) fputc('\n', bar->file);
    bar->drawn_width = width;
    bar->unfinished = !last;
    fflush(bar->file);
}

static void draw_line(CornuBar *bar, int64_t current, double per_step, double now)
{
    print_count(bar, current);
    print(bar, " - %.0fs -", now - bar->start);
    print_per_step(bar, per_step);
    print_values(bar, false);
    fputc('\n', bar->file);
    fflush(bar->file);
}

/* The mean time of a step, without the first one, which is often slower. */
static double estimate_step(CornuBar *bar, int64_t current, double now)
{
    if (current == 0) return 0.0;
    double mean = isnan(bar->first_step_end) || current <= 1
                      ? (now - bar->start) / (double)current
                      : (now - bar->first_step_end) / (double)(current - 1);
    if (current == 1) bar->first_step_end = now;
    return mean;
}

CornuStatus cornu_bar_update(CornuBar *bar, int64_t current, const CornuLogs *values, bool last,
                             double now)
{
    CORNU__TRY(take_values(bar, current, values, last));
    double per_step = estimate_step(bar, current, now);
    if (ferror(bar->file)) return CORNU_OK;
    if (bar->style.verbose == 1) {
        if (!last && !cornu_bar_due(bar, now)) return CORNU_OK;
        draw_bar(bar, current, last, per_step, now);
    } else if (bar->style.verbose == 2 && last && bar->style.target > 0) {
        draw_line(bar, current, per_step, now);
    }
    bar->last_draw = now;
    return CORNU_OK;
}
