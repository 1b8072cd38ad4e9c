/* A residual network on images made here: is the spot left, in the middle or right? */
#include <stdio.h>
#include <stdlib.h>
#include <cornu/cornu.h>

static CornuSymbol *conv(CornuSymbol *x, int filters)
{
    return cornu_call(cornu_conv2d(filters, 3, .padding = CORNU_SAME, .activation = CORNU_RELU), x);
}

int main(void)
{
    static uint8_t x[900][12][12], y[900];
    for (int i = 0; i < 900; i++) {
        y[i] = (uint8_t)(i % 3);
        for (int p = 0; p < 144; p++) x[i][p / 12][p % 12] = (uint8_t)(rand() % 60);
        const int row = rand() % 10, column = 4 * (i % 3) + rand() % 3;
        x[i][row][column] = x[i][row + 1][column] = x[i][row][column + 1] = 250;
    }
    CornuSymbol *in = cornu_input(.shape = { 12, 12, 1 }, .scale = 1.0 / 255);
    CornuSymbol *a = conv(in, 8), *b = cornu_call(cornu_add(), a, conv(conv(a, 8), 8));
    CornuSymbol *flat = cornu_call(cornu_flatten(), cornu_call(cornu_max_pooling2d(2), b));
    CornuSymbol *out = cornu_call(cornu_dense(3, .activation = CORNU_SOFTMAX), flat);
    CornuModel *model = cornu_model(.inputs = { in }, .outputs = { out }, .name = "residual");
    cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.003),
                  .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, .metrics = { CORNU_ACCURACY });
    CornuHistory *history = cornu_fit(model, .x = cornu_array(x, CORNU_U8, 900, 12, 12, 1),
                                      .y = cornu_array(y, CORNU_U8, 900), .epochs = 8,
                                      .validation_split = 0.2, .verbose = CORNU_LINES);
    if (!history) return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    cornu_model_save(model, "spots.safetensors");
    cornu_history_free(history);
    cornu_model_free(model);
}
