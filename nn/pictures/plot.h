/*
 * Pictures for files: a canvas of coloured pixels, text in a built-in font, and charts.
 *
 *     CornuPlot *plot = cornu_plot_create(900, 300, 0xffffff);
 *     cornu_plot_text(plot, "Loss", .x = 20, .y = 30, .size = 14, .bold = true);
 *     cornu_plot_bars(plot, .x = 20, .y = 50, .width = 860, .height = 230, .axis = "seconds",
 *                     .bars = bars, .count = 3);
 *     CornuStatus status = cornu_plot_save(plot, "loss.png");
 *     cornu_plot_free(plot);
 *
 * (0, 0) is the upper left corner, x goes right, y down, both in pixels. Colours are 0xrrggbb.
 * Drawing is clipped to the canvas and antialiased. The same calls give the same bytes.
 */
#ifndef CORNU_NN_PLOT_H
#define CORNU_NN_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "../../device/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuPlot CornuPlot;
typedef uint32_t         CornuColour;

/* A canvas of one colour. NULL and CORNU_ERR_ARGUMENT unless both extents are 1 to 16384,
 * CORNU_ERR_MEMORY. */
CornuPlot *cornu_plot_create(int width, int height, CornuColour paper);
/* Once; NULL is ignored. */
void       cornu_plot_free(CornuPlot *plot);

int         cornu_plot_width(const CornuPlot *plot);    /* in pixels */
int         cornu_plot_height(const CornuPlot *plot);   /* in pixels */
CornuColour cornu_plot_paper(const CornuPlot *plot);    /* that of the canvas */
/* The colour of a pixel of the canvas: x from 0 at the left, y from 0 at the top. */
CornuColour cornu_plot_pixel(const CornuPlot *plot, int x, int y);

/* Writes a PNG, whole or not at all. CORNU_ERR_FILE, CORNU_ERR_MEMORY. Of several processes rank 0
 * writes; a rank may call it on its own. */
CornuStatus cornu_plot_save(const CornuPlot *plot, const char *path);

/* ---- Shapes ---- */

/* A rectangle; pixels that it covers in part are blended. */
void cornu_plot_fill(CornuPlot *plot, double x, double y, double width, double height,
                     CornuColour colour);

/* A line with round ends. */
void cornu_plot_line(CornuPlot *plot, double x0, double y0, double x1, double y1,
                     double thickness, CornuColour colour);

/* ---- Text ---- */

typedef enum { CORNU_PLOT_LEFT, CORNU_PLOT_CENTRE, CORNU_PLOT_RIGHT } CornuPlotAlignment;

/* One line of ASCII; other characters are drawn as '?'. */
typedef struct {
    char               unset;
    CornuPlot         *plot;
    const char        *text;
    double             x, y;        /* start, middle or end of the baseline, by alignment */
    double             size;        /* height of a capital; default 10 */
    CornuPlotAlignment alignment;
    bool               bold;
    CornuColour        colour;      /* default black */
} CornuPlotText;

void cornu_plot_text_from(const CornuPlotText *config);
#define cornu_plot_text(...) cornu_plot_text_from(&(CornuPlotText){ .unset = 0, __VA_ARGS__ })

/* Its width in pixels. */
double cornu_plot_text_width(const char *text, double size);

/* ---- Charts ---- */

typedef struct {
    const char *label;    /* before the bar; required */
    double      value;    /* its length; without a bar unless positive and finite */
    const char *text;     /* after it: the value with its unit, say; may be NULL */
    int         series;   /* index of its series in the chart */
} CornuPlotBar;

typedef struct {
    const char *name;     /* for the legend */
    CornuColour colour;
} CornuPlotSeries;

/* Horizontal bars, top to bottom, on one axis from 0, with ticks below them and a legend above if
 * there is more than one series; dots on a logarithmic axis, which has no 0. */
typedef struct {
    char                   unset;
    CornuPlot             *plot;
    double                 x, y, width, height;  /* the area with labels, legend and axis */
    const char            *title;                /* above the chart, bold; may be NULL */
    const char            *axis;                 /* quantity and unit of the axis */
    const CornuPlotBar    *bars;
    int                    count;
    const CornuPlotSeries *series;               /* default: one, without a legend */
    int                    series_count;
    bool                   logarithmic;          /* starts below the least value; dots */
    double                 label_room;           /* minimum width, to align two charts */
} CornuPlotBars;

void cornu_plot_bars_from(const CornuPlotBars *config);
#define cornu_plot_bars(...) cornu_plot_bars_from(&(CornuPlotBars){ .unset = 0, __VA_ARGS__ })

/* Lines over integers, such as epochs: a point for each value, if there is room for points, and a
 * line from each to the next. Values that are not finite are left out: the line joins their
 * neighbours. Ticks are at round numbers; the vertical axis spans the values. */
typedef struct {
    char                   unset;
    CornuPlot             *plot;
    double                 x, y, width, height;  /* the area with labels, legend and axes */
    const char            *title;                /* above the chart, bold: the quantity; may be
                                                    NULL */
    const char            *axis;                 /* name of the horizontal axis; may be NULL */
    const double *const   *values;               /* `count` of each series */
    int                    count;
    const CornuPlotSeries *series;               /* names and colours */
    int                    series_count;         /* with a legend if more than one */
    int64_t                first;                /* number of the first value */
    double                 label_room;           /* minimum width, to align two charts */
    bool                   last_values;          /* writes each series' last value beside it */
} CornuPlotLines;

void cornu_plot_lines_from(const CornuPlotLines *config);
#define cornu_plot_lines(...) cornu_plot_lines_from(&(CornuPlotLines){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
