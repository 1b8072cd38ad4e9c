/*
 * Text, character by character: an LSTM learns to foretell the next character of Shakespeare's
 * plays, and then writes on its own, from what it has in its states of the characters before
 * (tensorflow/tpu, tools/colab/shakespeare_with_tpu_and_keras.ipynb, with a smaller network).
 * Six epochs take 75 seconds on two cores (AMD EPYC, Zen 4); the validation loss is 1.63 nats per
 * character.
 */
#include <stdio.h>

#include <cornu/cornu.h>

static bool show(void *context, int64_t character)
{
    (void)context;
    return putchar((int)character) != EOF;
}

int main(void)
{
    /* Blocks of 100 characters, and for each of these the one that follows */
    CornuTrainTest *plays = cornu_shakespeare_load();
    if (!plays) return fprintf(stderr, "%s\n", cornu_error_message()), 1;

    /* u8 characters (B, 100) to the probabilities of the next ones (B, 100, 256). */
    CornuModel *model = cornu_sequential(.name = "shakespeare_lstm",
                                         .input_shape = { CORNU_SHAKESPEARE_STEPS });
    cornu_model_add(model, cornu_embedding(256, 64));
    cornu_model_add(model, cornu_lstm(256, .return_sequences = true));
    cornu_model_add(model, cornu_time_distributed(cornu_dense(256, .activation = CORNU_SOFTMAX)));
    cornu_summary(model);
    cornu_compile(model, .optimizer = cornu_rmsprop(.learning_rate = 0.01),
                  .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, .metrics = { CORNU_ACCURACY });
    CornuHistory *history = cornu_fit(
        model, .x = plays->train_x, .y = plays->train_y, .batch_size = 32, .epochs = 6,
        .validation_data = { .x = plays->test_x, .y = plays->test_y });
    if (!history) return fprintf(stderr, "%s\n", cornu_error_message()), 1;

    fputs("ROMEO:\n", stdout);
    uint8_t    prime[] = { 'R', 'O', 'M', 'E', 'O', ':', '\n' };
    const bool written = !cornu_generate(model, cornu_array(prime, CORNU_U8, sizeof prime), 500,
                                         .temperature = 0.8, .emit = show);
    if (!written) return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    printf("\n\nValidation loss: %.4f nats per character\n",
           cornu_history_get(history, "val_loss", cornu_history_epochs(history) - 1));

    cornu_history_free(history);
    cornu_model_free(model);
    cornu_train_test_free(plays);
}
