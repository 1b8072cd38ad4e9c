/* Predictions as JSON, in the formats of TensorFlow Serving's REST interface. */
#ifndef CORNU_SERVE_ANSWER_H
#define CORNU_SERVE_ANSWER_H

#include "rows.h"

/* {"predictions": …}, or {"outputs": …} for columns, of y, an array per output. */
void answer_predict(Text *to, const Served *served, const Rows *rows, const CornuArray *y);

/* {"results": [[[label, score], …], …]}: the labels are the model's class names, else "". */
void answer_classify(Text *to, const Served *served, const CornuArray *y);

/* {"results": [number, …]} */
void answer_regress(Text *to, const CornuArray *y);

/* A GetModelMetadataResponse in JSON: the signatures of the model. */
void answer_metadata(Text *to, const Served *served);

#endif
