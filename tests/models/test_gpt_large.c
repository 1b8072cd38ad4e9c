/*
 * A model that its device's memory is too small for trains when a mesh cuts it.
 *
 * tests/run: in check
 * tests/run: takes 90 s
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../models/models.h"
#include "../../nn/cornu.h"

enum { SHARDS = 8, ROWS = 2, TIMES = 16, STEPS = 3 };

static const int64_t cap = 400000000;   /* bytes of a shard */

static uint8_t text[ROWS * (TIMES + 1)], x[SHARDS * TIMES], y[SHARDS * TIMES];

static void make_data(void)
{
    for (int i = 0; i < ROWS * (TIMES + 1); i++) text[i] = (uint8_t)("to be or not "[i % 13]);
    for (int i = 0; i < ROWS; i++) {
        memcpy(x + i * TIMES, text + i * (TIMES + 1), TIMES);
        memcpy(y + i * TIMES, text + i * (TIMES + 1) + 1, TIMES);
    }
}

static CornuModel *gpt_large(void)
{
    cornu_set_random_seed(3);
    return cornu_char_gpt(.preset = cornu_text_preset("gpt_large"), .sequence_length = TIMES);
}

static CornuStatus compile(CornuModel *model, CornuDevice *device)
{
    return cornu_compile(model, .device = device, .optimizer = cornu_adam(.learning_rate = 1e-4),
                         .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
}

/* Unsplit it takes 57 M weights, a slice of two slots and gradients: 690 MB of a shard. */
static void test_whole(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("tpu:v3-8", .shards = SHARDS, .shard_memory = cap);
    CornuModel  *model = gpt_large();
    CornuStatus  status = compile(model, device);
    double       loss;
    assert_true(cornu_model_parameters(model) >= 50000000);
    if (!status)
        status = cornu_train_on_batch(model, cornu_array(x, CORNU_U8, SHARDS, TIMES),
                                      cornu_array(y, CORNU_U8, SHARDS, TIMES), &loss);
    assert_int_equal(status, CORNU_ERR_MEMORY);
    print_message("# %s\n", cornu_error_message());
    assert_non_null(strstr(cornu_error_message(), "It fits if a mesh cuts it, as (batch="));
    cornu_error_take();
    cornu_model_free(model);
    cornu_device_close(device);
}

static void test_mesh(void **state)
{
    (void)state;
    double           losses[STEPS];
    CornuModel      *model = gpt_large();
    CornuAutoLayout *chosen = cornu_auto_layout(model, cornu_device_mesh(.shape = { 2, 4 }),
                                                .batch_size = ROWS, .hbm_bytes = cap);
    if (!chosen) fail_msg("%s", cornu_error_message());
    cornu_auto_layout_print(chosen, stdout);
    const CornuLayoutChoice *first = cornu_auto_layout_choice(chosen, 0);
    assert_false(cornu_auto_layout_data_parallel(chosen)->fits);
    CornuStrategy *parallel = cornu_model_parallel(.mesh = first->mesh, .device = "tpu:v3-8",
                                                   .layout_map = first->layout_map,
                                                   .shard_memory = cap);
    if (compile(model, cornu_strategy_device(parallel))) fail_msg("%s", cornu_error_message());
    for (int i = 0; i < STEPS; i++) {
        if (cornu_train_on_batch(model, cornu_array(x, CORNU_U8, ROWS, TIMES),
                                 cornu_array(y, CORNU_U8, ROWS, TIMES), &losses[i]))
            fail_msg("%s", cornu_error_message());
        print_message("# step %d: loss %.4f\n", i + 1, losses[i]);
    }
    assert_true(isfinite(losses[STEPS - 1]) && losses[STEPS - 1] < losses[0]);
    assert_true(cornu_device_memory(cornu_strategy_device(parallel)).total.peak <= cap);
    cornu_model_free(model);
    cornu_strategy_free(parallel);
    cornu_auto_layout_free(chosen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_mesh),
    };
    make_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
