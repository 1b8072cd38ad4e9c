/* The performance model's whole steps: against published times, which its device part must never
 * exceed, and under its settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../skip.h"
#include <string.h>

#include "../../../device/tpu/model.h"

#include "../../allocations.h"
#include "../programs.h"
#include "near.h"

/* ---- Published times ---- */

/* The products of a convolution: forward and both gradients, or without that of x when nothing
 * before it learns. */
enum { FIRST, LATER };
static void train_conv(CornuProgram *p, int place, int64_t batch, int64_t size, int64_t channels,
                       int64_t kernel, int64_t filters, int64_t pad)
{
    const int64_t   out = size + 2 * pad - kernel + 1;
    const CornuType x = cornu_type(CORNU_F32, batch, size, size, channels);
    const CornuType filter = cornu_type(CORNU_F32, kernel, kernel, channels, filters);
    CornuAttributes conv = { .conv2d = { .low = { pad, pad }, .high = { pad, pad } } };
    CornuAttributes by_x = { .conv2d_grad = { .low = { pad, pad }, .high = { pad, pad },
                                              .extents = { size, size } } };
    CornuAttributes by_filter = by_x;
    by_filter.conv2d_grad.extents[0] = by_filter.conv2d_grad.extents[1] = kernel;
    const CornuValue in = input(p, x), w = input(p, filter);
    const CornuValue d_y = input(p, cornu_type(CORNU_F32, batch, out, out, filters));
    output(p, op(p, CORNU_OP_CONV2D, &conv, (CornuValue[]){ in, w }, 2), -1);
    output(p, op(p, CORNU_OP_CONV2D_GRAD_FILTER, &by_filter, (CornuValue[]){ in, d_y }, 2), -1);
    if (place == LATER)
        output(p, op(p, CORNU_OP_CONV2D_GRAD_INPUT, &by_x, (CornuValue[]){ d_y, w }, 2), -1);
}

/* Likewise of a dense layer. */
static void train_dense(CornuProgram *p, int64_t batch, int64_t in, int64_t out)
{
    const CornuAttributes ta = { .matmul = { .transpose_a = 1 } };
    const CornuAttributes tb = { .matmul = { .transpose_b = 1 } };
    const CornuValue x = input(p, cornu_type(CORNU_F32, batch, in));
    const CornuValue w = input(p, cornu_type(CORNU_F32, in, out));
    const CornuValue d_y = input(p, cornu_type(CORNU_F32, batch, out));
    output(p, op2(p, CORNU_OP_MATMUL, x, w), -1);
    output(p, op(p, CORNU_OP_MATMUL, &ta, (CornuValue[]){ x, d_y }, 2), -1);
    output(p, op(p, CORNU_OP_MATMUL, &tb, (CornuValue[]){ d_y, w }, 2), -1);
}

static CornuTpuModel *modelled(CornuProgram *p, int64_t weights, int64_t infeed)
{
    output(p, op1(p, CORNU_OP_ALL_REDUCE, input(p, cornu_type(CORNU_F32, weights))), -1);
    CornuTpuModel *model = cornu_tpu_model(p, .infeed_bytes = infeed);
    assert_non_null(model);
    assert_int_equal(model->link_bytes, 4 * weights);
    print_message("# modelled device %.3f ms, infeed %.3f ms, dispatch %.1f ms\n",
                  1e3 * model->device_s, 1e3 * model->infeed_s, 1e3 * model->dispatch_s);
    cornu_program_free(p);
    return model;
}

static CornuProgram *mnist_step(int64_t batch)
{
    CornuProgram *p = cornu_program_create();
    train_conv(p, FIRST, batch, 28, 1, 3, 32, 0);
    train_conv(p, LATER, batch, 13, 32, 3, 64, 0);
    train_conv(p, LATER, batch, 5, 64, 3, 64, 0);
    train_dense(p, batch, 576, 64);
    train_dense(p, batch, 64, 10);
    return p;
}

/* 60 steps of 1024 images in f32 per epoch, 43 to 46 ms each; 3 s. */
static void mnist_stays_below_its_published_time(void **state)
{
    (void)state;
    CornuTpuModel *model = modelled(mnist_step(128), 93322, (int64_t)1024 * 28 * 28 * 4);
    assert_true(model->device_s < 43e-3 && model->infeed_s < 43e-3);
    /* The dispatch constant was fitted to this run. */
    assert_true(model->step_s >= 43e-3 && model->step_s <= 46e-3);
    assert_int_equal(model->bound, CORNU_TPU_BOUND_DISPATCH);
    cornu_tpu_model_free(model);
    /* The log may also be read as 1024 images on each core. */
    model = modelled(mnist_step(1024), 93322, (int64_t)8 * 1024 * 28 * 28 * 4);
    assert_true(model->device_s < 43e-3 && model->infeed_s < 43e-3);
    cornu_tpu_model_free(model);
}

/* 100 steps of 1024 images, 80 ms each; batch norm learns before the first convolution. */
static void fashion_stays_below_its_published_time(void **state)
{
    (void)state;
    CornuProgram *p = cornu_program_create();
    train_conv(p, LATER, 128, 28, 1, 5, 64, 2);
    train_conv(p, LATER, 128, 14, 64, 5, 128, 2);
    train_conv(p, LATER, 128, 7, 128, 5, 256, 2);
    train_dense(p, 128, 2304, 256);
    train_dense(p, 128, 256, 10);
    CornuTpuModel *model = modelled(p, 1619470, (int64_t)1024 * 28 * 28 * 4);
    assert_true(model->device_s < 80e-3 && model->infeed_s < 80e-3);
    cornu_tpu_model_free(model);
}

/* 100 steps of 1024 sequences of 100 characters, 167 ms each: at every time step and in both
 * layers (128, 512 + 512) by (1024, 2048), weights read again each time; dense 512 to 256 at the
 * end. */
static void shakespeare_stays_below_its_published_time(void **state)
{
    (void)state;
    CornuProgram *p = cornu_program_create();
    for (int t = 0; t < 2 * 100; t++) train_dense(p, 128, 512 + 512, 4 * 512);
    train_dense(p, 128 * 100, 512, 256);
    CornuTpuModel *model = modelled(p, 4460800, (int64_t)1024 * 100 * 2 * 4);
    assert_true(model->device_s < 167e-3 && model->infeed_s < 167e-3);
    cornu_tpu_model_free(model);
}

/* ---- Settings ---- */

/* The infeed runs beside the step: the longer of both counts. On a v2-8, 4 chips are fed 60 GB in a
 * second. */
static void the_step_takes_the_longer_of_infeed_and_device(void **state)
{
    (void)state;
    CornuProgram  *p = mnist_step(128);
    CornuTpuModel *little = cornu_tpu_model(p, .infeed_bytes = 60);
    CornuTpuModel *much = cornu_tpu_model(p, .infeed_bytes = INT64_C(60000000000));
    assert_non_null(little);
    assert_non_null(much);
    assert_near(little->infeed_s, 1e-9, 1e-12);
    assert_true(little->device_s > 1e-9 && little->device_s < 1.0);
    assert_true(little->step_s == little->device_s + little->dispatch_s);
    assert_near(much->infeed_s, 1.0, 1e-12);
    assert_true(much->step_s == much->infeed_s + much->dispatch_s);
    assert_int_equal(much->bound, CORNU_TPU_BOUND_INFEED);
    cornu_tpu_model_free(little);
    cornu_tpu_model_free(much);
    cornu_program_free(p);
}

static void dispatch_is_shared_by_the_iterations_of_a_loop(void **state)
{
    (void)state;
    CornuProgram  *p = mnist_step(128);
    CornuTpuModel *one = cornu_tpu_model(p);
    CornuTpuModel *ten = cornu_tpu_model(p, .iterations_per_loop = 10);
    assert_non_null(one);
    assert_non_null(ten);
    assert_near(ten->dispatch_s, one->dispatch_s / 10.0, 1e-12);
    assert_true(ten->device_s == one->device_s && one->links_s == 0.0);
    cornu_tpu_model_free(one);
    cornu_tpu_model_free(ten);
    cornu_program_free(p);
}

static void newer_profiles_are_faster(void **state)
{
    (void)state;
    CornuProgram *p = mnist_step(1024);
    double        before = 1.0;
    for (const char *const *name = (const char *const[]){ "v2-8", "v3-8", "v4-8", NULL }; *name;
         name++) {
        CornuTpuModel *model = cornu_tpu_model(p, .profile = cornu_tpu_profile(*name));
        assert_non_null(model);
        assert_true(model->device_s < before);
        before = model->device_s;
        cornu_tpu_model_free(model);
    }
    cornu_program_free(p);
}

static void refuse(CornuTpuModel *model, CornuStatus status, const char *message)
{
    assert_null(model);
    assert_int_equal(cornu_error_take(), status);
    assert_non_null(strstr(cornu_error_message(), message));
}

static void settings_out_of_range_are_refused(void **state)
{
    (void)state;
    CornuProgram          *p = cornu_program_create();
    const CornuTpuProfile *v4 = cornu_tpu_profile("v4-8");
    refuse(cornu_tpu_model(NULL), CORNU_ERR_ARGUMENT,
           "neither given, expected a program or an executable");
    refuse(cornu_tpu_model(p, .profile = v4, .shards = 8), CORNU_ERR_ARGUMENT,
           "8 shards, expected 1 to the 4 replicas of v4-8");
    refuse(cornu_tpu_model(p, .passes = 2), CORNU_ERR_ARGUMENT, "2 passes, expected 1, 3 or 6");
    refuse(cornu_tpu_model(p, .infeed_bytes = -1), CORNU_ERR_ARGUMENT, "-1 bytes of infeed");
    CornuDevice     *device = cornu_device_open("tpu", .shards = 2);
    CornuExecutable *executable = cornu_device_compile(device, p);
    refuse(cornu_tpu_model(p, .executable = executable), CORNU_ERR_ARGUMENT, "both given");
    refuse(cornu_tpu_model(.executable = executable, .shards = 4), CORNU_ERR_ARGUMENT,
           "4 shards, the executable was compiled for 2");
    refuse(cornu_tpu_model(.executable = executable, .scaled = true, .shards = 1),
           CORNU_ERR_ARGUMENT, "1 shards, the executable was compiled for 2");
    refuse(cornu_tpu_model(.executable = executable, .scaled = true, .shards = 513),
           CORNU_ERR_ARGUMENT, "513 shards, expected 1 to the 512 replicas of v2-512");
    refuse(cornu_tpu_model(p, .shards = -1), CORNU_ERR_ARGUMENT, "-1 shards, expected 1 to");
    refuse(cornu_tpu_model(p, .profile = cornu_tpu_profile("v3-2048"), .shards = 2049),
           CORNU_ERR_ARGUMENT, "2049 shards, expected 1 to the 2048 replicas of v3-2048");
    cornu_executable_release(executable);
    cornu_device_close(device);
    CornuTpuModel *empty = cornu_tpu_model(p);
    assert_non_null(empty);
    assert_true(empty->device_s == 0.0);
    cornu_tpu_model_free(empty);
    cornu_tpu_model_free(NULL);
    cornu_program_free(p);
}

static void each_failed_allocation_is_reported(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    CornuProgram  *p = mnist_step(128);
    CornuTpuModel *model = NULL;
    int64_t        allowed = 0;
    for (; !model; allowed++) {
        allocations_fail_after(allowed);
        model = cornu_tpu_model(p);
        allocations_fail_after(NEVER);
        if (!model) assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
    }
    assert_int_equal(allowed, 5);   /* four of them, then it works */
    cornu_tpu_model_free(model);
    cornu_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mnist_stays_below_its_published_time),
        cmocka_unit_test(fashion_stays_below_its_published_time),
        cmocka_unit_test(shakespeare_stays_below_its_published_time),
        cmocka_unit_test(the_step_takes_the_longer_of_infeed_and_device),
        cmocka_unit_test(dispatch_is_shared_by_the_iterations_of_a_loop),
        cmocka_unit_test(newer_profiles_are_faster),
        cmocka_unit_test(settings_out_of_range_are_refused),
        cmocka_unit_test(each_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
