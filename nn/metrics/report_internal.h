/* Scores of classes from their sums, for matrices and for reports that need none. */
#ifndef CORNU_NN_METRICS_REPORT_INTERNAL_H
#define CORNU_NN_METRICS_REPORT_INTERNAL_H

#include "report.h"

/* Label i of u8, i32 or i64. */
int64_t cornu__label_at(CornuArray labels, int64_t i);

/* Samples of a class: predicted as it is, predicted as this class, and all of it. */
typedef struct {
    int64_t right, predicted, support;
} CornuClassSums;

CornuClassScores cornu__scores_of(CornuClassSums sums);

/* The means of the scores, as cornu_class_scores has them. */
void cornu__mean_scores(const CornuClassSums *sums, int64_t classes, CornuClassScores *macro,
                        CornuClassScores *weighted, double *accuracy);

#endif
