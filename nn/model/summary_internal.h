/* What a summary says of a model, for its table on a terminal and for pages. */
#ifndef CORNU_NN_SUMMARY_INTERNAL_H
#define CORNU_NN_SUMMARY_INTERNAL_H

#include "../terminal/summary_table_internal.h"
#include "model.h"

/* Gathers the rows; with expand_nested those of nested models, too. Released also after a failure.
 * Names belong to the model. */
CornuStatus cornu__summary_gather(const CornuModel *model, bool expand_nested,
                                  CornuSummary *summary);
void        cornu__summary_release(CornuSummary *summary);

#endif
