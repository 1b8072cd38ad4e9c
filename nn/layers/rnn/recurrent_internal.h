/* Recurrent layers: a cell, and its run over time. */
#ifndef CORNU_NN_LAYERS_RECURRENT_INTERNAL_H
#define CORNU_NN_LAYERS_RECURRENT_INTERNAL_H

#include "../layer_internal.h"

/* What a kind of cell does. A cell is a layer: of RNN it is the inner one, an LSTM is its own. */
typedef struct CornuCell {
    /* The number of states, at most CORNU_MAX_LAYER_STATES. */
    int (*states)(const CornuLayer *cell);
    /* The shape of state i for an input x (B, T, …); the first extent is the batch. */
    CornuShape (*state_shape)(const CornuLayer *cell, int i, CornuShape x);
    /* Records all steps of x (B, T, …), the last one first if `reverse`: returns the outputs, in
     * the order of time, and fills `last` with the final states. `first` are the initial ones, f32,
     * all NULL for zeros.
     * A step where call->mask (B, T) is false keeps the states and repeats the output. */
    CornuTensor *(*run)(CornuLayer *cell, const CornuCall *call, CornuTensor *x,
                        CornuTensor *const *first, bool reverse, CornuTensor **last);
    /* Fills in the states of a batch with which it begins, f32, where they are not zeros, which are
     * NULL. May be NULL. */
    CornuStatus (*begin)(CornuLayer *cell, const CornuCall *call, int64_t rows,
                         CornuTensor **first);
    bool apart;   /* the output of a step is no state: h of an LSTM is one */
} CornuCell;

/* An LSTM, GRU or SimpleRNN, or the cell of one. */
typedef struct {
    CornuLayer           base;
    CornuRecurrentConfig config;   /* resolved */
} CornuRecurrent;

/* Whether it runs a cell over time, as RNN does. */
bool cornu__is_recurrent(const CornuLayer *layer);

/* Whether it is a cell that RNN takes. */
bool cornu__is_cell(const CornuLayer *layer);

/* The cell of a layer that is recurrent. */
CornuLayer *cornu__cell_of(const CornuLayer *layer);

static inline const CornuCell *cornu__cell(const CornuLayer *cell) { return cell->kind->family; }

/* ---- Over time (over_time.c) ---- */

/* An argument that all recurrent layers have, by Keras' name: return_sequences, return_state,
 * go_backwards, stateful, unroll, zero_output_for_mask. */
bool *cornu__over_time(const CornuLayer *layer, const char *argument);

/* For class tables: the rows of these arguments. */
#define CORNU__OVER_TIME_FIELDS(Config)                                                    \
    { "return_sequences", CORNU_FIELD_FLAG, offsetof(Config, return_sequences) },          \
    { "return_state", CORNU_FIELD_FLAG, offsetof(Config, return_state) },                  \
    { "go_backwards", CORNU_FIELD_FLAG, offsetof(Config, go_backwards) },                  \
    { "stateful", CORNU_FIELD_FLAG, offsetof(Config, stateful) },                          \
    { "unroll", CORNU_FIELD_FLAG, offsetof(Config, unroll) },                              \
    { "zero_output_for_mask", CORNU_FIELD_FLAG, offsetof(Config, zero_output_for_mask) }

/* For class tables: calls of recurrent layers, on x and, if given, the initial states. */
CornuTensor *cornu__over_time_call(CornuLayer *layer, const CornuCall *call,
                                   CornuTensor *const *in, int in_count, CornuTensor **out);
CornuTensor *cornu__over_time_continue(CornuLayer *layer, const CornuCall *call,
                                       CornuTensor *const *in, int in_count, CornuTensor **out);
int          cornu__over_time_outputs(const CornuLayer *layer);
CornuTensor *cornu__over_time_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x);

/* For kind->build: builds inner layer i, a cell, for steps of this shape. */
CornuStatus cornu__build_cell(CornuLayer *layer, int i, CornuShape step);

/* For class tables: calls of cells, on one step x (B, …) and, if given, the states. The outputs are
 * Keras': the output and the next states. */
CornuTensor *cornu__cell_call(CornuLayer *cell, const CornuCall *call, CornuTensor *const *in,
                              int in_count, CornuTensor **out);
int          cornu__cell_outputs(const CornuLayer *cell);

/* new (B, …) where the mask (B) is true, else old; new without a mask. */
CornuTensor *cornu__where_valid(CornuTensor *mask, CornuTensor *new, CornuTensor *old);

/* For CornuCell: `run` of a layer that is called on a step and its states, and returns the output
 * and the next states (steps.c). A step that needs nothing but those and weights becomes the body
 * of a loop; else all steps are recorded, at most 4096. */
CornuTensor *cornu__run_steps(CornuLayer *cell, const CornuCall *call, CornuTensor *x,
                              CornuTensor *const *first, bool reverse, CornuTensor **last);

/* h (B, T, …) at the step that was processed last, (B, …). */
CornuTensor *cornu__last_step(CornuTensor *h, bool reverse);

/* ---- LSTM, GRU and SimpleRNN (gates.c) ---- */

/* A cell over all steps is a function "lstm", "gru" or "simple_rnn" (tensor/functions/README.md).
 * Operands: x (B, T, C), kernel, recurrent kernel, then, where they are given, the bias, h and, of
 * an LSTM, c, and the mask (B, T). Results: h of all steps, in the order of time, (B, T, U), the
 * last h and, of an LSTM, the last c. Numbers: of gates (4, 3, 1), CornuActivation, flags. */
enum { CORNU_RNN_GATES, CORNU_RNN_ACTIVATION, CORNU_RNN_GATE_ACTIVATION, CORNU_RNN_REVERSE,
       CORNU_RNN_RESET_AFTER, CORNU_RNN_BIAS, CORNU_RNN_STATES, CORNU_RNN_MASK,
       CORNU_RNN_NUMBERS };

int         cornu__gates_count(const CornuLayer *layer);
CornuStatus cornu__gates_build(CornuLayer *layer, int64_t channels);
extern const CornuCell cornu__lstm_gates, cornu__gru_gates, cornu__simple_rnn_gates;

/* For kind->build: ones for the forget gate, the second of four in the bias. */
CornuStatus cornu__forget_bias(CornuWeight *bias);

/* Columns first to first + count - 1 of random numbers (B, N) as factors of dropout: 0 where the
 * number is below the rate, else 1 / (1 - rate). */
CornuTensor *cornu__dropout_factors(const CornuLayer *layer, CornuTensor *uniform, int64_t first,
                                    int64_t count, double rate);

#endif
