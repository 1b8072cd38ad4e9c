/* Descriptions of an executable's steps, and when they ran. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../../../skip.h"

#include <cornu/device/host/machine/cpu.h>

#include "../../../allocations.h"
#include "../../programs.h"

/* Rows, 16 for each shard: relu(x w + b), its column sums over all shards, and a variable that they
 * are added to. */
static CornuProgram *sharded(void)
{
    CornuProgram    *p = cornu_program_create();
    const CornuShape rows = cornu_shape(16, 64);
    CornuValue       x, w = input(p, cornu_type(CORNU_F32, 32, 64));
    CornuValue       b = input(p, cornu_type(CORNU_F32, 64));
    CornuValue       total = input(p, cornu_type(CORNU_F32, 64));
    assert_int_equal(cornu_program_shard_input(p, cornu_type(CORNU_F32, 16, 32), &x), CORNU_OK);
    cornu_program_scope(p, "dense");
    CornuValue y = op2(p, CORNU_OP_ADD, op2(p, CORNU_OP_MATMUL, x, w), broadcast(p, b, rows));
    y = op1(p, CORNU_OP_RELU, y);
    cornu_program_scope(p, NULL);
    CornuValue sum = op1(p, CORNU_OP_ALL_REDUCE, reduce(p, CORNU_OP_REDUCE_SUM, y, 1));
    output(p, op2(p, CORNU_OP_ADD, total, sum), 2);
    return p;
}

static const CornuExecutableStep *find(const CornuExecutable *executable, const char *name)
{
    int                        count;
    const CornuExecutableStep *steps = cornu_executable_steps(executable, &count);
    for (int i = 0; i < count; i++)
        if (!strcmp(steps[i].name, name)) return &steps[i];
    fail_msg("no step is called %s", name);
    return NULL;
}

/* matmul+bias+relu reads x (16, 32), w (32, 64) and b (64), writes (16, 64), all f32; it counts
 * 2 x 16 x 32 x 64 for the product, one each for bias and relu. */
static void test_steps_say_what_they_compute(void **state)
{
    (void)state;
    CornuProgram  *p = sharded();
    CornuDevice   *device = cornu_device_open("tpu", .shards = 4, .threads = 2);
    Compiled       made = compile(device, p);
    const CornuExecutableStep *step = find(made.executable, "matmul+bias+relu");
    assert_string_equal(step->kind, "kernel");
    assert_string_equal(step->scope, "dense");
    assert_string_equal(step->kernel, "matmul");
    assert_true(step->per_shard);
    assert_int_equal(step->flops, 2 * 16 * 32 * 64 + 2 * 16 * 64);
    assert_int_equal(step->bytes_read, 4 * (16 * 32 + 32 * 64 + 64));
    assert_int_equal(step->bytes_written, 4 * 16 * 64);
    assert_int_equal(step->in_count, 3);
    assert_true(cornu_type_equal(step->out[0], cornu_type(CORNU_F32, 16, 64)));
    step = find(made.executable, "all_reduce");
    assert_string_equal(step->kind, "collective");
    assert_string_equal(step->kernel, "collective");
    assert_string_equal(step->scope, "");
    assert_false(step->per_shard);
    assert_true(find(made.executable, "reduce_sum")->per_shard);
    step = find(made.executable, "add");
    assert_string_equal(step->kind, "group");
    assert_false(step->per_shard);
    release(&made);
    cornu_device_close(device);
    cornu_program_free(p);
}

/* A pooling joined from either side belongs to the step; the sums over all steps are those of
 * the statistics; every op that computes is in one step. */
static void test_each_op_is_in_one_step(void **state)
{
    (void)state;
    CornuProgram   *p = cornu_program_create();
    CornuAttributes conv = { .conv2d = { .strides = { 1, 1 }, .dilation = { 1, 1 } } };
    CornuAttributes pool = { .window = { .size = { 2, 2 }, .strides = { 2, 2 } } };
    CornuValue      x = input(p, cornu_type(CORNU_F32, 8, 10, 10, 4));
    CornuValue      w = input(p, cornu_type(CORNU_F32, 3, 3, 4, 16));
    CornuValue      pooled[2], y = op(p, CORNU_OP_CONV2D, &conv, (CornuValue[]){ x, w }, 2);
    assert_int_equal(cornu_program_record(p, CORNU_OP_MAX_POOL2D, &pool, &y, 1, pooled), CORNU_OK);
    y = op1(p, CORNU_OP_RELU, pooled[0]);
    output(p, y, -1);
    CornuAttributes back = { .window_grad = { .size = { 2, 2 }, .strides = { 2, 2 },
                                              .extents = { 8, 8 } } };
    CornuValue d_y = op(p, CORNU_OP_MAX_POOL2D_GRAD, &back, (CornuValue[]){ y, pooled[1] }, 2);
    CornuAttributes filter = { .conv2d_grad = { .strides = { 1, 1 }, .dilation = { 1, 1 },
                                                .extents = { 3, 3 } } };
    output(p, op(p, CORNU_OP_CONV2D_GRAD_FILTER, &filter, (CornuValue[]){ x, d_y }, 2), -1);

    CornuDevice *device = cornu_device_open("cpu");
    Compiled     made = compile(device, p);
    find(made.executable, "conv2d+max_pool2d+relu");
    find(made.executable, "max_pool2d_grad+conv2d_grad_filter");
    int                        count, seen[16] = { 0 };
    int64_t                    flops = 0, bytes = 0;
    const CornuExecutableStep *steps = cornu_executable_steps(made.executable, &count);
    for (int i = 0; i < count; i++) {
        flops += steps[i].flops;
        bytes += steps[i].bytes_read + steps[i].bytes_written;
        for (int k = 0; k < steps[i].op_count; k++) seen[steps[i].ops[k]]++;
    }
    assert_int_equal(count, statistics(&made)->kernels);
    assert_int_equal(flops, statistics(&made)->flops);
    assert_int_equal(bytes, statistics(&made)->bytes_moved);
    assert_int_equal(cornu_executable_program(made.executable)->op_count, 5);
    for (int i = 0; i < 5; i++) assert_int_equal(seen[i], 1);
    release(&made);
    cornu_device_close(device);
    cornu_program_free(p);
}

/* Both gradients of a convolution make the pool's gradient themselves, each within a step of its
 * own layer, unless something else reads it too. */
static void check_gradients_of_pool(bool read_elsewhere)
{
    CornuProgram   *p = cornu_program_create();
    CornuAttributes back = { .window_grad = { .size = { 2, 2 }, .strides = { 2, 2 },
                                              .extents = { 8, 8 } } };
    CornuAttributes conv = { .conv2d_grad = { .strides = { 1, 1 }, .dilation = { 1, 1 } } };
    CornuValue      x = input(p, cornu_type(CORNU_F32, 8, 10, 10, 4));
    CornuValue      w = input(p, cornu_type(CORNU_F32, 3, 3, 4, 16));
    CornuValue      d_y = input(p, cornu_type(CORNU_F32, 8, 4, 4, 16));
    CornuValue      index = input(p, cornu_type(CORNU_U8, 8, 4, 4, 16));
    cornu_program_scope(p, "pool");
    d_y = op(p, CORNU_OP_MAX_POOL2D_GRAD, &back, (CornuValue[]){ d_y, index }, 2);
    cornu_program_scope(p, "conv");
    conv.conv2d_grad.extents[0] = conv.conv2d_grad.extents[1] = 10;
    output(p, op(p, CORNU_OP_CONV2D_GRAD_INPUT, &conv, (CornuValue[]){ d_y, w }, 2), -1);
    conv.conv2d_grad.extents[0] = conv.conv2d_grad.extents[1] = 3;
    output(p, op(p, CORNU_OP_CONV2D_GRAD_FILTER, &conv, (CornuValue[]){ x, d_y }, 2), -1);
    if (read_elsewhere) output(p, reduce(p, CORNU_OP_REDUCE_SUM, d_y, 7), -1);

    CornuDevice *device = cornu_device_open("cpu");
    Compiled     made = compile(device, p);
    int          count;
    cornu_executable_steps(made.executable, &count);
    if (read_elsewhere) {
        assert_string_equal(find(made.executable, "max_pool2d_grad")->scope, "pool");
        find(made.executable, "conv2d_grad_input");
        find(made.executable, "conv2d_grad_filter");
    } else {
        const char *const names[] = { "max_pool2d_grad+conv2d_grad_input",
                                      "max_pool2d_grad+conv2d_grad_filter" };
        const int64_t pooled = 8 * 4 * 4 * 16, image = 4 * 8 * 10 * 10 * 4, filter = 4 * 9 * 4 * 16;
        for (int i = 0; i < 2; i++) {
            const CornuExecutableStep *step = find(made.executable, names[i]);
            assert_string_equal(step->scope, "conv");
            assert_int_equal(step->op_count, 2);
            assert_int_equal(step->bytes_read, 5 * pooled + (i ? image : filter));
            assert_int_equal(step->bytes_written, i ? filter : image);
        }
        assert_int_equal(count, 3);   /* and the step that packs the filter */
    }
    release(&made);
    cornu_device_close(device);
    cornu_program_free(p);
}

static void test_gradients_make_the_pools(void **state)
{
    (void)state;
    check_gradients_of_pool(false);
    check_gradients_of_pool(true);
}

/* The compiled program stays as it was where outputs are copied: two variables are swapped. */
static void test_outputs_stay_values_of_the_program(void **state)
{
    (void)state;
    CornuProgram *p = cornu_program_create();
    CornuValue    a = input(p, cornu_type(CORNU_F32, 8)), b = input(p, cornu_type(CORNU_F32, 8));
    output(p, a, 1);
    output(p, b, 0);
    CornuDevice *device = cornu_device_open("cpu");
    Compiled     made = compile(device, p);
    const CornuProgram *compiled = cornu_executable_program(made.executable);
    assert_string_equal(find(made.executable, "copy")->kind, "copy");
    for (int i = 0; i < compiled->output_count; i++)
        assert_true(compiled->outputs[i].value < compiled->value_count);
    release(&made);
    cornu_device_close(device);
    cornu_program_free(p);
}

/* Runs and measures the sharded program: every step ran, in order, on the threads that exist. */
static void check_times(const char *name, int shards, int threads)
{
    CornuProgram   *p = sharded();
    CornuDevice    *device = cornu_device_open(name, .shards = shards, .threads = threads);
    Compiled        made = compile(device, p);
    const int       events = cornu_executable_event_count(made.executable);
    CornuStepEvent *event = calloc((size_t)events, sizeof *event);
    int             count;
    const CornuExecutableStep *steps = cornu_executable_steps(made.executable, &count);
    assert_int_equal(events, count * shards * threads);
    run(&made);
    cornu_executable_record(made.executable, event);
    const int64_t before = allocations();
    run(&made);
    assert_int_equal(allocations(), before);
    double last[8] = { 0.0 };
    for (int i = 0; i < count; i++)
        for (int s = 0; s < shards; s++) {
            const CornuStepEvent *at = event + (i * shards + s) * threads;
            double                begin = 0.0, end = 0.0;
            for (int t = 0; t < threads; t++) {
                assert_int_equal(at[t].step, i);
                assert_int_equal(at[t].shard, s);
                assert_int_equal(at[t].thread, t);
                assert_true(at[t].begin_s <= at[t].end_s);
                if (at[t].begin_s == 0.0) continue;
                if (begin == 0.0 || at[t].begin_s < begin) begin = at[t].begin_s;
                if (at[t].end_s > end) end = at[t].end_s;
            }
            if (!steps[i].per_shard && s > 0) {
                assert_true(end == 0.0);
                continue;
            }
            assert_true(begin > 0.0 && begin >= last[s]);
            last[s] = end;
            /* A step that runs once waits for all shards, and they for it. */
            for (int k = 0; !steps[i].per_shard && k < shards; k++) {
                assert_true(begin >= last[k] || k == s);
                last[k] = end;
            }
        }
    const double first = event[0].begin_s + event[threads - 1].begin_s;
    cornu_executable_record(made.executable, NULL);
    run(&made);
    assert_true(first == event[0].begin_s + event[threads - 1].begin_s);
    free(event);
    release(&made);
    cornu_device_close(device);
    cornu_program_free(p);
}

static void test_times_of_steps(void **state)
{
    (void)state;
    check_times("cpu", 1, 1);
    check_times("cpu", 1, 3);       /* all threads work on each step */
    check_times("tpu", 2, 3);       /* and on each shard */
    check_times("tpu", 8, 2);       /* a thread takes a shard from start to end */
    check_times("reference", 1, 1);
}

/* Seconds in which a second thread gets a processor, whatever else runs on the machine. */
enum { PATIENCE = 20 };

/* Wide enough that each of two threads gets rows of the product, if it is in time. */
static void test_threads_that_help_are_seen(void **state)
{
    (void)state;
    if (cornu__cpu_threads() < 2)
        SKIP_FOR(SKIP_PROCESSORS);   /* on one processor either may do all */
    CornuProgram *p = cornu_program_create();
    output(p, op2(p, CORNU_OP_MATMUL, input(p, cornu_type(CORNU_F32, 1024, 256)),
                  input(p, cornu_type(CORNU_F32, 256, 512))), -1);
    CornuDevice   *device = cornu_device_open("cpu", .threads = 2);
    Compiled       made = compile(device, p);
    CornuStepEvent events[8], *event;
    bool           helped = false;
    const int      count = cornu_executable_event_count(made.executable);
    assert_in_range(count, 2, 8);   /* the product may come after a step that packs for it */
    event = &events[count - 2];
    cornu_executable_record(made.executable, events);
    for (const time_t end = time(NULL) + PATIENCE; time(NULL) < end && !helped;) {
        run(&made);
        helped = event[1].begin_s > 0.0;
        if (!helped) continue;
        assert_true(event[0].begin_s <= event[1].begin_s && event[1].begin_s < event[1].end_s);
        assert_true(event[1].end_s <= event[0].end_s);
    }
    assert_true(helped);
    release(&made);
    cornu_device_close(device);
    cornu_program_free(p);
}

/* With shards enough for all threads, each is in its shards' steps from start to end. */
static void test_threads_take_shards(void **state)
{
    (void)state;
    enum { SHARDS = 8, THREADS = 2 };
    if (cornu__cpu_threads() < 2)
        SKIP_FOR(SKIP_PROCESSORS);   /* on one processor either may do all */
    CornuProgram   *p = sharded();
    CornuDevice    *device = cornu_device_open("tpu", .shards = SHARDS, .threads = THREADS);
    Compiled        made = compile(device, p);
    CornuStepEvent *event = calloc((size_t)cornu_executable_event_count(made.executable),
                                   sizeof *event);
    int  count;
    bool both = false;
    const CornuExecutableStep *steps = cornu_executable_steps(made.executable, &count);
    cornu_executable_record(made.executable, event);
    for (const time_t end = time(NULL) + PATIENCE; time(NULL) < end && !both;) {
        run(&made);
        for (int i = 0; i < count * SHARDS; i++) {
            const CornuStepEvent *at = event + i * THREADS;
            if (!steps[at->step].per_shard) continue;
            assert_true((at[0].begin_s > 0.0) != (at[1].begin_s > 0.0));
            both = both || at[1].begin_s > 0.0;
        }
    }
    assert_true(both);
    free(event);
    release(&made);
    cornu_device_close(device);
    cornu_program_free(p);
}

static void test_profiles_of_devices(void **state)
{
    (void)state;
    CornuDevice *cpu = cornu_device_open("cpu"), *tpu = cornu_device_open("tpu:v3-8");
    assert_null(cornu_device_profile(cpu));
    assert_string_equal(cornu_device_profile(tpu), "v3-8");
    cornu_device_close(cpu);
    cornu_device_close(tpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_say_what_they_compute),
        cmocka_unit_test(test_each_op_is_in_one_step),
        cmocka_unit_test(test_gradients_make_the_pools),
        cmocka_unit_test(test_outputs_stay_values_of_the_program),
        cmocka_unit_test(test_times_of_steps),
        cmocka_unit_test(test_threads_that_help_are_seen),
        cmocka_unit_test(test_threads_take_shards),
        cmocka_unit_test(test_profiles_of_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
