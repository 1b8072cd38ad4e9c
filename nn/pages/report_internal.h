/* Shared by the parts of a report. */
#ifndef CORNU_NN_PAGES_REPORT_INTERNAL_H
#define CORNU_NN_PAGES_REPORT_INTERNAL_H

#include "page_internal.h"
#include "report.h"

#include "../model/model.h"

/* CORNU_ERR_SHAPE for a model whose classes a report does not show, before it is trained. */
CornuStatus cornu__report_check(const CornuModel *model);

/*
 * Predicts .x of the config and sets *classes, a new reference:
 *
 *     {"names", "counts": [[n, …], …], "scores": [{"precision", "recall", "f1", "support"}, …],
 *      "macro", "weighted", "accuracy",
 *      "samples": [{"index", "label", "predicted", "confidence", "picture": url or null}, …]}
 *
 * `samples` are those of each cell that fit in, worst first. All processes call it.
 */
CornuStatus cornu__report_classes(CornuModel *model, const CornuReportConfig *config,
                                  json_t **classes);

/* The filters of the first convolution, {"weight", "most", "pictures": [url, …]}; *filters stays as
 * it is if the model has none of 1 or 3 channels. All processes call it. */
CornuStatus cornu__report_filters(const CornuModel *model, json_t **filters);

#endif
