/*
 * Loops over time: a scan of any step, and the recurrent layers' LSTM, GRU and simple RNN. ops.h,
 * which includes this header, says what all ops have in common.
 */
#ifndef CORNU_TENSOR_RECURRENT_OPS_H
#define CORNU_TENSOR_RECURRENT_OPS_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Over time ---- */

/* A loop over steps: `carries` pass from step to step; of each of the `slices` step t gets slice t
 * along `axis`; `constants` are the same for all steps. */
typedef struct {
    CornuTensor *const *carries, *const *slices, *const *constants;
    int   carry_count, slice_count, constant_count;
    int   axis;
    int   stacked_count;   /* results of each step that are stacked along `axis` */
    int64_t steps;         /* if there are no slices, whose extent it would be */
    bool  reverse;         /* from the last step to the first */
} CornuScan;

/* Records one step in a graph of its own, in which `in` are the carries, one slice of each of the
 * slices (without the axis), and the constants. Fills `out` with the next carries, of the same
 * types, then with the results to be stacked. A step can use no other tensors, no variables and no
 * all_reduce. */
typedef void CornuScanStep(void *context, CornuTensor *const *in, CornuTensor **out);

/* Fills `out` with the last carries, then the stacked results, whose slice t along `axis` is from
 * step t. Calls `step` once. The gradient is a scan in reverse, for which the carries of every step
 * are kept: memory is linear in the number of steps. That of a constant which multiplies rows, as a
 * cell's kernel does, is one product over all steps, whose operands are kept, too. At most 24
 * operands and 12 results, carries counted twice. false with a pending error. */
bool cornu_op_scan(const CornuScan *scan, CornuScanStep *step, void *context, CornuTensor **out);

/* Options of the recurrent ops below. */
typedef CornuTensor *CornuActivate(const void *context, CornuTensor *x);
typedef struct {
    /* (B, T) bool: a step where it is false keeps the state and returns the previous h. NULL: all
     * true. */
    CornuTensor *mask;
    /* (B, G U) for G gates, constant over time: the factors of h for each gate, applied before the
     * product with the kernel. NULL: 1. Gal and Ghahramani, "A Theoretically Grounded Application
     * of Dropout in Recurrent Neural Networks", arXiv 1512.05287. */
    CornuTensor *recurrent_dropout;
    CornuActivate *activation, *recurrent_activation;   /* NULL: tanh, sigmoid */
    const void    *activation_context, *recurrent_context;
    /* If recurrent_activation is NULL: a slope other than 0 selects the hard sigmoid
     * min(max(gate_slope x + 0.5, 0), 1), which is as fast as the sigmoid. */
    double         gate_slope;
    bool           reverse;   /* from the last step to the first; h of step t is still at t */
} CornuRecurrence;

/* z (B, T, 4U): the products of the input with its kernel plus the bias, gates i f c o; kernel
 * (U, 4U); h0, c0 (B, U); gives h (B, T, U) and, unless last_c is NULL, the last c (B, U):
 *     i, f, o = sigmoid(z + h U)   g = tanh(z + h U)   c' = f c + i g   h' = o tanh(c')
 * c0 may be f32 if the rest is narrower; c is then kept in f32. `recurrence` may be NULL.
 * Source: keras/src/layers/rnn/lstm.py; Hochreiter and Schmidhuber, Neural Computation 9(8), 1997;
 * Gers, Schmidhuber and Cummins, "Learning to Forget", 2000. */
CornuTensor *cornu_op_lstm(CornuTensor *z, CornuTensor *kernel, CornuTensor *h0, CornuTensor *c0,
                           const CornuRecurrence *recurrence, CornuTensor **last_c);

/* x (B, T, 3U): products of the input with its kernel plus the bias, gates z r h; kernel (U, 3U);
 * bias (3U), added to the product of h with the kernel, or NULL; h0 (B, U); gives h (B, T, U):
 *     z, r = sigmoid(x + h U + bias)   h' = z h + (1 - z) g
 *     g = tanh(x + r (h U + bias)) with reset_after, else tanh(x + (r h) U + bias)
 * Source: keras/src/layers/rnn/gru.py; Cho et al., "Learning Phrase Representations using RNN
 * Encoder-Decoder", arXiv 1406.1078, versions 3 and 1. */
CornuTensor *cornu_op_gru(CornuTensor *x, CornuTensor *kernel, CornuTensor *bias, CornuTensor *h0,
                          bool reset_after, const CornuRecurrence *recurrence);

/* z (B, T, U), kernel (U, U), h0 (B, U); gives h (B, T, U): h' = tanh(z + h U).
 * Source: keras/src/layers/rnn/simple_rnn.py. */
CornuTensor *cornu_op_simple_rnn(CornuTensor *z, CornuTensor *kernel, CornuTensor *h0,
                                 const CornuRecurrence *recurrence);

#ifdef __cplusplus
}
#endif
#endif
