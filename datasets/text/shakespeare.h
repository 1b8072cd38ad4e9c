/*
 * Plays of Shakespeare for models that predict the next character: the text that text.h reads,
 * cut into sequences.
 *
 *     CornuTrainTest *shakespeare = cornu_shakespeare_load(.limit = 1000);
 */
#ifndef CORNU_DATASETS_SHAKESPEARE_H
#define CORNU_DATASETS_SHAKESPEARE_H

#include "../pipeline/train_test.h"

#ifdef __cplusplus
extern "C" {
#endif

/* T, as in tensorflow/tpu, tools/colab/shakespeare_with_tpu_and_keras.ipynb. */
enum { CORNU_SHAKESPEARE_STEPS = 100 };

/*
 * x (N, T) u8 are characters as their code points, y (N, T) those that follow each, below 256.
 * Blocks of T + 1 characters without overlap; the last tenth of the text is for testing. NULL
 * with what cornu_text_load says, and CORNU_ERR_DATA for a text of less than a block in either
 * part.
 */
#define cornu_shakespeare_load(...) \
    cornu_shakespeare_load_from(&(CornuTrainTestConfig){ .unset = 0, __VA_ARGS__ })
CornuTrainTest *cornu_shakespeare_load_from(const CornuTrainTestConfig *config);

#ifdef __cplusplus
}
#endif
#endif
