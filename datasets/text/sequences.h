/* Sequences of different lengths in one array, as Keras' pad_sequences. */
#ifndef CORNU_DATASETS_SEQUENCES_H
#define CORNU_DATASETS_SEQUENCES_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The side on which a sequence is padded or truncated. */
typedef enum { CORNU_PRE, CORNU_POST } CornuSequenceSide;

typedef struct {
    char              unset;
    const CornuArray *sequences;   /* required: (T) or (T, …), equal but for T, which may be 0 */
    int64_t           count;       /* required: their number */
    int64_t           maxlen;      /* default the longest length */
    const char       *dtype;       /* Keras' name: default "int32"; "float32", "uint8", … */
    CornuSequenceSide padding, truncating;
    double            value;       /* of the padding */
    CornuArray       *to;          /* required: gets (count, maxlen, …) */
} CornuPadSequencesConfig;

/*
 * Sequences shorter than maxlen are padded and longer ones truncated, by default at the start.
 *
 *     CornuArray x;
 *     cornu_pad_sequences(sequences, 100, .padding = CORNU_POST, .to = &x);
 *
 * Free x.data with free(). CORNU_ERR_SHAPE for sequences of different shapes, or if all are empty
 * and maxlen is not given; CORNU_ERR_VALUE, naming the sequence, for a value that overflows the
 * dtype.
 * Source: keras/src/utils/sequence_utils.py.
 */
CornuStatus cornu_pad_sequences_from(const CornuPadSequencesConfig *config);
#define cornu_pad_sequences(...) \
    cornu_pad_sequences_from(&(CornuPadSequencesConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
