/* Models with a training step of their own: a GAN and a VAE are trained to the bit as by loops that
 * are written by hand, backups resume, partial batches count exactly. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/model/model_internal.h"
#include "own_steps.h"

enum { LATENT = 2 };

/* ---- A GAN: two models, two optimizers ---- */

typedef struct {
    CornuOwnStep own;
    CornuLayer  *generator, *judge;
    CornuModel  *models[2], *all;
} Gan;

/* -log sigmoid(x) for real ones, -log(1 - sigmoid(x)) for others: softplus(-x) and softplus(x). */
static CornuTensor *judged(CornuTensor *logits, bool real)
{
    return cornu_op_softplus(real ? cornu_op_negative(logits) : logits);
}

static CornuStatus train_gan(CornuOwnStep *self, CornuStepCall *step)
{
    Gan         *gan = (Gan *)self;
    const int64_t batch = cornu_tensor_shape(step->x[0]).extent[0];
    CornuTensor *z = cornu_step_normal(step, cornu_shape(batch, LATENT));
    CornuTensor *made = cornu_step_call(step, gan->generator, z);
    CornuTensor *real = judged(cornu_step_call(step, gan->judge, step->x[0]), true);
    CornuTensor *fake = judged(cornu_step_call(step, gan->judge, made), false);
    CornuTensor *d_loss = cornu_step_mean(step, cornu_op_add(real, fake));
    cornu_step_minimize(step, cornu_model_optimizer_at(step->model, 1), d_loss);
    /* The judge that has just been updated. */
    CornuTensor *again = cornu_step_call(step, gan->generator, z);
    CornuTensor *g_loss = cornu_step_mean(
        step, judged(cornu_step_call(step, gan->judge, again), true));
    cornu_step_minimize(step, cornu_model_optimizer_at(step->model, 0), g_loss);
    cornu_step_log(step, "d_loss", d_loss, NULL);
    return cornu_step_log(step, "g_loss", g_loss, NULL);
}

static void make_gan(Gan *gan, CornuDevice *device)
{
    *gan = (Gan){ .own = { .train = train_gan, .logs = { "d_loss", "g_loss" }, .own_data = true,
                           .xs = 1 } };
    cornu_set_random_seed(3);
    gan->models[0] = make_mlp(LATENT, FEATURES, "generator");
    gan->models[1] = make_mlp(FEATURES, 1, "judge");
    gan->generator = cornu_as_layer(gan->models[0]);
    gan->judge = cornu_as_layer(gan->models[1]);
    CornuSymbol *z = cornu_input(.shape = { LATENT }), *x = cornu_input(.shape = { FEATURES });
    gan->all = cornu_model(.inputs = { z, x }, .outputs = { cornu_call(gan->generator, z),
                                                            cornu_call(gan->judge, x) });
    expect_ok(cornu_compile(gan->all, .device = device, .step = &gan->own,
                            .optimizers = { { cornu_adam(.learning_rate = 0.01),
                                              { gan->generator } },
                                            { cornu_rmsprop(.learning_rate = 0.02),
                                              { gan->judge } } }));
}

static void free_gan(Gan *gan)
{
    cornu_model_free(gan->all);
    for (int i = 0; i < 2; i++) cornu_model_free(gan->models[i]);
}

/* ---- The same by hand, as examples/custom_loop.c ---- */

typedef struct {
    CornuGraph  *graph;
    CornuTensor *x, *count, *valid;
    CornuCall    call;
    int          calls;
} Hand;

static void begin_by_hand(Hand *hand, const CornuModel *model)
{
    const CornuType i64 = cornu_scalar(CORNU_I64);
    hand->graph = cornu_graph_create(cornu_model_device(model));
    cornu_graph_set_sequential(hand->graph);
    hand->x = cornu_graph_input(hand->graph, cornu_type(CORNU_F32, BATCH, FEATURES));
    hand->count = cornu_graph_input(hand->graph, i64);
    hand->valid = cornu_op_compare(cornu_op_iota(hand->graph, cornu_type(CORNU_I64, BATCH), 0),
                                   CORNU_LESS, hand->count);
    CornuVariable *iteration = cornu_optimizer_iteration(cornu_model_optimizer(model));
    hand->call = (CornuCall){ .graph = hand->graph, .training = true, .count = hand->count,
                              .total = hand->count,
                              .seed = cornu_read(hand->graph, model->seed_variable),
                              .iteration = cornu_read(hand->graph, iteration),
                              .position = cornu_op_constant(hand->graph, i64, 0.0) };
    hand->calls = 0;
}

static CornuTensor *normal_by_hand(const Hand *hand, int draw)
{
    const CornuShape shape = cornu_shape(BATCH, LATENT);
    CornuTensor     *u[2];
    for (int i = 0; i < 2; i++)
        u[i] = cornu_op_random_uniform(shape, hand->call.seed, hand->call.iteration,
                                       hand->call.position, 0x40000000 + 2 * draw + i);
    u[0] = cornu_op_log(cornu_op_shift(cornu_op_negative(u[0]), 1.0));
    return cornu_op_multiply(cornu_op_sqrt(cornu_op_scale(u[0], -2.0)),
                             cornu_op_cos(cornu_op_scale(u[1], 6.283185307179586)));
}

/* The mean of values (B, …) of the valid rows. */
static CornuTensor *mean_by_hand(const Hand *hand, CornuTensor *values)
{
    const CornuShape shape = cornu_tensor_shape(values);
    int64_t          each = 1;
    CornuShape       column = shape;
    for (int i = 1; i < shape.rank; i++) {
        each *= shape.extent[i];
        column.extent[i] = 1;
    }
    CornuTensor *where = cornu_op_broadcast(cornu_op_reshape(hand->valid, column), shape);
    CornuTensor *sum = cornu_op_sum(
        cornu_op_select(where, values, cornu_op_constant_like(values, 0.0)));
    CornuTensor *count = cornu_op_scale(hand->count, (double)each);
    return cornu_op_divide(sum, cornu_op_convert(count, CORNU_F32));
}

static void update_by_hand(const Hand *hand, CornuOptimizer *optimizer, const CornuModel *of,
                           CornuTensor *loss)
{
    CornuTensor *w[16], *d_w[16];
    const int    count = cornu_model_weight_count(of);
    for (int i = 0; i < count; i++)
        w[i] = cornu_read(hand->graph, cornu_model_weight(of, i)->variable);
    expect_ok(cornu_gradients(loss, w, count, d_w));
    expect_ok(cornu_optimizer_apply(optimizer, hand->graph, d_w));
}

static CornuTensor *call_by_hand(const Hand *hand, CornuLayer *layer, CornuTensor *x)
{
    return cornu_layer_call(layer, &hand->call, x);
}

/* Runs all batches of all epochs; sums[e][i] is the mean of fetch i over the rows of epoch e. */
static void run_by_hand(const Hand *hand, CornuTensor **fetch, int count, double means[EPOCHS][4])
{
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        double sums[4] = { 0.0 };
        for (int first = 0; first < N; first += BATCH) {
            const int64_t valid = first + BATCH <= N ? BATCH : N - first;
            float         batch[BATCH * FEATURES] = { 0.0f }, values[4];
            CornuArray    to[4];
            memcpy(batch, data + first * FEATURES, (size_t)valid * FEATURES * sizeof(float));
            for (int i = (int)valid; i < BATCH; i++)   /* as the library fills batches */
                memcpy(batch + i * FEATURES, data + (first + i % (int)valid) * FEATURES,
                       FEATURES * sizeof(float));
            for (int i = 0; i < count; i++)
                to[i] = cornu_array_from(&values[i], cornu_scalar(CORNU_F32));
            expect_ok(cornu_graph_feed(hand->x,
                                       cornu_array(batch, CORNU_F32, BATCH, FEATURES)));
            expect_ok(cornu_graph_feed(hand->count,
                                       cornu_array_from((int64_t[]){ valid },
                                                        cornu_scalar(CORNU_I64))));
            expect_ok(cornu_run(hand->graph, fetch, count, to));
            for (int i = 0; i < count; i++) sums[i] += (double)values[i] * (double)valid;
        }
        for (int i = 0; i < count; i++) means[epoch][i] = sums[i] / N;
    }
}

static void count_by_hand(const Hand *hand, const CornuModel *model)
{
    expect_ok(cornu_assign(cornu_optimizer_iteration(cornu_model_optimizer(model)),
                           cornu_op_shift(hand->call.iteration, 1.0)));
}

static void expect_history(const CornuHistory *history, const char *name, int i,
                           double means[EPOCHS][4])
{
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        const double got = cornu_history_get(history, name, epoch);
        if (!(fabs(got - means[epoch][i]) <= 1e-12 * fabs(got)))
            fail_msg("%s of epoch %d is %.17g, expected %.17g", name, epoch, got, means[epoch][i]);
    }
}

static void a_gan_trains_as_by_hand(void **state)
{
    Gan    gan, other;
    Hand   hand;
    double means[EPOCHS][4];
    make_gan(&gan, *state);
    CornuHistory *history = cornu_fit(gan.all, .x = rows(0, N), .batch_size = BATCH,
                                      .epochs = EPOCHS, .no_shuffle = true,
                                      .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    make_gan(&other, *state);
    CornuOptimizer *adam = cornu_model_optimizer_at(other.all, 0);
    CornuOptimizer *rmsprop = cornu_model_optimizer_at(other.all, 1);
    begin_by_hand(&hand, other.all);
    CornuTensor *z = normal_by_hand(&hand, 0);
    CornuTensor *made = call_by_hand(&hand, other.generator, z);
    CornuTensor *real = judged(call_by_hand(&hand, other.judge, hand.x), true);
    CornuTensor *fake = judged(call_by_hand(&hand, other.judge, made), false);
    CornuTensor *losses[2];
    losses[0] = mean_by_hand(&hand, cornu_op_add(real, fake));
    update_by_hand(&hand, rmsprop, other.models[1], losses[0]);
    losses[1] = mean_by_hand(&hand, judged(
        call_by_hand(&hand, other.judge, call_by_hand(&hand, other.generator, z)), true));
    update_by_hand(&hand, adam, other.models[0], losses[1]);
    count_by_hand(&hand, other.all);
    run_by_hand(&hand, losses, 2, means);
    expect_same_weights(gan.all, other.all);
    expect_history(history, "d_loss", 0, means);
    expect_history(history, "g_loss", 1, means);
    assert_int_equal(cornu_history_key_count(history), 2);
    cornu_history_free(history);
    cornu_graph_free(hand.graph);
    free_gan(&gan);
    free_gan(&other);
}

/* The judge is updated before the generator's loss, as by two graphs, one for each optimizer. */
static void updates_follow_each_other(void **state)
{
    Gan          gan, other;
    Hand         first, second;
    CornuTensor *losses[2];
    make_gan(&gan, *state);
    make_gan(&other, *state);
    expect_ok(cornu_train_on_batch(gan.all, .x = rows(0, BATCH)));
    begin_by_hand(&first, other.all);
    CornuTensor *real = judged(call_by_hand(&first, other.judge, first.x), true);
    CornuTensor *z = normal_by_hand(&first, 0);
    CornuTensor *fake = judged(call_by_hand(&first, other.judge,
                                            call_by_hand(&first, other.generator, z)), false);
    losses[0] = mean_by_hand(&first, cornu_op_add(real, fake));
    update_by_hand(&first, cornu_model_optimizer_at(other.all, 1), other.models[1], losses[0]);
    begin_by_hand(&second, other.all);
    z = normal_by_hand(&second, 0);
    losses[1] = mean_by_hand(&second, judged(
        call_by_hand(&second, other.judge, call_by_hand(&second, other.generator, z)), true));
    update_by_hand(&second, cornu_model_optimizer_at(other.all, 0), other.models[0], losses[1]);
    for (int i = 0; i < 2; i++) {
        const Hand *hand = i ? &second : &first;
        float       loss;
        CornuArray  to = cornu_array_from(&loss, cornu_scalar(CORNU_F32));
        expect_ok(cornu_graph_feed(hand->x, rows(0, BATCH)));
        expect_ok(cornu_graph_feed(hand->count, cornu_array_from((int64_t[]){ BATCH },
                                                                 cornu_scalar(CORNU_I64))));
        expect_ok(cornu_run(hand->graph, &losses[i], 1, &to));
        cornu_graph_free(hand->graph);
    }
    expect_same_weights(gan.all, other.all);
    free_gan(&gan);
    free_gan(&other);
}

/* ---- A VAE: own metrics, evaluation, add_loss ---- */

typedef struct {
    CornuOwnStep own;
    CornuLayer  *encoder, *decoder;
    CornuModel  *models[2], *all;
} Vae;

static CornuTensor *squared_errors(CornuTensor *x, CornuTensor *y)
{
    return cornu_op_square(cornu_op_subtract(x, y));
}

/* -(1 + s - m^2 - e^s) / 2 of each element */
static CornuTensor *divergences(CornuTensor *m, CornuTensor *s)
{
    CornuTensor *rest = cornu_op_add(cornu_op_square(m), cornu_op_exp(s));
    return cornu_op_scale(cornu_op_subtract(cornu_op_shift(s, 1.0), rest), -0.5);
}

static CornuStatus vae_step(CornuOwnStep *self, CornuStepCall *step)
{
    Vae         *vae = (Vae *)self;
    const int64_t batch = cornu_tensor_shape(step->x[0]).extent[0];
    CornuTensor *code[2];
    cornu_step_call_many(step, vae->encoder, &step->x[0], 1, code, 2);
    CornuTensor *noise = cornu_step_normal(step, cornu_shape(batch, LATENT));
    CornuTensor *deviation = cornu_op_exp(cornu_op_scale(code[1], 0.5));
    CornuTensor *z = cornu_op_add(code[0], cornu_op_multiply(deviation, noise));
    CornuTensor *again = cornu_step_call(step, vae->decoder, z);
    CornuTensor *error = cornu_step_mean(step, squared_errors(step->x[0], again));
    CornuTensor *divergence = cornu_step_mean(step, divergences(code[0], code[1]));
    CornuTensor *loss = cornu_op_add(error, divergence);
    if (step->training) cornu_step_minimize(step, NULL, loss);
    cornu_step_log(step, "loss", loss, NULL);
    cornu_step_log(step, "kl_loss", divergence, NULL);
    return cornu_step_log(step, "reconstruction_loss", squared_errors(step->x[0], again), NULL);
}

static void make_vae(Vae *vae, CornuDevice *device)
{
    *vae = (Vae){ .own = { .train = vae_step, .test = vae_step, .own_data = true, .xs = 1,
                           .logs = { "loss", "kl_loss", "reconstruction_loss" } } };
    cornu_set_random_seed(5);
    CornuSymbol *x = cornu_input(.shape = { FEATURES }), *z = cornu_input(.shape = { LATENT });
    CornuSymbol *h = cornu_call(cornu_dense(4, .activation = CORNU_TANH), x);
    vae->models[0] = cornu_model(.inputs = { x }, .name = "encoder",
                                 .outputs = { cornu_call(cornu_dense(LATENT), h),
                                              cornu_call(cornu_dense(LATENT), h) });
    vae->models[1] = make_mlp(LATENT, FEATURES, "decoder");
    vae->encoder = cornu_as_layer(vae->models[0]);
    vae->decoder = cornu_as_layer(vae->models[1]);
    CornuSymbol *in = cornu_input(.shape = { FEATURES }, .name = "in");
    CornuSymbol *code = cornu_call(vae->encoder, in);
    vae->all = cornu_model(.inputs = { in, z },
                           .outputs = { code, cornu_call(vae->decoder, z) });
    expect_ok(cornu_compile(vae->all, .device = device, .step = &vae->own,
                            .optimizer = cornu_adam(.learning_rate = 0.01)));
}

static void free_vae(Vae *vae)
{
    cornu_model_free(vae->all);
    for (int i = 0; i < 2; i++) cornu_model_free(vae->models[i]);
}

static void a_vae_trains_as_by_hand(void **state)
{
    Vae    vae, other;
    Hand   hand;
    double means[EPOCHS][4], test[3];
    make_vae(&vae, *state);
    CornuHistory *history = cornu_fit(vae.all, .x = rows(0, N), .batch_size = BATCH,
                                      .epochs = EPOCHS, .no_shuffle = true,
                                      .validation_data = { .x = rows(0, N) },
                                      .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    make_vae(&other, *state);
    begin_by_hand(&hand, other.all);
    CornuTensor *code[2], *shown[3];
    assert_non_null(cornu_layer_call_many(other.encoder, &hand.call, &hand.x, 1, code, 2));
    CornuTensor *noise = normal_by_hand(&hand, 0);
    CornuTensor *deviation = cornu_op_exp(cornu_op_scale(code[1], 0.5));
    CornuTensor *again = call_by_hand(&hand, other.decoder, cornu_op_add(
        code[0], cornu_op_multiply(deviation, noise)));
    shown[2] = mean_by_hand(&hand, squared_errors(hand.x, again));
    shown[1] = mean_by_hand(&hand, divergences(code[0], code[1]));
    shown[0] = cornu_op_add(shown[2], shown[1]);
    update_by_hand(&hand, cornu_model_optimizer(other.all), other.all, shown[0]);
    run_by_hand(&hand, shown, 3, means);
    expect_same_weights(vae.all, other.all);
    expect_history(history, "loss", 0, means);
    expect_history(history, "kl_loss", 1, means);
    for (int epoch = 0; epoch < EPOCHS; epoch++)   /* a sum of all elements, not of means */
        assert_true(fabs(cornu_history_get(history, "reconstruction_loss", epoch) -
                         means[epoch][2]) < 1e-6);
    assert_int_equal(cornu_history_key_count(history), 6);
    expect_ok(cornu_evaluate(vae.all, .x = rows(0, N), .batch_size = BATCH, .results = test,
                             .verbose = CORNU_SILENT));
    assert_true(test[0] == cornu_history_get(history, "val_loss", EPOCHS - 1));
    assert_true(test[1] == cornu_history_get(history, "val_kl_loss", EPOCHS - 1));
    assert_true(fabs(test[0] - test[1] - test[2]) < 1e-6);
    cornu_history_free(history);
    cornu_graph_free(hand.graph);
    free_vae(&vae);
    free_vae(&other);
}

/* ---- Backups ---- */

/* As a process that is killed in the second epoch. */
static CornuStatus stop_after_four(CornuCallback *self, CornuModel *model, int64_t batch,
                                   const CornuLogs *logs)
{
    (void)batch;
    (void)logs;
    (void)model;
    int *left = (int *)(self + 1);
    return --*left == 0 ? CORNU_ERR_INTERRUPTED : CORNU_OK;
}

static void backups_hold_both_optimizers(void **state)
{
    char folder[] = "/tmp/cornu_own_step_XXXXXX";
    assert_non_null(mkdtemp(folder));
    Gan whole, part;
    make_gan(&whole, *state);
    cornu_history_free(cornu_fit(whole.all, .x = rows(0, N), .batch_size = BATCH,
                                 .epochs = EPOCHS, .verbose = CORNU_SILENT));
    for (int run = 0; run < 2; run++) {
        struct { CornuCallback base; int left; } stop = { { .train_batch_end = stop_after_four },
                                                          4 };
        make_gan(&part, *state);
        CornuHistory *history = cornu_fit(
            part.all, .x = rows(0, N), .batch_size = BATCH, .epochs = EPOCHS,
            .callbacks = { cornu_backup_and_restore(folder, 1, .keep_checkpoint = true),
                           run == 0 ? &stop.base : NULL }, .verbose = CORNU_SILENT);
        if (run == 0) {
            assert_null(history);
            cornu_error_take();
            free_gan(&part);
        } else if (!history) {
            fail_msg("%s", cornu_error_message());
        }
        cornu_history_free(history);
    }
    expect_same_weights(whole.all, part.all);
    cornu_backup_remove(folder);
    free_gan(&part);
    free_gan(&whole);
}

/* ---- Shards ---- */

static void shards_have_parts(void **state)
{
    (void)state;
    double losses[2][2];
    for (int i = 0; i < 2; i++) {
        CornuDevice *device = cornu_device_open("cpu", .shards = i + 1);
        Gan          gan;
        make_gan(&gan, device);
        CornuHistory *history = cornu_fit(gan.all, .x = rows(0, N), .batch_size = BATCH,
                                          .epochs = EPOCHS, .verbose = CORNU_SILENT);
        if (!history) fail_msg("%s", cornu_error_message());
        losses[i][0] = cornu_history_get(history, "d_loss", EPOCHS - 1);
        losses[i][1] = cornu_history_get(history, "g_loss", EPOCHS - 1);
        cornu_history_free(history);
        free_gan(&gan);
        cornu_device_close(device);
    }
    for (int k = 0; k < 2; k++) assert_true(fabs(losses[0][k] - losses[1][k]) < 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gan_trains_as_by_hand),
        cmocka_unit_test(updates_follow_each_other),
        cmocka_unit_test(a_vae_trains_as_by_hand),
        cmocka_unit_test(backups_hold_both_optimizers),
        cmocka_unit_test(shards_have_parts),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
