/* The table of losses.def, apart so that no loss depends on the others. */
#include "loss_internal.h"

static const CornuSerializableRow rows[] = {
#define LOSS(name)         { .kind = &cornu__##name##_class },
#define ALIAS(known, name) { .kind = &cornu__##name##_class, .alias = #known },
#include "losses.def"
};

const CornuSerializableTable cornu__losses = { "loss", rows, sizeof rows / sizeof *rows };
