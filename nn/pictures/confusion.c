/* The confusion matrix. */
#include "pictures_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum {
    CELL = 40, BESIDE = 12, NAME_MOST = 120, AXIS_NAME = 26, LEAST_SCALE = 3 * CELL,
    MOST_SCALE = 6 * CELL, ABOVE = 22,
};

/* Of right predictions, by their share of the row. */
static CornuColour sequential(double part)
{
    enum { MOST = 0x08458c };
    return cornu__picture_blend(CORNU__WHITE, MOST, part);
}

/* Of wrong ones, by their share of the largest share of wrong ones: a good network confuses so few
 * that a colour for all cells would show none. The least is not white. */
static CornuColour wrong(double part)
{
    enum { MOST = 0xb2182b };
    return cornu__picture_blend(CORNU__WHITE, MOST, 0.12 + 0.88 * part);
}

/* The matrix, with the names of the classes beside its rows and below its columns. */
typedef struct {
    CornuPlot         *plot;
    const char *const *names;
    const int64_t     *counts;
    int64_t            classes;
    double             left, top, width;   /* of the cells; their height is CELL */
    double             most_wrong;         /* the largest share of a row off the diagonal */
} Table;

static int64_t sum_of(const int64_t *counts, int64_t classes, int64_t row)
{
    int64_t sum = 0;
    for (int64_t k = 0; k < classes; k++) sum += counts[row * classes + k];
    return sum;
}

static double most_wrong(const int64_t *counts, int64_t classes)
{
    double most = 0.0;
    for (int64_t row = 0; row < classes; row++) {
        const int64_t sum = sum_of(counts, classes, row);
        for (int64_t k = 0; k < classes; k++)
            if (k != row && sum > 0)
                most = fmax(most, (double)counts[row * classes + k] / (double)sum);
    }
    return most;
}

static double widest_count(const int64_t *counts, int64_t cells)
{
    double width = 0.0;
    char   text[32];
    for (int64_t i = 0; i < cells; i++) {
        snprintf(text, sizeof text, "%" PRId64, counts[i]);
        width = fmax(width, cornu_plot_text_width(text, CORNU__LABEL));
    }
    return width;
}

static void draw_cell(const Table *table, int64_t row, int64_t column, int64_t sum)
{
    const int64_t     count = table->counts[row * table->classes + column];
    const double      part = sum > 0 ? (double)count / (double)sum : 0.0;
    const double      x = table->left + (double)column * table->width;
    const double      y = table->top + (double)row * CELL;
    const CornuColour paper = row == column || !count ? sequential(part)
                                                      : wrong(part / table->most_wrong);
    const CornuColour ink = count ? cornu__picture_ink_on(paper) : CORNU__AXIS;
    char              text[32];
    snprintf(text, sizeof text, "%" PRId64, count);
    cornu_plot_fill(table->plot, x, y, table->width - 1, CELL - 1, paper);
    cornu_plot_text(table->plot, text, x + table->width / 2, y + (CELL + CORNU__LABEL) / 2.0,
                    CORNU__LABEL, CORNU_PLOT_CENTRE, .bold = row == column || part > 0.2,
                    .colour = ink);
}

static void draw_table(const Table *table)
{
    const double K = (double)table->classes, bottom = table->top + K * CELL;
    char         text[CORNU__PICTURE_TEXT];
    cornu_plot_fill(table->plot, table->left - 1, table->top - 1, K * table->width + 1,
                    K * CELL + 1, CORNU__RULE);
    for (int64_t row = 0; row < table->classes; row++) {
        const int64_t sum = sum_of(table->counts, table->classes, row);
        for (int64_t k = 0; k < table->classes; k++) draw_cell(table, row, k, sum);
        cornu_plot_text(table->plot,
                        cornu__picture_name(text, table->names[row], CORNU__LABEL, NAME_MOST),
                        table->left - BESIDE,
                        table->top + (double)row * CELL + (CELL + CORNU__LABEL) / 2.0,
                        CORNU__LABEL, CORNU_PLOT_RIGHT, .colour = CORNU__INK);
        cornu_plot_text(table->plot,
                        cornu__picture_name(text, table->names[row], CORNU__LABEL, NAME_MOST),
                        table->left + ((double)row + 0.5) * table->width,
                        bottom + BESIDE + CORNU__LABEL, CORNU__LABEL, CORNU_PLOT_CENTRE,
                        .colour = CORNU__INK);
    }
    cornu_plot_text(table->plot, "true", table->left - BESIDE, table->top - BESIDE, CORNU__LABEL,
                    CORNU_PLOT_RIGHT, .bold = true, .colour = CORNU__FAINT_INK);
    cornu_plot_text(table->plot, "predicted", table->left + K * table->width / 2,
                    bottom + BESIDE + CORNU__LABEL + AXIS_NAME, CORNU__LABEL, CORNU_PLOT_CENTRE,
                    .bold = true, .colour = CORNU__FAINT_INK);
}

static CornuStatus check_counts(CornuArray counts)
{
    const CornuShape shape = counts.type.shape;
    CornuText        text;
    if (counts.type.dtype != CORNU_I64 || shape.rank != 2 || shape.extent[0] < 1 ||
        shape.extent[0] != shape.extent[1])
        return cornu__fail(CORNU_ERR_SHAPE, "confusion: counts are %s, expected i64 (classes, "
                           "classes)", cornu_type_print(&text, counts.type));
    for (int64_t i = 0; i < cornu_type_count(counts.type); i++)
        if (((const int64_t *)counts.data)[i] < 0)
            return cornu__fail(CORNU_ERR_VALUE, "confusion: count %lld is %lld, expected at "
                               "least 0", (long long)i,
                               (long long)((const int64_t *)counts.data)[i]);
    return CORNU_OK;
}

CornuPlot *cornu_picture_confusion(CornuArray counts, const char *const *names,
                                   const char *title)
{
    if (check_counts(counts)) return cornu__null();
    const int64_t *values = counts.data, K = counts.type.shape.extent[0];
    int64_t        right = 0, all = 0;
    for (int64_t i = 0; i < K * K; i++) {
        all += values[i];
        if (i % (K + 1) == 0) right += values[i];
    }
    const int    classes = K < INT16_MAX ? (int)K : INT16_MAX;
    const double name = ceil(cornu__picture_widest(names, classes, CORNU__LABEL, NAME_MOST));
    const double cell = fmax(CELL, fmax(name, ceil(widest_count(values, K * K))) + BESIDE);
    const double left = CORNU__MARGIN + fmax(name, 40.0) + BESIDE;
    const double height = ABOVE + fmax(classes * CELL + BESIDE + CORNU__LABEL + AXIS_NAME,
                                       LEAST_SCALE);
    char         note[CORNU__PICTURE_TEXT];
    cornu__format(note, sizeof note,
                  "%lld of %lld are right (%.2f %%); coloured by share of the row: blue are "
                  "right, red wrong",
                  (long long)right, (long long)all,
                  all ? 100.0 * (double)right / (double)all : 0.0);
    CornuPlot *plot = cornu__picture_create(
        left + classes * cell + BESIDE + 2 * CORNU__PICTURE_SCALE,
        height, title, note);
    if (!plot) return NULL;
    const Table table = { plot, names, values, K, left, CORNU__PICTURE_HEAD + ABOVE, cell,
                          most_wrong(values, K) };
    draw_table(&table);
    const CornuPictureScale scales[] = { { 0.0, 100.0, sequential, " %" },
                                         { 0.0, 100.0 * table.most_wrong, wrong, " %" } };
    for (int i = 0; i < (table.most_wrong > 0.0 ? 2 : 1); i++)
        cornu__picture_scale(plot, &scales[i],
                             left + classes * cell + BESIDE + i * CORNU__PICTURE_SCALE, table.top,
                             fmax(LEAST_SCALE, fmin(classes * CELL, MOST_SCALE)));
    return plot;
}
