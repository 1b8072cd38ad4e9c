/* Metrics and losses over epochs. */
#include "pictures_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 820, CHART = 290, BETWEEN = 20, LABELS = 44,
    MAX_CHARTS = 55,   /* that fit into the largest plot */
    NAME = 64,
};

static const CornuPlotSeries series[] = { { "training", CORNU__BLUE },
                                          { "validation", CORNU__ORANGE } };

static bool is_validation(const char *key) { return strncmp(key, "val_", 4) == 0; }

/* The keys to chart: metrics in the order of the history, then the loss. */
static int choose_keys(const CornuHistory *history, const char *keys[MAX_CHARTS])
{
    int         count = 0;
    const char *loss = NULL;
    for (int k = 0; k < cornu_history_key_count(history); k++) {
        const char *key = cornu_history_key(history, k);
        if (!strcmp(key, "loss")) loss = key;
        else if (!is_validation(key) && count < MAX_CHARTS - 1) keys[count++] = key;
    }
    if (loss) keys[count++] = loss;
    return count;
}

static bool has_key(const CornuHistory *history, const char *name)
{
    int k = 0;
    while (k < cornu_history_key_count(history) && strcmp(cornu_history_key(history, k), name) != 0)
        k++;
    return k < cornu_history_key_count(history);
}

/* "val_accuracy" -> "Accuracy", "top_k_accuracy" -> "Top k accuracy". */
static void title_of(char title[NAME], const char *key)
{
    snprintf(title, NAME, "%s", key);
    title[0] = (char)toupper((unsigned char)title[0]);
    for (char *c = title; *c; c++)
        if (*c == '_') *c = ' ';
}

static void draw_chart(CornuPlot *plot, const CornuHistory *history, const char *key, double y,
                       double *values)
{
    const int     epochs = cornu_history_epochs(history);
    char          validation[NAME + 4], title[NAME];
    const double *lines[] = { values, values + epochs };
    snprintf(validation, sizeof validation, "val_%s", key);
    title_of(title, key);
    for (int i = 0; i < epochs; i++) {
        values[i] = cornu_history_get(history, key, i);
        values[epochs + i] = cornu_history_get(history, validation, i);
    }
    cornu_plot_lines(plot, CORNU__MARGIN, y, WIDTH - 2 * CORNU__MARGIN, CHART, title, "epoch",
                     lines, epochs, series, has_key(history, validation) ? 2 : 1,
                     .first = epochs > 0 ? cornu_history_epoch(history, 0) + 1 : 1,
                     .label_room = LABELS, .last_values = true);
}

CornuPlot *cornu_picture_curves(const CornuHistory *history, const char *title)
{
    CORNU__NEED_TO_MAKE(history);
    const char  *keys[MAX_CHARTS];
    const int    count = choose_keys(history, keys), epochs = cornu_history_epochs(history);
    double      *values = cornu__allocate((size_t)epochs * 2, sizeof *values);
    const double height = count * (CHART + BETWEEN);
    CornuPlot   *plot = values ? cornu__picture_create(WIDTH, height, title, NULL) : cornu__null();
    for (int i = 0; plot && i < count; i++)
        draw_chart(plot, history, keys[i], CORNU__PICTURE_HEAD + i * (CHART + BETWEEN), values);
    cornu__release(values);
    return plot;
}
