/*
 * Which classes a classifier confuses, and a report on each of them.
 *
 *     int64_t          counts[10 * 10];
 *     const CornuArray confusion = cornu_array(counts, CORNU_I64, 10, 10);
 *     cornu_evaluate(model, .x = x, .y = y, .to = predictions);
 *     cornu_confusion(predictions, y, confusion);
 *     cornu_report_print(confusion, names, 4, stdout);
 *
 * For a class with TP samples of it predicted as it, FP others predicted as it, and FN of it
 * predicted as others:
 *     precision = TP / (TP + FP)     recall = TP / (TP + FN)     F1 = 2 TP / (2 TP + FP + FN)
 * and a quotient whose divisor is 0 counts as 0, in the averages too.
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

/* What a row of predictions says: the first class of the largest number, as it is for the metric
 * "accuracy"; -1 if one of them is no number. */
int64_t cornu_predicted_class(const float *row, int64_t classes);

/*
 * Counts samples: row is the true class, column the predicted one.
 *   predictions f32 (N, classes); cornu_predicted_class says what a row stands for
 *   labels      u8, i32 or i64, N elements, each in [0, classes)
 *   counts      i64 (classes, classes), written; the caller's
 * CORNU_ERR_SHAPE, CORNU_ERR_DTYPE, or CORNU_ERR_VALUE for a label out of range and for a
 * prediction that is no number.
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
 *   accuracy  the diagonal's part of all samples
 * CORNU_ERR_SHAPE, CORNU_ERR_DTYPE, CORNU_ERR_VALUE.
 */
CornuStatus cornu_class_scores(CornuArray counts, CornuClassScores *each, CornuClassScores *macro,
                               CornuClassScores *weighted, double *accuracy);

/* Prints a line per class, then accuracy and the averages, with so many digits (0 to 9) behind the
 * point. names: one for each class in UTF-8, NULL for their numbers. Where a precision, recall or
 * F1 had nothing to divide by, a last line says so. Errors as cornu_class_scores. */
CornuStatus cornu_report_print(CornuArray counts, const char *const *names, int digits,
                               FILE *file);

#ifdef __cplusplus
}
#endif
#endif
