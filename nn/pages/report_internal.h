/* Shared by the parts of a report. */
#ifndef CORNU_NN_PAGES_REPORT_INTERNAL_H
#define CORNU_NN_PAGES_REPORT_INTERNAL_H

#include "page_internal.h"
#include "report.h"

#include "../../device/system/energy.h"
#include "../../device/tpu/topology.h"
#include "../model/model.h"

/* What a report cannot show of .x and .y is refused before the training: CORNU_ERR_SHAPE for a
 * model that is no classifier and for .y of another length than .x, CORNU_ERR_DTYPE,
 * CORNU_ERR_VALUE for a label that is no class. */
CornuStatus cornu__report_check(const CornuModel *model, const CornuReportConfig *config);

/*
 * Predicts .x of the config and sets *classes, a new reference:
 *
 *     {"of": the model's classes,
 *      "names", "counts": [[n, …], …], "scores": [{"precision", "recall", "f1", "support"}, …],
 *      "macro", "weighted", "accuracy",
 *      "samples": [{"index", "label", "predicted", "confidence", "picture": url or null}, …]}
 *
 * Names, counts and scores are those of all classes, or of the 20 that are confused most if there
 * are more than 100; the means are over all. `samples` are those of each cell that fit in, worst
 * first; label and predicted are indices of `names`. A prediction that is not a number leaves
 * {"why"}. All processes call it.
 */
CornuStatus cornu__report_classes(CornuModel *model, const CornuReportConfig *config,
                                  json_t **classes);

/* The filters of the first convolution, {"weight", "most", "pictures": [url, …]}; *filters stays as
 * it is if the model has none of 1 or 3 channels. All processes call it. */
CornuStatus cornu__report_filters(const CornuModel *model, json_t **filters);

/*
 * The model's summary and its graph, a new reference; NULL if out of memory:
 *
 *     {"layers": [{"depth", "name", "class", "output", "parameters", "frozen", "from"}, …],
 *      "edges": [[from, to], …], "branching", "trainable", "others"}
 *
 * Edges are pairs of indices of layers of depth 0; none of a model whose calls are code.
 */
json_t *cornu__report_model(const CornuModel *model);

/* ---- Cost ---- */

typedef struct {
    CornuEnergyMeter meter;
    double           begin_s, seconds;       /* of the run: measured so far */
    double           processor_begin_s, processor_s;
    double           joules;                 /* of this machine; NaN: unknown */
    bool             modelled;               /* the rest is known */
    const CornuTpuProfile *profile;          /* of an emulated TPU, whose step is modelled */
    const char            *bound;
    int64_t                chips;
    double                 step_s;
} CornuReportCost;

/* All processes call these alike: when the training begins, after each epoch, when it ends. */
void        cornu__report_cost_begin(CornuReportCost *cost);
CornuStatus cornu__report_cost_epoch(CornuReportCost *cost, CornuModel *model);
void        cornu__report_cost_read(CornuReportCost *cost);

/* [{"name", "value": number or null, "unit", "kind", "note"}, …], a new reference, of the epochs of
 * the model's history; NULL if out of memory. A kind: measured, modelled, published or given. */
json_t *cornu__report_cost(const CornuReportCost *cost, const CornuModel *model,
                           double price_per_hour);

/* ---- A report as its training goes on ---- */

/* The report of a training that goes on: the callback of report.h, and the first member of one that
 * shows the same otherwise. */
typedef struct {
    CornuCallback     base;
    CornuReportConfig config;       /* its texts are copies */
    const char      **name;         /* of the classes */
    char              started[32];
    double           *rates;        /* the learning rate at the end of each epoch, by its index */
    int               rate_space;
    bool              ended;
    CornuReportCost   cost;
    json_t           *classes, *filters;   /* once the training has ended */
} CornuReport;

/* Copies the config, of which the file name may be NULL; hooks are the caller's to set. Clear it in
 * any case. CORNU_ERR_ARGUMENT, after the name of `who`, for x without y and a price below 0. */
CornuStatus cornu__report_init(CornuReport *report, const char *who,
                               const CornuReportConfig *config);
void        cornu__report_clear(CornuReport *report);

/* To be called by the hooks of train_begin, of epoch_end, and of train_end, on all processes: these
 * check .x and .y, note the learning rate and the cost, and predict the classes. */
CornuStatus cornu__report_train_begin(CornuReport *report, const CornuModel *model);
CornuStatus cornu__report_note_epoch(CornuReport *report, CornuModel *model);
CornuStatus cornu__report_train_end(CornuReport *report, CornuModel *model);

/* What the page shows now, a new reference; on ranks that do not write NULL. With `sums`, which all
 * processes agree on, the weights' SHA-256 is in it: that reads all of them. */
CornuStatus cornu__report_data(const CornuReport *report, CornuModel *model, bool sums,
                               json_t **data);

#endif
