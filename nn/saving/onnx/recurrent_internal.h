/* Recurrent layers in ONNX files: the operators LSTM, GRU and RNN where they can, else Scan, a loop
 * whose body is one step. */
#ifndef CORNU_NN_ONNX_RECURRENT_INTERNAL_H
#define CORNU_NN_ONNX_RECURRENT_INTERNAL_H

#include <string.h>

#include "rules_internal.h"

/* A cell over all steps. */
typedef struct {
    CornuOnnx        *to;
    const CornuLayer *cell;
    int               x, mask;         /* (B, T, …) and (B, T), or none */
    CornuShape        shape;           /* of x */
    bool              reverse;         /* from the last step to the first */
    bool              wanted_steps;    /* whether y is read */
    bool              wanted_states;   /* whether states are; last[0] is set if y is not read */
    CornuShape        state;           /* of a state in a Scan */
    const int        *first;           /* the initial states (B, …), or NULL: zeros */
    int               y;               /* (B, T, …), in the order of time */
    int               last[CORNU_MAX_LAYER_STATES];
} CornuOnnxRun;

/* The number of gates of an LSTM, GRU or SimpleRNN or of its cell: 4, 3 or 1. */
static inline int cornu__onnx_gates(const CornuLayer *cell)
{
    const char *name = cell->kind->class_name;
    return !strncmp(name, "LSTM", 4) ? 4 : !strncmp(name, "GRU", 3) ? 3 : 1;
}

/* Whether ONNX has an operator that computes it; and its node. */
bool        cornu__onnx_has_operator(const CornuOnnxRun *run);
CornuStatus cornu__onnx_run_operator(CornuOnnxRun *run);

/* As a Scan: of gates, or a ConvLSTM. */
CornuStatus cornu__onnx_scan_gates(CornuOnnxRun *run);
CornuStatus cornu__onnx_scan_convolutions(CornuOnnxRun *run);

#endif
