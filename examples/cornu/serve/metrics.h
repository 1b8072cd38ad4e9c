/*
 * Figures for Prometheus, under the names of TensorFlow Serving where it has them: counters and
 * histograms with the labels of each line. All functions are thread-safe.
 */
#ifndef CORNU_SERVE_METRICS_H
#define CORNU_SERVE_METRICS_H

#include "json/text.h"

/* id, name, kind: 0 a counter or gauge, else the first bound of a histogram, the factor from one
 * bound to the next and their number. Sources in tensorflow/serving: servables/tensorflow/util.cc,
 * batching/batching_session.cc, batching/batching_util.h. The names that begin with "cornu" are our
 * own. */
#define METRICS(X)                                                                          \
    X(REQUESTS,        ":tensorflow:serving:request_count", "counter", 0, 0, 0)             \
    X(REQUEST_LATENCY, ":tensorflow:serving:request_latency", "histogram", 10, 1.8, 33)     \
    X(RUNTIME_LATENCY, ":tensorflow:serving:runtime_latency", "histogram", 10, 1.8, 33)     \
    X(EXAMPLES,        ":tensorflow:serving:request_example_counts", "histogram", 1, 2, 15) \
    X(EXAMPLES_TOTAL,  ":tensorflow:serving:request_example_count_total", "counter", 0, 0, 0) \
    X(QUEUING_LATENCY, ":tensorflow:serving:batching_session:queuing_latency", "histogram", \
      100, 1.2, 52)                                                                         \
    X(INPUT_SIZE,      ":tensorflow:serving:batching_session:input_batch_size",             \
      "histogram", 1, 2, 14)                                                                \
    X(BATCH_SIZE,      ":tensorflow:serving:batching_session:processed_batch_size",         \
      "histogram", 1, 2, 14)                                                                \
    X(QUEUE,           "cornu_serve_queue_length", "gauge", 0, 0, 0)                        \
    X(CONNECTIONS,     "cornu_serve_connections", "gauge", 0, 0, 0)

typedef enum {
#define X(id, ...) METRIC_##id,
    METRICS(X)
#undef X
    METRIC_COUNT
} Metric;

typedef struct Metrics Metrics;

Metrics *metrics_create(void);
void     metrics_free(Metrics *metrics);

/* Adds to a counter, or an observation to a histogram: microseconds, or a number. `format` gives
 * the labels, as in `model_name="%s",status="OK"`; in a name, metrics_label. */
void metrics_add(Metrics *metrics, Metric metric, double value, const char *format, ...);
void metrics_set(Metrics *metrics, Metric metric, double value);

/* A label's value with what must be escaped, cut to 200 bytes. */
typedef struct { char text[408]; } MetricsLabel;
const char *metrics_label(MetricsLabel *to, const char *value);

/* The page, in Prometheus' text format. */
void metrics_print(Metrics *metrics, Text *to);

#endif
