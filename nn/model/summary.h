/*
 * model.summary(): a table of the model's layers, byte for byte as Keras prints it. Bold and
 * colours only on a terminal; the box is drawn with + - | where the locale is not UTF-8.
 *
 *     cornu_summary(model);
 *     cornu_summary(model, .line_length = 100, .show_trainable = true);
 *
 * Source: keras/src/utils/summary_utils.py.
 */
#ifndef CORNU_NN_SUMMARY_H
#define CORNU_NN_SUMMARY_H

#include "model.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char        unset;
    CornuModel *model;             /* required */
    int64_t     line_length;       /* default: the terminal's columns - 4, at most 88 */
    bool        show_trainable;    /* one more column */
    bool        expand_nested;     /* lists the layers of nested models, "└ " before their names */
    FILE       *file;              /* default stdout */
    /* Gets the whole text, plain, instead of the file. */
    void      (*print_fn)(void *context, const char *text);
    void       *print_context;
} CornuSummaryConfig;

/* Keras' model.summary(): a table of the layers, their output shapes and parameters. */
CornuStatus cornu_summary_from(const CornuSummaryConfig *config);
#define cornu_summary(...) cornu_summary_from(&(CornuSummaryConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
