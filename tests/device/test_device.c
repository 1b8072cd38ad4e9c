/* What all devices have in common: names, argument checks, the cache of executables; and the
 * reference device's own promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "../../device/device_internal.h"
#include "../../device/ops/rules.h"
#include "../../device/text/nearest.h"

static void words_are_suggested(void **state)
{
    (void)state;
    static const char *const known[] = { "cpu", "reference", "--batch-size", "--epochs" };
    assert_string_equal(cornu_nearest("refrence", known, 4), "reference");
    assert_string_equal(cornu_nearest("cup", known, 4), "cpu");
    assert_string_equal(cornu_nearest("--bacth-size", known, 4), "--batch-size");
    assert_string_equal(cornu_nearest("--epoch", known, 4), "--epochs");
    assert_null(cornu_nearest("tpu:v3-8", known, 4));
    assert_null(cornu_nearest("", known, 4));
    char long_word[1000];
    memset(long_word, 'c', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    assert_null(cornu_nearest(long_word, known, 4));
}

static void unknown_devices_are_refused(void **state)
{
    (void)state;
    assert_null(cornu_device_open(.name = "refrence"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_DEVICE);
    assert_non_null(strstr(cornu_error_message(),
                           "device \"refrence\" is unknown, expected \"reference\""));
    assert_null(cornu_device_open(.name = "edgetpu"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_DEVICE);
    assert_non_null(strstr(cornu_error_message(), "cornu_quantize makes"));
    assert_null(cornu_device_open(.threads = 2));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_null(cornu_device_open(.name = "reference", .threads = -1));
    assert_null(cornu_device_open(.name = "reference"));   /* an error is pending */
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_string_equal(cornu_error_message(),
                        "device \"reference\": -1 threads, expected at least 1");
}

static void profiles_are_names(void **state)
{
    (void)state;
    static const struct { const char *name; int shards; const char *begin, *end; } known[] = {
        { "tpu", 0, "tpu: emulated v2-8 on ", " | 8 shards | 2 threads" },
        { "tpu:v2-8", 1, "tpu: emulated v2-8 on ", " | 1 shard | 2 threads" },
        { "tpu:v4-8", 0, "tpu: emulated v4-8 on ", " | 4 shards | 2 threads" },
        { "tpu:v6e-8", 2, "tpu: emulated v6e-8 on ", " | 2 shards | 2 threads" },
    };
    for (int i = 0; i < 4; i++) {
        CornuDevice *device = cornu_device_open(.name = known[i].name, .threads = 2,
                                                .shards = known[i].shards);
        assert_non_null(device);
        assert_string_equal(cornu_device_name(device), "tpu");
        assert_ptr_equal(strstr(cornu_device_description(device), known[i].begin),
                         cornu_device_description(device));
        assert_non_null(strstr(cornu_device_description(device), known[i].end));
        assert_string_equal(cornu_device_policy(device), "mixed_bfloat16");
        cornu_device_close(device);
    }
    assert_null(cornu_device_open(.name = "tpu:v9-8"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_DEVICE);
    assert_non_null(strstr(cornu_error_message(), "v9-8"));
    assert_non_null(strstr(cornu_error_message(), "v5e-8"));
    static const int bad[] = { 1025, -1 };
    for (int i = 0; i < 2; i++) {
        assert_null(cornu_device_open(.name = "tpu", .shards = bad[i]));
        assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
        assert_non_null(strstr(cornu_error_message(), "shards, expected 1 to 1024"));
    }
    static const CornuPrecision precisions[] = { CORNU_PRECISION_HIGHEST, CORNU_PRECISION_HIGH,
                                                 CORNU_PRECISION_DEFAULT };
    for (int i = 0; i < 3; i++) {
        char         text[32];
        CornuDevice *device = cornu_device_open(.name = "tpu", .precision = precisions[i]);
        assert_non_null(device);
        snprintf(text, sizeof text, "| precision %s |", cornu_precision_name(precisions[i]));
        /* The default is not mentioned. */
        assert_int_equal(strstr(cornu_device_description(device), text) != NULL,
                         precisions[i] != CORNU_PRECISION_HIGHEST);
        cornu_device_close(device);
    }
    assert_null(cornu_device_open(.name = "cpu", .precision = CORNU_PRECISION_HIGH));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "precision high, expected highest"));
    assert_null(cornu_device_open(.name = "tpu", .precision = (CornuPrecision)3));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "precision 3, expected highest, high or"));
    static const char *const wrong[] = { "cpu:v2-8", "tpus", "tp" };
    for (int i = 0; i < 3; i++) {
        assert_null(cornu_device_open(.name = wrong[i]));
        assert_int_equal(cornu_error_take(), CORNU_ERR_DEVICE);
        assert_non_null(strstr(cornu_error_message(), "is unknown"));
    }
}

static void buffers_check_types(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open(.name = "reference");
    CornuBuffer *buffer = cornu_buffer_create(device, cornu_type(CORNU_F32, 2, 3));
    float        x[6] = { 1, 2, 3, 4, 5, 6 }, y[6] = { 9, 9, 9, 9, 9, 9 };
    assert_int_equal(cornu_buffer_read(buffer, cornu_array(y, CORNU_F32, 2, 3)), CORNU_OK);
    for (int i = 0; i < 6; i++) assert_true(y[i] == 0.0f);
    assert_int_equal(cornu_buffer_write(buffer, cornu_array(x, CORNU_F32, 3, 2)),
                     CORNU_ERR_SHAPE);
    assert_string_equal(cornu_error_message(),
                        "the array written to a buffer is f32 (3, 2), expected f32 (2, 3)");
    assert_int_equal(cornu_buffer_read(buffer, cornu_array(x, CORNU_I32, 2, 3)),
                     CORNU_ERR_DTYPE);
    assert_int_equal(cornu_buffer_write(buffer, cornu_array(x, CORNU_F32, 2, 3)), CORNU_OK);
    assert_int_equal(cornu_buffer_read(buffer, cornu_array(y, CORNU_F32, 2, 3)), CORNU_OK);
    assert_memory_equal(x, y, sizeof x);

    assert_null(cornu_buffer_create(device, cornu_type(CORNU_F32, INT64_MAX, 2)));
    assert_int_equal(cornu_error_take(), CORNU_ERR_SHAPE);
    cornu_buffer_free(buffer);
    cornu_buffer_free(NULL);
    cornu_device_close(device);
    cornu_device_close(NULL);
}

/* Outputs: a + b, and the two inputs swapped in place. */
static CornuProgram *swap_program(void)
{
    CornuProgram *p = cornu_program_create();
    CornuValue    a, b, sum;
    cornu_program_input(p, cornu_type(CORNU_F32, 2), &a);
    cornu_program_input(p, cornu_type(CORNU_F32, 2), &b);
    assert_int_equal(cornu_program_record(p, CORNU_OP_ADD, NULL, (CornuValue[]){ a, b }, 2, &sum),
                     CORNU_OK);
    cornu_program_output(p, sum, -1);
    cornu_program_output(p, b, 0);
    cornu_program_output(p, a, 1);
    return p;
}

static CornuBuffer *vector(CornuDevice *device, float first, float second)
{
    CornuBuffer *buffer = cornu_buffer_create(device, cornu_type(CORNU_F32, 2));
    float        x[2] = { first, second };
    assert_int_equal(cornu_buffer_write(buffer, cornu_array(x, CORNU_F32, 2)), CORNU_OK);
    return buffer;
}

static void expect_vector(const CornuBuffer *buffer, float first, float second)
{
    float x[2];
    assert_int_equal(cornu_buffer_read(buffer, cornu_array(x, CORNU_F32, 2)), CORNU_OK);
    assert_true(x[0] == first && x[1] == second);
}

static void runs_check_their_buffers(void **state)
{
    (void)state;
    CornuDevice     *device = cornu_device_open(.name = "reference");
    CornuDevice     *other = cornu_device_open(.name = "reference");
    CornuProgram    *program = swap_program();
    CornuExecutable *executable = cornu_device_compile(device, program);
    cornu_program_free(program);
    CornuBuffer *a = vector(device, 1, 2), *b = vector(device, 10, 20);
    CornuBuffer *sum = vector(device, 0, 0), *theirs = vector(other, 0, 0);
    CornuBuffer *scalar = cornu_buffer_create(device, cornu_scalar(CORNU_F32));

#define RUN(in0, in1, out0, out1)                                 \
    cornu_executable_run(executable, (CornuBuffer *[]){ in0, in1 }, \
                         (CornuBuffer *[]){ out0, out1, NULL })
    assert_int_equal(RUN(a, theirs, sum, NULL), CORNU_ERR_DEVICE);
    assert_int_equal(RUN(a, scalar, sum, NULL), CORNU_ERR_SHAPE);
    assert_string_equal(cornu_error_message(),
                        "input 1: the buffer is f32 (), expected f32 (2,)");
    assert_int_equal(RUN(a, NULL, sum, NULL), CORNU_ERR_ARGUMENT);
    assert_int_equal(RUN(a, b, NULL, NULL), CORNU_ERR_ARGUMENT);
    assert_int_equal(RUN(a, b, sum, sum), CORNU_ERR_ARGUMENT);
    assert_string_equal(cornu_error_message(),
                        "output 1: expected NULL, for it is written into input 0");
    assert_int_equal(RUN(a, b, sum, NULL), CORNU_OK);
#undef RUN
    expect_vector(sum, 11, 22);
    expect_vector(a, 10, 20);
    expect_vector(b, 1, 2);

    cornu_buffer_free(scalar);
    cornu_buffer_free(theirs);
    cornu_buffer_free(sum);
    cornu_buffer_free(b);
    cornu_buffer_free(a);
    cornu_device_close(other);
    cornu_device_close(device);
}

static void equal_programs_are_compiled_once(void **state)
{
    (void)state;
    CornuDevice     *device = cornu_device_open(.name = "reference");
    CornuProgram    *program = swap_program(), *again = swap_program(), *other = swap_program();
    CornuValue       out;
    CornuExecutable *first = cornu_device_compile(device, program);
    cornu_program_record(other, CORNU_OP_TANH, NULL, &other->inputs[0], 1, &out);
    assert_ptr_equal(cornu_device_compile(device, again), first);
    assert_ptr_not_equal(cornu_device_compile(device, other), first);
    const CornuStatistics *statistics = cornu_executable_statistics(first);
    assert_int_equal(statistics->ops, 1);
    assert_int_equal(statistics->flops, 2);
    assert_int_equal(statistics->fallbacks, 1);
    assert_int_equal(statistics->copies, 5);
    assert_int_equal(statistics->bytes_planned, 3 * 2 * sizeof(double));
    cornu_program_free(other);
    cornu_program_free(again);
    cornu_program_free(program);
    cornu_device_close(device);
}

/* Values whose last reader has run leave their memory to later ones. */
static void the_reference_reuses_memory(void **state)
{
    (void)state;
    CornuDevice  *device = cornu_device_open(.name = "reference");
    CornuProgram *program = cornu_program_create();
    CornuValue    x;
    cornu_program_input(program, cornu_type(CORNU_F32, 1000), &x);
    for (int i = 0; i < 20; i++) cornu_program_record(program, CORNU_OP_NEGATIVE, NULL, &x, 1, &x);
    cornu_program_output(program, x, -1);
    CornuExecutable *executable = cornu_device_compile(device, program);
    assert_int_equal(cornu_executable_statistics(executable)->bytes_planned,
                     2 * 1000 * sizeof(double));
    cornu_program_free(program);
    cornu_device_close(device);
}

static void faults_name_layer_op_and_row(void **state)
{
    (void)state;
    CornuDevice    *device = cornu_device_open(.name = "reference");
    CornuProgram   *program = cornu_program_create();
    CornuAttributes one_hot = { .one_hot = { 10, CORNU_F32 } };
    CornuValue      labels, y;
    cornu_program_input(program, cornu_type(CORNU_I32, 4), &labels);
    cornu_program_scope(program, "loss");
    cornu_program_record(program, CORNU_OP_ONE_HOT, &one_hot, &labels, 1, &y);
    cornu_program_output(program, y, -1);
    CornuExecutable *executable = cornu_device_compile(device, program);
    CornuBuffer     *in = cornu_buffer_create(device, cornu_type(CORNU_I32, 4));
    CornuBuffer     *out = cornu_buffer_create(device, cornu_type(CORNU_F32, 4, 10));
    int32_t          wrong[4] = { 1, 2, 3, 11 };
    cornu_buffer_write(in, cornu_array(wrong, CORNU_I32, 4));
    assert_int_equal(cornu_executable_run(executable, &in, &out), CORNU_ERR_VALUE);
    assert_string_equal(cornu_error_message(),
                        "loss: one_hot: label 11 in row 3, expected 0 to 9");
    cornu_buffer_free(out);
    cornu_buffer_free(in);
    cornu_program_free(program);
    cornu_device_close(device);
}

/* One op on arrays of the declared dtypes, as a device without a kernel runs it. */
static void one_op_runs_on_host_arrays(void **state)
{
    (void)state;
    CornuType   in_type[2] = { cornu_type(CORNU_BF16, 1, 2), cornu_type(CORNU_BF16, 2, 1) };
    CornuType   out_type = cornu_type(CORNU_F32, 1, 1);
    CornuOpCall call = { CORNU_OP_MATMUL, &(CornuAttributes){ .none = { 0 } }, 2, in_type };
    uint16_t    a[2] = { cornu_bf16_from_float(1.5f), cornu_bf16_from_float(-2.0f) };
    uint16_t    b[2] = { cornu_bf16_from_float(4.0f), cornu_bf16_from_float(0.25f) };
    float       y = 0.0f;
    double      scratch[7];
    assert_int_equal(cornu__reference_scratch(&call, &out_type), 7);
    assert_int_equal(cornu__reference_run(&call, &out_type, (const void *[]){ a, b },
                                          (void *[]){ &y }, scratch), CORNU_OK);
    assert_true(y == 5.5f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_suggested),
        cmocka_unit_test(unknown_devices_are_refused),
        cmocka_unit_test(profiles_are_names),
        cmocka_unit_test(buffers_check_types),
        cmocka_unit_test(runs_check_their_buffers),
        cmocka_unit_test(equal_programs_are_compiled_once),
        cmocka_unit_test(the_reference_reuses_memory),
        cmocka_unit_test(faults_name_layer_op_and_row),
        cmocka_unit_test(one_op_runs_on_host_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
