/* Sequences of several lengths as one array, as Keras' pad_sequences makes it. */
#ifndef CORNU_DATASETS_SEQUENCES_H
#define CORNU_DATASETS_SEQUENCES_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a sequence is padded, or cut. */
typedef enum { CORNU_PRE, CORNU_POST } CornuSequenceSide;

typedef struct {
    char              unset;
    const CornuArray *sequences;   /* required: (T) or (T, …), T from 0 on, alike but for T */
    int64_t           count;       /* required: how many they are */
    int64_t           maxlen;      /* default that of the longest */
    const char       *dtype;       /* Keras' name: default "int32"; "float32", "uint8", … */
    CornuSequenceSide padding, truncating;
    double            value;       /* that they are padded with */
    CornuArray       *to;          /* required: gets (count, maxlen, …) */
} CornuPadSequencesConfig;

/*
 * Sequences shorter than maxlen are padded, longer ones cut: at their beginning, or where the
 * arguments say.
 *
 *     CornuArray x;
 *     cornu_pad_sequences(sequences, 100, .padding = CORNU_POST, .to = &x);
 *
 * free() frees x.data. CORNU_ERR_SHAPE for sequences that are not alike, or all empty where maxlen
 * is not given; CORNU_ERR_VALUE naming the sequence and a number that the dtype does not hold.
 * Source: keras/src/utils/sequence_utils.py.
 */
CornuStatus cornu_pad_sequences_from(const CornuPadSequencesConfig *config);
#define cornu_pad_sequences(...) \
    cornu_pad_sequences_from(&(CornuPadSequencesConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
