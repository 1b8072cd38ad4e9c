#include "plot.h"

#include <math.h>

#include "../../device/memory_internal.h"
#include "../../device/files/file_internal.h"
#include "../formats/png_internal.h"
#include "font_internal.h"

enum { MOST_EXTENT = 16384, CHANNELS = 3 };

struct CornuPlot {
    int         width, height;
    CornuColour paper;
    uint8_t    *pixels;          /* (height, width, red green blue) */
};

CornuPlot *cornu_plot_create(int width, int height, CornuColour paper)
{
    if (width < 1 || height < 1 || width > MOST_EXTENT || height > MOST_EXTENT)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "plot: %d by %d pixels, expected 1 to %d",
                                width, height, MOST_EXTENT);
    CornuPlot *plot = cornu__allocate(1, sizeof *plot);
    if (plot) plot->pixels = cornu__allocate((size_t)width * (size_t)height, CHANNELS);
    if (!plot || !plot->pixels) {
        cornu__release(plot);
        return cornu__null();
    }
    plot->width = width;
    plot->height = height;
    plot->paper = paper;
    cornu_plot_fill(plot, 0, 0, width, height, paper);
    return plot;
}

void cornu_plot_free(CornuPlot *plot)
{
    if (!plot) return;
    cornu__release(plot->pixels);
    cornu__release(plot);
}

int cornu_plot_width(const CornuPlot *plot)
{
    CORNU__NEED_OR(plot, 0);
    return plot->width;
}

int cornu_plot_height(const CornuPlot *plot)
{
    CORNU__NEED_OR(plot, 0);
    return plot->height;
}

CornuColour cornu_plot_paper(const CornuPlot *plot)
{
    CORNU__NEED_OR(plot, 0);
    return plot->paper;
}

static uint8_t *pixel_at(const CornuPlot *plot, int x, int y)
{
    return plot->pixels + ((size_t)y * (size_t)plot->width + (size_t)x) * CHANNELS;
}

CornuColour cornu_plot_pixel(const CornuPlot *plot, int x, int y)
{
    const uint8_t *pixel = pixel_at(plot, x, y);
    return (CornuColour)pixel[0] << 16 | (CornuColour)pixel[1] << 8 | pixel[2];
}

/* ---- Files ---- */

static void write_bytes(void *context, void *bytes, int size)
{
    fwrite(bytes, 1, (size_t)size, ((CornuNewFile *)context)->stream);
}

CornuStatus cornu_plot_save(const CornuPlot *plot, const char *path)
{
    CORNU__NEED(plot);
    CORNU__NEED(path);
    CornuNewFile file;
    CORNU__TRY(cornu__file_create(&file, path));
    CornuStatus status = cornu__png_write(plot->width, plot->height, CHANNELS, plot->pixels,
                                          write_bytes, &file);
    if (!status) return cornu__file_commit(&file);
    cornu__file_abandon(&file);
    return cornu__fail_prefix(status, path);
}

/* ---- Shapes ---- */

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Blends the colour into the pixel with this coverage. */
static void mix(const CornuPlot *plot, int x, int y, double cover, CornuColour colour)
{
    uint8_t *pixel = pixel_at(plot, x, y);
    for (int c = 0; c < CHANNELS; c++) {
        const double old = pixel[c], new = (double)(colour >> (16 - 8 * c) & 0xff);
        pixel[c] = (uint8_t)(old + cover * (new - old) + 0.5);
    }
}

/* The coverage of pixel i by the range from `low` to `high`. */
static double covered_part(int i, double low, double high)
{
    return clamp(fmin(high, i + 1.0) - fmax(low, i), 0.0, 1.0);
}

void cornu_plot_fill(CornuPlot *plot, double x, double y, double width, double height,
                     CornuColour colour)
{
    const int left = (int)clamp(floor(x), 0, plot->width);
    const int right = (int)clamp(ceil(x + width), 0, plot->width);
    const int top = (int)clamp(floor(y), 0, plot->height);
    const int bottom = (int)clamp(ceil(y + height), 0, plot->height);
    for (int j = top; j < bottom; j++)
        for (int i = left; i < right; i++)
            mix(plot, i, j, covered_part(i, x, x + width) * covered_part(j, y, y + height), colour);
}

typedef struct {
    double x0, y0, x1, y1;
} Stroke;

static double distance(const Stroke *s, double x, double y)
{
    const double dx = s->x1 - s->x0, dy = s->y1 - s->y0, length = dx * dx + dy * dy;
    const double along = length > 0.0 ? ((x - s->x0) * dx + (y - s->y0) * dy) / length : 0.0;
    const double t = clamp(along, 0.0, 1.0);
    const double px = s->x0 + t * dx - x, py = s->y0 + t * dy - y;
    return sqrt(px * px + py * py);
}

/* Draws all strokes together, so that no pixel is blended twice where they meet. */
static void draw_strokes(const CornuPlot *plot, const Stroke *strokes, int count,
                         double thickness, CornuColour colour)
{
    const double reach = (thickness + 1.0) / 2.0;   /* coverage falls from 1 to 0 over a pixel */
    double       left = INFINITY, right = -INFINITY, top = INFINITY, bottom = -INFINITY;
    for (int s = 0; s < count; s++) {
        left = fmin(left, fmin(strokes[s].x0, strokes[s].x1) - reach);
        right = fmax(right, fmax(strokes[s].x0, strokes[s].x1) + reach);
        top = fmin(top, fmin(strokes[s].y0, strokes[s].y1) - reach);
        bottom = fmax(bottom, fmax(strokes[s].y0, strokes[s].y1) + reach);
    }
    const int end_x = (int)clamp(right + 1.0, 0, plot->width);
    const int end_y = (int)clamp(bottom + 1.0, 0, plot->height);
    for (int j = (int)clamp(top, 0, plot->height); j < end_y; j++)
        for (int i = (int)clamp(left, 0, plot->width); i < end_x; i++) {
            double nearest = reach;
            for (int s = 0; s < count; s++)
                nearest = fmin(nearest, distance(&strokes[s], i + 0.5, j + 0.5));
            const double cover = clamp(reach - nearest, 0.0, fmin(thickness, 1.0));
            if (cover > 0.0) mix(plot, i, j, cover, colour);
        }
}

void cornu_plot_line(CornuPlot *plot, double x0, double y0, double x1, double y1,
                     double thickness, CornuColour colour)
{
    draw_strokes(plot, &(Stroke){ x0, y0, x1, y1 }, 1, thickness, colour);
}

/* ---- Text ---- */

static double units(const char *text)
{
    double width = 0.0;
    for (; *text; text++) width += cornu__font_advance(*text);
    return width;
}

double cornu_plot_text_width(const char *text, double size)
{
    return units(text) * size / CORNU__FONT_CAPITAL;
}

static void draw_character(CornuPlot *plot, char character, double x, double baseline,
                           double unit, double thickness, CornuColour colour)
{
    enum { MOST_STROKES = 32 };
    Stroke      strokes[MOST_STROKES];
    int         count = 0;
    const char *point = cornu__font_strokes(character);
    const double top = baseline - CORNU__FONT_CAPITAL * unit;
    for (; *point && point[2]; point += point[2] == ' ' ? 3 : 2) {
        if (point[2] == ' ') continue;
        strokes[count++] = (Stroke){ x + (point[0] - '0') * unit, top + (point[1] - 'a') * unit,
                                     x + (point[2] - '0') * unit, top + (point[3] - 'a') * unit };
    }
    draw_strokes(plot, strokes, count, thickness, colour);
}

void cornu_plot_text_from(const CornuPlotText *config)
{
    const double size = config->size > 0.0 ? config->size : 10.0;
    const double unit = size / CORNU__FONT_CAPITAL;
    const double width = cornu_plot_text_width(config->text, size);
    const double part[] = { 0.0, 0.5, 1.0 };
    /* Stems are centred on pixels, where they are sharpest. */
    double x = floor(config->x - part[config->alignment] * width) + 1.5;
    for (const char *c = config->text; *c; c++) {
        draw_character(config->plot, *c, x, floor(config->y) - 0.5, unit,
                       size * (config->bold ? 0.17 : 0.115), config->colour);
        x += cornu__font_advance(*c) * unit;
    }
}
