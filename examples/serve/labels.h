/* Labels of versions: --label NAME:LABEL=N. */
#ifndef CORNU_SERVE_LABELS_H
#define CORNU_SERVE_LABELS_H

#include "settings.h"

/* The version that a label of a model stands for; -1 if the model has no such label. */
int64_t labels_number(const OptionTexts *labels, const char *name, const char *label);

/* Whether a version of a model has a label. */
bool labels_has(const OptionTexts *labels, const char *name, int64_t number);

#endif
