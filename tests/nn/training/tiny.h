/* A tiny problem: is the sum of three numbers positive? The tests of a group have a device. */
#ifndef CORNU_TESTS_NN_TINY_H
#define CORNU_TESTS_NN_TINY_H

#include "../golden.h"

enum { ROWS = 10 };

static float   x_data[ROWS * 3];
static int32_t y_data[ROWS];

static inline CornuArray rows_x(int64_t first, int64_t count)
{
    return cornu_array(x_data + 3 * first, CORNU_F32, count, 3);
}

static inline CornuArray rows_y(int64_t first, int64_t count)
{
    return cornu_array(y_data + first, CORNU_I32, count);
}

static inline void make_data(void)
{
    for (int i = 0; i < ROWS; i++) {
        float sum = 0.0f;
        for (int k = 0; k < 3; k++) {
            x_data[3 * i + k] = (float)((i * 7 + k * 5) % 11) / 5.0f - 1.0f;
            sum += x_data[3 * i + k];
        }
        y_data[i] = sum > 0.0f;
    }
}

static inline CornuModel *executing_model(CornuDevice *device, CornuOptimizer *optimizer,
                                          const char *const metrics[2],
                                          int64_t steps_per_execution)
{
    CornuModel *model = cornu_sequential(.name = "tiny", .input_shape = { 3 });
    cornu_model_add(model, cornu_dense(2, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .device = device, .optimizer = optimizer,
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .metrics = { metrics[0] ? cornu_metric(metrics[0]) : NULL,
                                         metrics[1] ? cornu_metric(metrics[1]) : NULL },
                            .steps_per_execution = steps_per_execution));
    return model;
}

static inline CornuModel *tiny_model(CornuDevice *device, CornuOptimizer *optimizer,
                                     const char *const metrics[2])
{
    return executing_model(device, optimizer, metrics, 0);
}

static const char *const accuracy[2] = { "accuracy" };

static inline int open_device(void **state)
{
    make_data();
    *state = cornu_device_open("reference");
    return *state ? 0 : -1;
}

static inline int close_device(void **state)
{
    cornu_device_close(*state);
    return 0;
}

#endif
