/* Recurrent layers, for Bidirectional. */
#ifndef CORNU_NN_LAYERS_RECURRENT_INTERNAL_H
#define CORNU_NN_LAYERS_RECURRENT_INTERNAL_H

#include "../layer_internal.h"

/* An LSTM, GRU or SimpleRNN. */
typedef struct {
    CornuLayer           base;
    CornuRecurrentConfig config;   /* resolved */
} CornuRecurrent;

bool cornu__is_recurrent(const CornuLayer *layer);

#endif
