#include "pictures_internal.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

CornuPlot *cornu__picture_create(double width, double height, const char *title, const char *note)
{
    const double heading = title ? cornu_plot_text_width(title, CORNU__TITLE) : 0.0;
    const double below = note ? cornu_plot_text_width(note, CORNU__LABEL) : 0.0;
    const double least = ceil(fmax(heading, below)) + 2 * CORNU__MARGIN + 8;
    const double all = CORNU__PICTURE_HEAD + height + CORNU__MARGIN;
    CornuPlot   *plot = cornu_plot_create((int)fmin(fmax(width, least), INT_MAX),
                                          (int)fmin(all, INT_MAX), CORNU__WHITE);
    if (!plot) return NULL;
    if (title)
        cornu_plot_text(plot, title, CORNU__MARGIN, CORNU__MARGIN + CORNU__TITLE, CORNU__TITLE,
                        .bold = true, .colour = CORNU__INK);
    if (note)
        cornu_plot_text(plot, note, CORNU__MARGIN, CORNU__MARGIN + CORNU__TITLE + 20, CORNU__LABEL,
                        .colour = CORNU__FAINT_INK);
    return plot;
}

const char *cornu__picture_name(char text[CORNU__PICTURE_TEXT], const char *name, double size,
                                double width)
{
    snprintf(text, CORNU__PICTURE_TEXT, "%s", name);
    size_t length = strlen(text);
    while (length > 0 && cornu_plot_text_width(text, size) > width) {
        length--;
        snprintf(text + length, CORNU__PICTURE_TEXT - length, "..");
    }
    return text;
}

double cornu__picture_widest(const char *const *names, int count, double size, double most)
{
    double width = 0.0;
    for (int i = 0; i < count; i++) width = fmax(width, cornu_plot_text_width(names[i], size));
    return fmin(width, most);
}

CornuColour cornu__picture_blend(CornuColour from, CornuColour to, double part)
{
    CornuColour colour = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        const double a = from >> shift & 0xff, b = to >> shift & 0xff;
        colour |= (CornuColour)(a + part * (b - a) + 0.5) << shift;
    }
    return colour;
}

/* Relative luminance, 0 black to 1 white, with 2.2 as the display's exponent. */
static double luminance(CornuColour colour)
{
    return 0.2126 * pow((colour >> 16 & 0xff) / 255.0, 2.2) +
           0.7152 * pow((colour >> 8 & 0xff) / 255.0, 2.2) +
           0.0722 * pow((colour & 0xff) / 255.0, 2.2);
}

CornuColour cornu__picture_ink_on(CornuColour colour)
{
    const double paper = luminance(colour) + 0.05, ink = luminance(CORNU__INK) + 0.05;
    return paper / ink > 1.05 / paper ? CORNU__INK : CORNU__WHITE;
}

void cornu__picture_scale(CornuPlot *plot, const CornuPictureScale *scale, double x, double y,
                          double height)
{
    enum { WIDTH = 16, STEPS = 4 };
    const CornuAxis axis = { .from = y + height, .to = y, .least = scale->least,
                             .most = scale->most };
    for (int row = 0; row < height; row++)
        cornu_plot_fill(plot, x, y + row, WIDTH, 1, scale->colour(1.0 - (row + 0.5) / height));
    for (int i = 0; i <= STEPS; i++) {
        const double value = scale->least + (scale->most - scale->least) * i / STEPS;
        const double at = cornu__axis_place(&axis, value);
        char         text[48];
        cornu__format(text, sizeof text, "%.3g%s", value, scale->unit ? scale->unit : "");
        cornu_plot_fill(plot, x + WIDTH, fmin(floor(at), y + height - 1), 4, 1, CORNU__AXIS);
        cornu_plot_text(plot, text, x + WIDTH + 8, floor(at) + CORNU__SMALL / 2.0, CORNU__SMALL,
                        .colour = CORNU__FAINT_INK);
    }
}
