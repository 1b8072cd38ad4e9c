/*
 * Shakespeare's plays for models that predict the next character: the text from text.h, cut into
 * sequences.
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
 * x (N, T) u8 are the code points of characters, less than 256, y (N, T) those of the characters
 * that follow. Blocks of T + 1 characters without overlap; the last tenth of the text is for
 * testing. NULL with the errors of cornu_text_load, and CORNU_ERR_DATA if either part has less than
 * a block.
 */
#define cornu_shakespeare_load(...) \
    cornu_shakespeare_load_from(&(CornuTrainTestConfig){ .unset = 0, __VA_ARGS__ })
CornuTrainTest *cornu_shakespeare_load_from(const CornuTrainTestConfig *config);

#ifdef __cplusplus
}
#endif
#endif
