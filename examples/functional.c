/*
 * The functional API: layers called on symbols, two inputs, two outputs, residual blocks, and a
 * trunk that both inputs share. The network is shown two handwritten digits at a time and says what
 * their sum is, and whether the first is the larger one.
 * Six epochs take 20 seconds on two cores (AMD EPYC, Zen 4); 97.6 % of the test's sums are right,
 * 98.9 % of the comparisons.
 */
#include <stdio.h>

#include <cornu/cornu.h>

/* Two convolutions, to whose result the input is added. */
static CornuSymbol *residual(CornuSymbol *x, int64_t filters)
{
    CornuSymbol *y = cornu_call(cornu_conv2d(filters, 3, .padding = CORNU_SAME,
                                             .activation = CORNU_RELU), x);
    y = cornu_call(cornu_conv2d(filters, 3, .padding = CORNU_SAME), y);
    return cornu_call(cornu_activation(CORNU_RELU), cornu_call(cornu_add(), x, y));
}

/* An image to 64 features. */
static CornuModel *build_trunk(void)
{
    CornuSymbol *image = cornu_input(.shape = { 28, 28, 1 }, .scale = 1.0 / 255), *x = image;
    for (int64_t filters = 16; filters <= 32; filters *= 2) {
        x = cornu_call(cornu_conv2d(filters, 3, 2, .activation = CORNU_RELU), x);
        x = residual(x, filters);
    }
    x = cornu_call(cornu_dense(64, .activation = CORNU_RELU), cornu_call(cornu_flatten(), x));
    return cornu_model(.inputs = { image }, .outputs = { x }, .name = "trunk");
}

/* Pairs: image i of the first half, and image i of the second, with their labels. */
static CornuArray half(CornuArray x, int second)
{
    const int64_t count = x.type.shape.extent[0] / 2;
    return cornu_array((uint8_t *)x.data + second * count * 784, CORNU_U8, count, 28, 28, 1);
}

static int64_t label(CornuArray y, uint8_t *sums, uint8_t *larger)
{
    const int64_t count = y.type.shape.extent[0] / 2;
    const uint8_t *first = y.data, *second = first + count;
    for (int64_t i = 0; i < count; i++) {
        sums[i] = (uint8_t)(first[i] + second[i]);
        larger[i] = first[i] > second[i];
    }
    return count;
}

int main(void)
{
    static uint8_t  sums[30000], larger[30000], test_sums[5000], test_larger[5000];
    CornuTrainTest *mnist = cornu_mnist_load();
    if (!mnist) return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    const int64_t train = label(mnist->train_y, sums, larger);
    const int64_t test = label(mnist->test_y, test_sums, test_larger);

    CornuModel  *trunk = build_trunk();
    CornuLayer  *shared = cornu_as_layer(trunk);   /* called twice: the same weights */
    CornuSymbol *first = cornu_input(.shape = { 28, 28, 1 }, .scale = 1.0 / 255, .name = "first");
    CornuSymbol *second = cornu_input(.shape = { 28, 28, 1 }, .scale = 1.0 / 255, .name = "second");
    CornuSymbol *both = cornu_call(cornu_concatenate(), cornu_call(shared, first),
                                   cornu_call(shared, second));
    both = cornu_call(cornu_dense(64, .activation = CORNU_RELU), both);
    CornuSymbol *sum = cornu_call(cornu_dense(19, CORNU_SOFTMAX, .name = "sum"), both);
    CornuSymbol *is_larger = cornu_call(cornu_dense(1, CORNU_SIGMOID, .name = "larger"), both);
    CornuModel  *model = cornu_model(.inputs = { first, second }, .outputs = { sum, is_larger });
    cornu_summary(model);

    cornu_compile(model, .optimizer = cornu_adam(), .outputs = {
        { "sum", CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, .metrics = { CORNU_ACCURACY } },
        { "larger", CORNU_BINARY_CROSSENTROPY, .metrics = { CORNU_ACCURACY } } });
    CornuHistory *history = cornu_fit(
        model, .xs = { half(mnist->train_x, 0), half(mnist->train_x, 1) }, .batch_size = 64,
        .ys = { cornu_array(sums, CORNU_U8, train), cornu_array(larger, CORNU_U8, train) },
        .epochs = 6);
    double result[5];   /* the loss of both, and of each; two accuracies */
    if (!history || cornu_evaluate(
        model, .xs = { half(mnist->test_x, 0), half(mnist->test_x, 1) }, .results = result,
        .ys = { cornu_array(test_sums, CORNU_U8, test), cornu_array(test_larger, CORNU_U8, test) }))
        return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    printf("Sums: %.4f right\nComparisons: %.4f right\n", result[3], result[4]);

    cornu_history_free(history);
    cornu_model_free(model), cornu_model_free(trunk);
    cornu_train_test_free(mnist);
}
