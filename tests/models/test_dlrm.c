/* DLRM: its output from its weights, worked out here; what it trains. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../models/models.h"
#include "../../nn/cornu.h"
#include "../expect.h"

enum { DIM = 3, NUMBERS = 2, ROWS = 4, FEATURES = 2, PAIRS = 3, HIDDEN = 5 };

static CornuModel *dlrm(CornuDevice *device)
{
    CornuModel *model = cornu_dlrm(.vocabulary = { 6, 4 }, .names = { "a", "b" },
                                   .numbers = NUMBERS, .dim = DIM, .bottom = { 4 },
                                   .top = { HIDDEN }, .optimizer = cornu_adagrad(0.05));
    if (!model || cornu_compile(model, .device = device, .loss = CORNU_BINARY_CROSSENTROPY,
                                .optimizer = cornu_dlrm_optimizer(model, cornu_adam(0.05))))
        fail_msg("%s", cornu_error_message());
    return model;
}

/* A weight's values by its path; to be freed. */
static float *values(CornuModel *model, const char *path)
{
    CornuWeight *weight = cornu_model_find_weight(model, path);
    if (!weight) fail_msg("%s", cornu_error_message());
    float *to = malloc(cornu_type_bytes(weight->type));
    expect_ok(cornu_weight_read(weight, cornu_array_from(to, weight->type)));
    return to;
}

static void dense(CornuModel *model, const char *kernel, const char *bias, const double *x, int n,
                  int units, bool relu, double *y)
{
    float *w = values(model, kernel), *b = values(model, bias);
    for (int u = 0; u < units; u++) {
        y[u] = b[u];
        for (int i = 0; i < n; i++) y[u] += x[i] * w[i * units + u];
        if (relu && y[u] < 0.0) y[u] = 0.0;
    }
    free(w);
    free(b);
}

static double predicted(CornuModel *model, const int32_t id[FEATURES], const float *numbers)
{
    static const char *const tables[] = { "embedding/a", "embedding/b" };
    double x[NUMBERS], hidden[8], v[1 + FEATURES][DIM], joined[DIM + PAIRS], y;
    for (int i = 0; i < NUMBERS; i++) x[i] = numbers[i];
    dense(model, "dense/kernel", "dense/bias", x, NUMBERS, 4, true, hidden);
    dense(model, "dense_1/kernel", "dense_1/bias", hidden, 4, DIM, true, v[0]);
    for (int f = 0; f < FEATURES; f++) {
        float *table = values(model, tables[f]);
        for (int k = 0; k < DIM; k++) v[1 + f][k] = table[id[f] * DIM + k];
        free(table);
    }
    memcpy(joined, v[0], sizeof v[0]);
    for (int i = 1, p = DIM; i <= FEATURES; i++)
        for (int k = 0; k < i; k++, p++) {
            joined[p] = 0.0;
            for (int d = 0; d < DIM; d++) joined[p] += v[i][d] * v[k][d];
        }
    dense(model, "dense_2/kernel", "dense_2/bias", joined, DIM + PAIRS, HIDDEN, true, hidden);
    dense(model, "dense_3/kernel", "dense_3/bias", hidden, HIDDEN, 1, false, &y);
    return 1.0 / (1.0 + exp(-y));
}

static void its_output_is_that_of_the_paper(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("cpu", .threads = 2);
    CornuModel  *model = dlrm(device);
    int32_t      a[ROWS] = { 0, 5, 2, 5 }, b[ROWS] = { 3, 0, 1, 3 };
    float        numbers[ROWS * NUMBERS] = { 0.5f, -1, 2, 0.25f, -0.5f, 1, 3, 2 }, y[ROWS];
    CornuArray   xs[3] = { cornu_array(a, CORNU_I32, ROWS, 1), cornu_array(b, CORNU_I32, ROWS, 1),
                           cornu_array(numbers, CORNU_F32, ROWS, NUMBERS) };
    CornuArray   to = cornu_array(y, CORNU_F32, ROWS, 1);
    for (int step = 0; step < 30; step++) {
        float      labels[ROWS] = { 1, 0, 0, 1 };
        CornuArray ys = cornu_array(labels, CORNU_F32, ROWS, 1);
        expect_ok(cornu_predict_on_batch_many(model, xs, &to));
        for (int r = 0; r < ROWS && step % 10 == 0; r++) {
            const int32_t ids[FEATURES] = { a[r], b[r] };
            const double  want = predicted(model, ids, numbers + r * NUMBERS);
            if (fabs(y[r] - want) > 1e-5) fail_msg("row %d: %g, expected %g", r, y[r], want);
        }
        expect_ok(cornu_train_on_batch_many(model, xs, &ys, NULL));
    }
    expect_ok(cornu_predict_on_batch_many(model, xs, &to));
    assert_true(y[0] > 0.7f && y[3] > 0.7f && y[1] < 0.3f && y[2] < 0.3f);
    cornu_model_free(model);
    cornu_device_close(device);
}

static void its_inputs_are_checked(void **state)
{
    (void)state;
    assert_null(cornu_dlrm(.numbers = 2));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_null(cornu_dlrm_optimizer(NULL, cornu_adam()));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_output_is_that_of_the_paper),
        cmocka_unit_test(its_inputs_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
