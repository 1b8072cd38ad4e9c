/*
 * Text classification: from which of two plays is a line, "Romeo and Juliet" or "Coriolanus"? The
 * model takes strings: its first layer splits them into words and looks these up. The lines are
 * those of Shakespeare's works that the plays' seven main characters speak, each fifth for the
 * test.
 * A second on two cores (AMD EPYC, Zen 4); of the test's lines, eight words each, 78 % are told
 * apart.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cornu/cornu.h>

enum { MOST = 10000, WORDS = 16 };

static const char *const speakers[2][7] = {
    { "ROMEO", "JULIET", "MERCUTIO", "BENVOLIO", "Nurse", "FRIAR LAURENCE", "CAPULET" },
    { "CORIOLANUS", "MENENIUS", "VOLUMNIA", "SICINIUS", "COMINIUS", "BRUTUS", "MARCIUS" } };

/* The play of a line "NAME:", -1 of another one. */
static int play_of(const char *line, size_t length)
{
    for (int play = 0; play < 2; play++)
        for (int i = 0; i < 7; i++)
            if (strlen(speakers[play][i]) == length && !memcmp(line, speakers[play][i], length))
                return play;
    return -1;
}

int main(void)
{
    static const char *lines[2][MOST];   /* for training, for the test */
    static uint8_t     plays[2][MOST];
    int64_t            count[2] = { 0, 0 };
    CornuTextData     *works = cornu_text_load(.encoding = CORNU_TEXT_BYTES);
    if (!works) return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    const int64_t bytes = works->tokens.type.shape.extent[0];
    char         *text = calloc((size_t)bytes + 1, 1);
    if (!text) return 1;
    memcpy(text, works->tokens.data, (size_t)bytes);
    int play = -1, number = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const size_t length = strlen(line);
        if (length > 1 && line[length - 1] == ':') {
            play = play_of(line, length - 1);
        } else if (play >= 0) {
            const int part = ++number % 5 == 0;
            if (count[part] == MOST) break;
            lines[part][count[part]] = line;
            plays[part][count[part]++] = (uint8_t)play;
        }
    }
    const CornuArray x = cornu_array(lines[0], CORNU_STRING, count[0]);
    const CornuArray y = cornu_array(plays[0], CORNU_U8, count[0]);
    CornuLayer *words = cornu_text_vectorization(.max_tokens = 4000,
                                                 .output_sequence_length = WORDS);
    cornu_adapt(words, .x = x);

    CornuModel *model = cornu_sequential(.input_dtype = CORNU_STRING);
    cornu_model_add(model, words);
    cornu_model_add(model, cornu_embedding(4000, 32, .mask_zero = true));
    cornu_model_add(model, cornu_global_average_pooling1d());
    cornu_model_add(model, cornu_dropout(0.4));
    cornu_model_add(model, cornu_dense(1, .activation = CORNU_SIGMOID));
    cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 5e-3),
                  .loss = CORNU_BINARY_CROSSENTROPY, .metrics = { CORNU_ACCURACY });
    cornu_summary(model);
    CornuHistory *history = cornu_fit(
        model, .x = x, .y = y, .epochs = 4,
        .validation_data = { .x = cornu_array(lines[1], CORNU_STRING, count[1]),
                             .y = cornu_array(plays[1], CORNU_U8, count[1]) });

    const char *questions[] = { "O gentle night, thy beauty makes my heart a lover",
                                "The common people hate the consul and his noble sword" };
    float       answers[2][1];
    const bool  failed = !history || cornu_predict(
        model, .x = cornu_array(questions, CORNU_STRING, 2),
        .to = cornu_array(answers, CORNU_F32, 2, 1), .verbose = CORNU_SILENT);
    if (failed) fprintf(stderr, "%s\n", cornu_error_message());
    for (int i = 0; i < 2 && !failed; i++)
        printf("%.2f Coriolanus: %s\n", (double)answers[i][0], questions[i]);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_text_free(works);
    free(text);
    return failed;
}
