/* The rows of a request: arrays for the inputs of a model, made of JSON. */
#ifndef CORNU_SERVE_ROWS_H
#define CORNU_SERVE_ROWS_H

#include "json.h"
#include "../models/served.h"

typedef struct {
    int64_t    count;
    CornuArray x[CORNU_MAX_MODEL_TENSORS];  /* of each input, of its rank; data are owned */
    char      *text[CORNU_MAX_MODEL_TENSORS];   /* of strings; owned */
    int        x_count;
    bool       columns;                     /* "inputs" came, so "outputs" go */
    bool       squeezed;                    /* a trailing axis of extent 1 was left out */
} Rows;

void rows_free(Rows *rows);

/* "[2,3]", with -1 for an open extent. */
const char *rows_show_shape(char text[200], const int64_t *extent, int rank);

/* The rows of predict, "instances" or "inputs"; of classify and regress, "examples". All zeros
 * before; to be freed also on failure. */
bool rows_of_predict(Rows *rows, const Served *served, Json request, Problem *problem);
bool rows_of_examples(Rows *rows, const Served *served, Json request, Problem *problem);

#endif
