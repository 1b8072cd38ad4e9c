/* The table of metrics.def, apart so that no metric depends on the others. */
#include "metric_internal.h"

static const CornuSerializableRow rows[] = {
#define METRIC(name)       { .kind = &cornu__##name##_class },
#define ALIAS(known, name) { .kind = &cornu__##name##_class, .alias = #known },
#define ARGUMENTS(name)    { .kind = &cornu__##name##_class, .needs_arguments = true },
#include "metrics.def"
};

const CornuSerializableTable cornu__metrics = { "metric", rows, sizeof rows / sizeof *rows };
