/* The TPU's performance model on the compiled steps of whole networks: the modelled device time
 * must not exceed times published for a v2-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cornu/cornu.h>
#include <cornu/device/tpu/model.h>
#include <cornu/models/models.h>

static CornuTpuModel *modelled(const char *name, int64_t batch)
{
    const CornuReferenceModel *reference = cornu_reference_model(name);
    assert_non_null(reference);
    CornuDevice *device = cornu_device_open("tpu", .threads = 1);
    CornuModel  *model = reference->build(&(CornuNetworkConfig){ 0 });
    assert_int_equal(cornu_compile(model, .loss = cornu_loss(reference->loss), .device = device,
                                   .optimizer = cornu_reference_optimizer(reference, 60, 0.0)),
                     CORNU_OK);
    CornuExecutable *step = cornu_model_train_step(model, cornu_reference_input_type(model, batch),
                                                   cornu_reference_label_type(model, batch));
    if (!step) fail_msg("%s", cornu_error_message());
    CornuTpuModel *tpu = cornu_tpu_model(.executable = step);
    assert_non_null(tpu);
    print_message("# %s, %lld samples: modelled device %.3f ms, infeed %.3f ms\n", name,
                  (long long)batch, 1e3 * tpu->device_s, 1e3 * tpu->infeed_s);
    cornu_model_free(model);
    cornu_device_close(device);
    return tpu;
}

static void test_published_times_are_not_exceeded(void **state)
{
    (void)state;
    /* Milliseconds per step on a v2-8, the fastest published. Each sample is fed as bytes, each
     * shard with i64: its number of rows and, for dropout, the position of the first. */
    static const struct {
        const char *name;
        int64_t     batch, fed, numbers;
        double      published_ms;
    } table[] = {
        { "mnist_cnn", 1024, 28 * 28 + 1, 2, 43.0 },      /* 43 to 46 ms in the notebook's log */
        { "mnist_cnn_bn", 512, 28 * 28 + 1, 2, 8.5 },     /* 18 ms in one log; 117 in 1 s */
        { "fashion_mnist_cnn", 1024, 28 * 28 + 1, 2, 80.0 },   /* 8 s for 100 steps */
        { "fashion_mnist_cnn", 512, 28 * 28 + 1, 2, 70.0 },    /* 7 s for 100 steps */
        { "shakespeare_lstm", 1024, 100 + 100, 1, 167.0 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        CornuTpuModel *tpu = modelled(table[i].name, table[i].batch);
        assert_true(tpu->device_s > 0.0 && 1e3 * tpu->device_s < table[i].published_ms);
        assert_true(tpu->infeed_s > 0.0 && 1e3 * tpu->infeed_s < table[i].published_ms);
        assert_int_equal(tpu->infeed_bytes,
                         table[i].batch * table[i].fed + table[i].numbers * 8 * 8);
        cornu_tpu_model_free(tpu);
    }
}

/* The dispatch constant was fitted to this run: 43 to 46 ms per step. */
static void test_the_step_that_was_fitted(void **state)
{
    (void)state;
    CornuTpuModel *tpu = modelled("mnist_cnn", 1024);
    assert_true(1e3 * tpu->step_s >= 43.0 && 1e3 * tpu->step_s <= 46.0);
    assert_int_equal(tpu->bound, CORNU_TPU_BOUND_DISPATCH);
    /* 93,322 gradients in segments of 16 for each of 8 shards, and the f64 sum of the losses. */
    assert_int_equal(tpu->link_bytes, 4 * 93440 + 8);
    cornu_tpu_model_free(tpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_times_are_not_exceeded),
        cmocka_unit_test(test_the_step_that_was_fitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
