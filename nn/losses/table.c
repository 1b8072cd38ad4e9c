/* The table of losses.def, and nothing else, so that no loss needs the others. */
#include "loss_internal.h"

static const CornuSerializableRow rows[] = {
#define LOSS(name)         { .kind = &cornu__##name##_class },
#define ALIAS(known, name) { .kind = &cornu__##name##_class, .alias = #known },
#include "losses.def"
};

const CornuSerializableTable cornu__losses = { "loss", rows, sizeof rows / sizeof *rows };
