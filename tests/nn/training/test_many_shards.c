/* A step on many shards is that of one: up to rounding, and bit by bit on any number of threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/synthetic/synthetic.h"
#include "../../../models/models.h"
#include "../../../nn/cornu.h"
#include "../../expect.h"

enum { ROWS = 2048, BATCH = 64, MOST = 1300000 };

static void *made(void *thing)
{
    if (!thing) fail_msg("%s", cornu_error_message());
    return thing;
}

static uint8_t images[ROWS * 784], labels[ROWS];

static int draw(void **state)
{
    (void)state;
    cornu_synthetic_digits(1, 0, ROWS, images, labels);
    return 0;
}

typedef struct {
    double  loss;
    int64_t count, planned;
    float   weights[MOST];
} Trained;

/* The weights after `steps` steps on the same batch, and the loss of the last. */
static void train(CornuModel *model, CornuDevice *device, int rows, int steps, Trained *trained)
{
    double values[2];
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .device = device, .optimizer = cornu_sgd(.learning_rate = 0.1)));
    const CornuArray x = cornu_reference_input(model, cornu_array(images, CORNU_U8, rows, 28, 28));
    for (int i = 0; i < steps; i++)
        expect_ok(cornu_train_on_batch(model, x, cornu_array(labels, CORNU_U8, rows), values));
    trained->loss = values[0];
    trained->count = 0;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        assert_true(trained->count + cornu_type_count(weight->type) <= MOST);
        expect_ok(cornu_weight_read(
            weight, cornu_array_from(trained->weights + trained->count, weight->type)));
        trained->count += cornu_type_count(weight->type);
    }
    trained->planned = cornu_model_statistics(model)->bytes_planned;
    cornu_model_free(model);
    cornu_device_close(device);
}

static void mnist_cnn(const char *name, int shards, int threads, Trained *trained)
{
    cornu_set_random_seed(7);
    CornuDevice *device = made(cornu_device_open(name, .threads = threads, .shards = shards));
    train(made(cornu_mnist_cnn()), device, BATCH, 1, trained);
}

static double farthest(const Trained *a, const Trained *b)
{
    double far = 0.0;
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++) {
        const double d = fabs((double)a->weights[i] - (double)b->weights[i]);
        far = isnan(d) ? INFINITY : fmax(far, d);
    }
    return far;
}

/*
 * Every number of shards adds up the same terms, rounded once for each addition, in other orders:
 * errors are of the size of those of one shard, which the reference, in double, tells. Twice that
 * is allowed, and as each weight and loss is itself rounded, half a unit in the last place of the
 * largest, 2^-24 of it, both for the shards' result and for the reference's.
 */
static void mnist_cnn_learns_what_one_shard_learns(void **state)
{
    (void)state;
    static const int numbers[] = { 3, 12, 16, 64 };
    static Trained   exact, one, more;
    mnist_cnn("reference", 1, 1, &exact);
    mnist_cnn("cpu", 1, 1, &one);
    double largest = 0.0;
    for (int64_t i = 0; i < exact.count; i++)
        largest = fmax(largest, fabs((double)exact.weights[i]));
    const double bound = 2.0 * farthest(&one, &exact) + 2.0 * ldexp(largest, -24);
    const double near = 2.0 * fabs(one.loss - exact.loss) + 4.0 * ldexp(exact.loss, -24);
    assert_true(bound < 1e-5 && near < 1e-5);
    for (int i = 0; i < 4; i++) {
        mnist_cnn("cpu", numbers[i], 2, &more);
        if (!(farthest(&more, &exact) <= bound) || !(fabs(more.loss - exact.loss) <= near))
            fail_msg("%d shards: weights %g away, loss %g; at most %g and %g", numbers[i],
                     farthest(&more, &exact), fabs(more.loss - exact.loss), bound, near);
    }
}

static void bits_do_not_depend_on_threads(void **state)
{
    (void)state;
    static const int numbers[] = { 3, 12, 16, 64 };
    static Trained   first, other;
    for (int i = 0; i < 8; i++) {
        const char *device = i % 2 ? "tpu" : "cpu";
        mnist_cnn(device, numbers[i / 2], 1, &first);
        for (int threads = 2; threads <= 3; threads++) {
            mnist_cnn(device, numbers[i / 2], threads, &other);
            assert_memory_equal(first.weights, other.weights,
                                (size_t)first.count * sizeof *first.weights);
            assert_true(first.loss == other.loss);
        }
    }
}

/* Without verifying: the verifier tracks what each shard has, which takes minutes. */
static void dense(int shards, Trained *trained)
{
    setenv("CORNU_VERIFY", "0", 1);
    cornu_set_random_seed(3);
    CornuDevice *device = made(cornu_device_open("cpu", .threads = 2, .shards = shards));
    CornuModel  *model = made(cornu_sequential(.input_shape = { 28, 28 }));
    cornu_model_add(model, cornu_rescaling(1.0 / 255.0));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(128, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(10, .activation = CORNU_SOFTMAX));
    train(model, device, ROWS, 4, trained);
}

/* 2 rows on each of 1,024 shards: what they learn, and that memory is for blocks of shards and for
 * threads, not for each shard's gradients. */
static void a_thousand_shards_train(void **state)
{
    (void)state;
    static Trained one, more;
    dense(1, &one);
    for (int shards = 1000; shards <= 1024; shards += 24) {
        dense(shards, &more);
        assert_float_equal(more.loss, one.loss, 1e-5 * one.loss);
        assert_true(farthest(&more, &one) <= 1e-5);
        const int64_t weights = one.count * (int64_t)sizeof(float);
        assert_true(more.planned < 40 * weights);
    }
    assert_true(one.loss < 2.3);
}

/* The sums of synchronized statistics lie between the layers' gradients: each layer's are added up
 * before the next one's are computed. */
static void memory_of_normalized_layers(void **state)
{
    (void)state;
    static Trained trained;
    setenv("CORNU_VERIFY", "0", 1);
    cornu_set_random_seed(3);
    CornuDevice *device = made(cornu_device_open("cpu", .threads = 2, .shards = 256));
    CornuModel  *model = made(cornu_sequential(.input_shape = { 28, 28 }));
    cornu_model_add(model, cornu_flatten());
    for (int i = 0; i < 3; i++) {
        cornu_model_add(model, cornu_dense(128));
        cornu_model_add(model, cornu_batch_normalization(.synchronized = true));
    }
    cornu_model_add(model, cornu_dense(10, .activation = CORNU_SOFTMAX));
    train(model, device, 256, 1, &trained);
    assert_true(trained.planned < 60 * trained.count * (int64_t)sizeof(float));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mnist_cnn_learns_what_one_shard_learns),
        cmocka_unit_test(bits_do_not_depend_on_threads),
        cmocka_unit_test(a_thousand_shards_train),
        cmocka_unit_test(memory_of_normalized_layers),
    };
    return cmocka_run_group_tests(tests, draw, NULL);
}
