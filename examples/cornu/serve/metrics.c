#include "metrics.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BUCKETS = 53 };

/* The values of one set of labels. */
typedef struct Cell {
    char        *labels;
    double       sum;                      /* or the value of a counter or gauge */
    long long    count, bucket[MOST_BUCKETS];
    struct Cell *next;
} Cell;

struct Metrics {
    pthread_mutex_t lock;
    Cell           *cells[METRIC_COUNT];
};

static const struct {
    const char *name, *kind;
    double      first, factor;
    int         bounds;
} metrics_known[METRIC_COUNT] = {
#define X(id, name, kind, first, factor, bounds) { name, kind, first, factor, bounds },
    METRICS(X)
#undef X
};

Metrics *metrics_create(void)
{
    Metrics *metrics = calloc(1, sizeof *metrics);
    if (metrics) pthread_mutex_init(&metrics->lock, NULL);
    return metrics;
}

void metrics_free(Metrics *metrics)
{
    if (!metrics) return;
    for (int i = 0; i < METRIC_COUNT; i++)
        while (metrics->cells[i]) {
            Cell *cell = metrics->cells[i];
            metrics->cells[i] = cell->next;
            free(cell->labels);
            free(cell);
        }
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
}

/* With the lock; NULL when memory runs out. */
static Cell *find_cell(Metrics *metrics, Metric metric, const char *labels)
{
    Cell **at = &metrics->cells[metric];
    for (; *at; at = &(*at)->next)
        if (!strcmp((*at)->labels, labels)) return *at;
    Cell *cell = calloc(1, sizeof *cell);
    if (!cell) return NULL;
    cell->labels = strdup(labels);
    if (!cell->labels) {
        free(cell);
        return NULL;
    }
    *at = cell;
    return cell;
}

void metrics_add(Metrics *metrics, Metric metric, double value, const char *format, ...)
{
    char    labels[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(labels, sizeof labels, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&metrics->lock);
    Cell *cell = find_cell(metrics, metric, labels);
    if (cell) {
        double bound = metrics_known[metric].first;
        int    i = 0;
        for (; i < metrics_known[metric].bounds && value >= bound; i++)
            bound *= metrics_known[metric].factor;
        cell->bucket[i]++;
        cell->count++;
        cell->sum += value;
    }
    pthread_mutex_unlock(&metrics->lock);
}

void metrics_set(Metrics *metrics, Metric metric, double value)
{
    pthread_mutex_lock(&metrics->lock);
    Cell *cell = find_cell(metrics, metric, "");
    if (cell) cell->sum = value;
    pthread_mutex_unlock(&metrics->lock);
}

const char *metrics_label(MetricsLabel *to, const char *value)
{
    size_t length = 0;
    for (int i = 0; i < 200 && value[i]; i++) {
        if (value[i] == '\\' || value[i] == '"' || value[i] == '\n') to->text[length++] = '\\';
        to->text[length++] = value[i];
        if (value[i] == '\n') to->text[length - 1] = 'n';
    }
    to->text[length] = '\0';
    return to->text;
}

static void print_histogram(Text *to, const char *name, int bounds, double bound, double factor,
                            const Cell *cell)
{
    const char *comma = *cell->labels ? "," : "";
    long long   below = 0;
    for (int i = 0; i < bounds; i++, bound *= factor) {
        below += cell->bucket[i];
        text_add(to, "%s_bucket{%s%sle=\"%g\"} %lld\n", name, cell->labels, comma, bound, below);
    }
    text_add(to, "%s_bucket{%s%sle=\"+Inf\"} %lld\n", name, cell->labels, comma, cell->count);
    text_add(to, "%s_sum{%s} %.17g\n", name, cell->labels, cell->sum);
    text_add(to, "%s_count{%s} %lld\n", name, cell->labels, cell->count);
}

void metrics_print(Metrics *metrics, Text *to)
{
    pthread_mutex_lock(&metrics->lock);
    for (int i = 0; i < METRIC_COUNT; i++) {
        const char *name = metrics_known[i].name;
        text_add(to, "# TYPE %s %s\n", name, metrics_known[i].kind);
        for (const Cell *cell = metrics->cells[i]; cell; cell = cell->next)
            if (metrics_known[i].bounds)
                print_histogram(to, name, metrics_known[i].bounds, metrics_known[i].first,
                                metrics_known[i].factor, cell);
            else
                text_add(to, "%s{%s} %.17g\n", name, cell->labels, cell->sum);
    }
    pthread_mutex_unlock(&metrics->lock);
}
