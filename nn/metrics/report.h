/*
 * The confusion matrix of a classifier, and a report on each class.
 *
 *     int64_t          counts[10 * 10];
 *     const CornuArray confusion = cornu_array(counts, CORNU_I64, 10, 10);
 *     cornu_evaluate(model, .x = x, .y = y, .to = predictions);
 *     cornu_confusion(predictions, y, confusion);
 *     cornu_report_print(confusion, names, 4, stdout);
 *
 * For a class with TP true positives, FP false positives and FN false negatives:
 *     precision = TP / (TP + FP)     recall = TP / (TP + FN)     F1 = 2 TP / (2 TP + FP + FN)
 * A quotient with divisor 0 counts as 0, in the averages too.
 * Source: sklearn/metrics/_classification.py, classification_report with all labels given and
 * zero_division=0.
 */
#ifndef CORNU_NN_REPORT_H
#define CORNU_NN_REPORT_H

#include <stdio.h>

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The class that a row predicts: the first of the largest value, as in the metric "accuracy"; -1 if
 * one of them is NaN. */
int64_t cornu_predicted_class(const float *row, int64_t classes);

/*
 * Counts samples: row is the true class, column the predicted one.
 *   predictions f32 (N, classes); cornu_predicted_class of each row counts
 *   labels      u8, i32 or i64, N elements, each in [0, classes)
 *   counts      i64 (classes, classes), written; the caller's
 * CORNU_ERR_SHAPE, CORNU_ERR_DTYPE, or CORNU_ERR_VALUE for a label out of range and for a
 * prediction that is NaN.
 */
CornuStatus cornu_confusion(CornuArray predictions, CornuArray labels, CornuArray counts);

typedef struct {
    double  precision, recall, f1;
    int64_t support;                  /* samples of the class */
} CornuClassScores;

/*
 * Scores from counts i64 (classes, classes), none of them negative.
 *   each      classes elements, written
 *   macro     the means over the classes
 *   weighted  those weighted by support; both have the support of all
 *   accuracy  the share of the diagonal in all samples
 * CORNU_ERR_SHAPE, CORNU_ERR_DTYPE, CORNU_ERR_VALUE.
 */
CornuStatus cornu_class_scores(CornuArray counts, CornuClassScores *each, CornuClassScores *macro,
                               CornuClassScores *weighted, double *accuracy);

/* Prints a line per class, then accuracy and the averages, with `digits` (0 to 9) decimals. names:
 * one per class in UTF-8; NULL: the class numbers. If a divisor of precision, recall or F1 was 0, a
 * last line says so. Errors as cornu_class_scores. */
CornuStatus cornu_report_print(CornuArray counts, const char *const *names, int digits,
                               FILE *file);

#ifdef __cplusplus
}
#endif
#endif
