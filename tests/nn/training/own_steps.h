/* Data and small models for own steps. */
#ifndef CORNU_TESTS_NN_OWN_STEPS_H
#define CORNU_TESTS_NN_OWN_STEPS_H

#include <string.h>

#include "../../../nn/cornu.h"
#include "../../expect.h"

enum { N = 10, BATCH = 4, EPOCHS = 3, FEATURES = 3 };

static float data[N * FEATURES];

static inline CornuArray rows(int64_t first, int64_t count)
{
    return cornu_array(data + FEATURES * first, CORNU_F32, count, FEATURES);
}

static inline int open_all(void **state)
{
    for (int i = 0; i < N * FEATURES; i++) data[i] = (float)((i * 7) % 11) / 5.0f - 1.0f;
    *state = cornu_device_open("cpu", .threads = 2);
    return *state ? 0 : -1;
}

static inline int close_all(void **state)
{
    cornu_device_close(*state);
    return 0;
}

static inline void expect_same_weights(const CornuModel *a, const CornuModel *b)
{
    assert_int_equal(cornu_model_weight_count(a), cornu_model_weight_count(b));
    for (int i = 0; i < cornu_model_weight_count(a); i++) {
        const CornuWeight *of_a = cornu_model_weight(a, i), *of_b = cornu_model_weight(b, i);
        float              x[64], y[64];
        assert_true(cornu_type_count(of_a->type) <= 64);
        expect_ok(cornu_weight_read(of_a, cornu_array_from(x, of_a->type)));
        expect_ok(cornu_weight_read(of_b, cornu_array_from(y, of_b->type)));
        assert_memory_equal(x, y, cornu_type_bytes(of_a->type));
    }
}

static inline CornuModel *make_mlp(int64_t in, int64_t out, const char *name)
{
    CornuModel *model = cornu_sequential(.name = name, .input_shape = { in });
    cornu_model_add(model, cornu_dense(6, .activation = CORNU_TANH));
    cornu_model_add(model, cornu_dense(out));
    return model;
}

#endif
