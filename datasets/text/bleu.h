/* BLEU: how close translations are to those of people. */
#ifndef CORNU_DATASETS_BLEU_H
#define CORNU_DATASETS_BLEU_H

#include <stdint.h>

#include "../../device/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    double  score;             /* 0 to 100 */
    double  precisions[4];     /* of 1 to 4 words, in percent, smoothed */
    double  brevity_penalty;
    int64_t length, reference_length;   /* in words */
} CornuBleu;

/*
 * The score of a corpus with one reference for each translation, by SacreBLEU's defaults: the
 * tokens of mteval-v13a, case kept, n-grams of up to four words, exponential smoothing.
 * CORNU_ERR_MEMORY; CORNU_ERR_ARGUMENT for no sentences.
 * Source: Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine Translation",
 * section 2.3; Post, "A Call for Clarity in Reporting BLEU Scores"; smoothing: Chen and Cherry,
 * "A Systematic Comparison of Smoothing Techniques for Sentence-Level BLEU", technique 3.
 */
CornuStatus cornu_bleu(const char *const *translations, const char *const *references,
                       int64_t count, CornuBleu *to);

#ifdef __cplusplus
}
#endif
#endif
