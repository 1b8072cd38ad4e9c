/*
 * A variational autoencoder (keras-io, examples/generative/vae.py): a training step of its own,
 * Keras' train_step, with a loss of two parts. Fit, validation, callbacks and history are as ever.
 * Digits that it makes up from random numbers are printed.
 * Three epochs take 7 seconds on two cores (AMD EPYC, Zen 4) and reach 126 nats for a test digit.
 */
#include <stdio.h>

#include <cornu/cornu.h>

enum { PIXELS = 28 * 28, LATENT = 8, ROWS = 1 << 1, MADE = 3 };

typedef struct {
    CornuOwnStep step;   /* the first field */
    CornuModel  *encoder, *decoder, *all;
} Vae;

/* Recorded once, not called for each batch. */
static CornuStatus train_or_test(CornuOwnStep *self, CornuStepCall *step)
{
    const Vae    *vae = (const Vae *)self;
    const int64_t rows = cornu_tensor_shape(step->x[0]).extent[0];
    CornuTensor *x = cornu_op_scale(cornu_op_convert(step->x[0], CORNU_F32), 1.0 / 255);
    x = cornu_op_reshape(x, cornu_shape(rows, PIXELS));
    CornuTensor *code[2];   /* mean and logarithm of the variance */
    cornu_step_call_many(step, cornu_as_layer(vae->encoder), &x, 1, code, 2);
    CornuTensor *deviation = cornu_op_exp(cornu_op_scale(code[1], 0.5));
    CornuTensor *noise = cornu_step_normal(step, cornu_shape(rows, LATENT));
    CornuTensor *z = cornu_op_add(code[0], cornu_op_multiply(deviation, noise));
    CornuTensor *logits = cornu_step_call(step, cornu_as_layer(vae->decoder), z);

    /* The cross-entropy of the pixels, and the divergence of z from a normal distribution. */
    CornuTensor *pixels = cornu_op_reduce_sum(
        cornu_op_subtract(cornu_op_softplus(logits), cornu_op_multiply(x, logits)), ROWS, false);
    CornuTensor *squares = cornu_op_add(cornu_op_square(code[0]), cornu_op_exp(code[1]));
    CornuTensor *divergence = cornu_op_reduce_sum(
        cornu_op_scale(cornu_op_subtract(cornu_op_shift(code[1], 1.0), squares), -0.5), ROWS,
        false);
    CornuTensor *loss = cornu_op_add(pixels, divergence);
    if (step->training) cornu_step_minimize(step, NULL, cornu_step_mean(step, loss));
    cornu_step_log(step, "loss", loss, NULL);
    cornu_step_log(step, "reconstruction_loss", pixels, NULL);
    return cornu_step_log(step, "kl_loss", divergence, NULL);
}

static void build(Vae *vae)
{
    CornuSymbol *x = cornu_input(.shape = { PIXELS }, .name = "x");
    CornuSymbol *z = cornu_input(.shape = { LATENT }, .name = "z");
    CornuSymbol *h = cornu_call(cornu_dense(256, .activation = CORNU_RELU), x);
    vae->encoder = cornu_model(.inputs = { x }, .outputs = { cornu_call(cornu_dense(LATENT), h),
                                                             cornu_call(cornu_dense(LATENT), h) });
    h = cornu_call(cornu_dense(256, .activation = CORNU_RELU), z);
    vae->decoder = cornu_model(.inputs = { z }, .outputs = { cornu_call(cornu_dense(PIXELS), h) });
    vae->all = cornu_model(.inputs = { x, z },
                           .outputs = { cornu_call(cornu_as_layer(vae->encoder), x),
                                        cornu_call(cornu_as_layer(vae->decoder), z) });
}

int main(void)
{
    Vae vae = { .step = { .train = train_or_test, .test = train_or_test, .own_data = true, .xs = 1,
                          .logs = { "loss", "reconstruction_loss", "kl_loss" } } };
    CornuTrainTest *mnist = cornu_mnist_load();
    if (!mnist) return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    build(&vae);
    cornu_compile(vae.all, .optimizer = cornu_adam(), .step = &vae.step);
    CornuHistory *history = cornu_fit(vae.all, .x = mnist->train_x, .batch_size = 128, .epochs = 3,
                                      .validation_data = { .x = mnist->test_x });
    float z[MADE][LATENT], digits[MADE][PIXELS];
    for (uint32_t i = 0; i < MADE * LATENT; i++) {
        uint32_t bits[4];   /* the sum of four has nearly a normal distribution */
        cornu_philox(1, (uint32_t[]){ i, 0, 0, 0 }, bits);
        z[i / LATENT][i % LATENT] = 1.7f * (cornu_uniform(bits[0]) + cornu_uniform(bits[1]) +
                                            cornu_uniform(bits[2]) + cornu_uniform(bits[3]) - 2.0f);
    }
    if (!history || cornu_predict(vae.decoder, .x = cornu_array(z, CORNU_F32, MADE, LATENT),
                                  .to = cornu_array(digits, CORNU_F32, MADE, PIXELS)))
        return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    for (int i = 0; i < 28 * MADE * 28; i++)   /* a row of the picture has one of each digit */
        printf("%c%s", digits[i / 28 % MADE][i / 28 / MADE * 28 + i % 28] > 0.0f ? '#' : ' ',
               i % (28 * MADE) == 28 * MADE - 1 ? "\n" : "");
    printf("Loss: %.1f\n", cornu_history_get(history, "val_loss", 2));
    cornu_history_free(history), cornu_model_free(vae.all), cornu_model_free(vae.encoder);
    cornu_model_free(vae.decoder), cornu_train_test_free(mnist);
}
