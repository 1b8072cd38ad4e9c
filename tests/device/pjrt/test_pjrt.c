/* The pjrt device itself: what it is opened with, and the text that it compiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../datasets/files.h"
#include "../../expect.h"
#include "../programs.h"
#include "opened.h"

/* ---- Opening ---- */

static void it_says_what_it_is(void **state)
{
    (void)state;
    CornuDevice *device = pjrt_open(4);
    const char  *line = cornu_device_description(device);
    assert_int_equal(cornu_error_status(), CORNU_OK);   /* nor what the plugin could not say */
    assert_string_equal(cornu_device_name(device), "pjrt");
    assert_memory_equal(line, "pjrt: cpu, ", 11);
    assert_non_null(strstr(line, "| API 0."));
    assert_non_null(strstr(line, "| 4 replicas"));
    assert_int_equal(cornu_device_shards(device), 4);
    assert_string_equal(cornu_device_policy(device), "float32");
    assert_null(cornu_device_profile(device));
    cornu_device_close(device);
}

/* Devices of their own: buffers and programs of one are nothing to the other. */
static void several_are_open_at_once(void **state)
{
    (void)state;
    CornuProgram *p = cornu_program_create();
    CornuValue    x = input(p, cornu_type(CORNU_F32, 2));
    CornuDevice  *devices[2] = { pjrt_open(1), pjrt_open(2) };
    Compiled      compiled[2];
    output(p, op2(p, CORNU_OP_ADD, x, x), 0);
    for (int d = 0; d < 2; d++) {
        compiled[d] = compile(devices[d], p);
        set_numbers(&compiled[d], 0, (double[]){ 1 + d, 10 });
    }
    for (int i = 0; i < 4; i++) run(&compiled[i % 2]);
    for (int d = 0; d < 2; d++) {
        int64_t count;
        double *got = get_input(&compiled[d], 0, &count);
        assert_true(got[0] == 4 * (1 + d) && got[1] == 40);
        free(got);
        release(&compiled[d]);
        cornu_device_close(devices[d]);
    }
    cornu_program_free(p);
}

static void too_many_shards_are_refused(void **state)
{
    (void)state;
    cornu_device_close(pjrt_open(1));
    expect_failure(cornu_device_open(.name = pjrt_name(), .shards = 65), CORNU_ERR_ARGUMENT,
                   "1 to 64");
    if (strncmp(pjrt_name(), "pjrt:cpu", 8) != 0) return;
    /* The user's number of devices, below that of shards. */
    char name[5000];
    snprintf(name, sizeof name, "%s,cpu_device_count=2", pjrt_name());
    CornuDevice *device = cornu_device_open(.name = name, .shards = 2);
    if (!device) fail_msg("%s", cornu_error_message());
    cornu_device_close(device);
    expect_failure(cornu_device_open(.name = name, .shards = 4), CORNU_ERR_ARGUMENT,
                   "4 shards, but the plugin has 2 devices");
}

/* What becomes of an option is the plugin's: some ignore what they do not know, others refuse it.
 * Either way there is a device, or a status that names the call. */
static void an_unknown_option_is_the_plugins_to_refuse(void **state)
{
    (void)state;
    char name[5000];
    cornu_device_close(pjrt_open(1));
    snprintf(name, sizeof name, "%s,no_such_option=7", pjrt_name());
    CornuDevice *device = cornu_device_open(.name = name);
    if (device) cornu_device_close(device);
    else expect_error(cornu_error_take(), CORNU_ERR_DEVICE, "no_such_option");
    snprintf(name, sizeof name, "%s,no_such_option", pjrt_name());
    expect_failure(cornu_device_open(.name = name), CORNU_ERR_DEVICE,
                   "\"no_such_option\", expected OPTION=VALUE");
}

/* The gradient of a lookup by f32 sums, as a product and as XLA adds rows. */
static void a_deterministic_device_computes_the_same(void **state)
{
    (void)state;
    enum { COUNT = 60, ROWS = 9, COLUMNS = 3 };
    CornuAttributes a = { .gather_grad = { .rows = ROWS } };
    CornuProgram   *p = cornu_program_create();
    CornuValue      in[2] = { input(p, cornu_type(CORNU_F32, 5, 12, COLUMNS)),
                              input(p, cornu_type(CORNU_U8, 5, 12)) };
    double          indices[COUNT], *got[2];
    char            name[5000];
    int64_t         count;
    for (int i = 0; i < COUNT; i++) indices[i] = i * i % 7;
    output(p, op(p, CORNU_OP_GATHER_GRAD, &a, in, 2), -1);
    for (int d = 0; d < 2; d++) {
        CornuDevice *device = pjrt_open_with(d ? ",deterministic=true" : ",deterministic=false", 1);
        Compiled     compiled = compile(device, p);
        set_inputs(&compiled, 3);
        set_numbers(&compiled, 1, indices);
        run(&compiled);
        got[d] = get_output(&compiled, 0, &count);
        release(&compiled);
        cornu_device_close(device);
    }
    assert_int_equal(count, ROWS * COLUMNS);
    for (int64_t i = 0; i < count; i++) assert_float_equal(got[1][i], got[0][i], 1e-5);
    assert_true(got[0][0] != 0.0 && got[0][count - 1] == 0.0);
    free(got[0]), free(got[1]);
    cornu_program_free(p);
    snprintf(name, sizeof name, "%s,deterministic=1", pjrt_name());
    expect_failure(cornu_device_open(.name = name), CORNU_ERR_DEVICE,
                   "deterministic is \"1\", expected true or false");
}

/* The number that a maximum begins with is the least of 64 bits, not of 32. */
static void integers_below_32_bits_have_a_maximum(void **state)
{
    (void)state;
    CornuAttributes a = { .reduce = { .axes = 2 } };
    CornuProgram   *p = cornu_program_create();
    CornuValue      x = input(p, cornu_type(CORNU_I64, 2, 3));
    const double    numbers[] = { -5e9, -4e9, -6e9, -0x1p62, -0x1p61, -0x1p60 };
    int64_t         count;
    output(p, op(p, CORNU_OP_REDUCE_MAX, &a, &x, 1), -1);
    CornuDevice *device = pjrt_open(1);
    Compiled     compiled = compile(device, p);
    set_numbers(&compiled, 0, numbers);
    run(&compiled);
    double *got = get_output(&compiled, 0, &count);
    assert_int_equal(count, 2);
    assert_true(got[0] == -4e9 && got[1] == -0x1p60);
    free(got);
    release(&compiled);
    cornu_device_close(device);
    cornu_program_free(p);
}

static void a_precision_is_told(void **state)
{
    (void)state;
    cornu_device_close(pjrt_open(1));
    CornuDevice *device = cornu_device_open(.name = pjrt_name(), .shards = 1,
                                            .precision = CORNU_PRECISION_HIGH);
    if (!device) fail_msg("%s", cornu_error_message());
    assert_non_null(strstr(cornu_device_description(device), " | precision high | 1 replica"));
    assert_int_equal(cornu_device_precision(device), CORNU_PRECISION_HIGH);
    cornu_device_close(device);
}

/* ---- The text ---- */

/* A program whose ops need names, regions, constants and checks; `number` is one of its constants.
 * Tests make it several times. */
static CornuProgram *example(double number)
{
    CornuProgram   *p = cornu_program_create();
    CornuAttributes pool = { .window = { .size = { 2, 2 }, .strides = { 2, 2 } } };
    CornuValue      x = input(p, cornu_type(CORNU_F32, 2, 4, 4, 3)), pooled[2];
    CornuValue      labels = input(p, cornu_type(CORNU_I32, 2));
    expect_ok(cornu_program_record(p, CORNU_OP_MAX_POOL2D, &pool, &x, 1, pooled));
    CornuValue logits = reduce(p, CORNU_OP_REDUCE_SUM, pooled[0], 6);
    logits = op2(p, CORNU_OP_ADD, logits,
                 broadcast(p, constant(p, CORNU_F32, number), cornu_shape(2, 3)));
    output(p, op2(p, CORNU_OP_SPARSE_CROSS_ENTROPY, logits, labels), -1);
    return p;
}

/* What compiling prints on stderr; the caller frees it. Plugins print there, too: only the module
 * is kept. */
static char *dumped(double number)
{
    enum { MOST = 1 << 18 };
    char         *text = calloc(1, MOST);
    const char   *path = files_path(folder, "stderr");
    CornuProgram *p = example(number);
    CornuDevice  *device = pjrt_open(2);
    assert_non_null(text);
    fflush(stderr);
    const int kept = dup(STDERR_FILENO);
    assert_non_null(freopen(path, "wb", stderr));
    setenv("CORNU_DUMP", "stablehlo", 1);
    Compiled compiled = compile(device, p);
    unsetenv("CORNU_DUMP");
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    files_read(path, text, MOST - 1);
    release(&compiled);
    cornu_device_close(device);
    cornu_program_free(p);
    char *begin = strstr(text, "module @step"), *end = begin ? strstr(begin, "\n}\n") : NULL;
    if (!end) fail_msg("no module in: %s", text);
    end[3] = '\0';
    memmove(text, begin, strlen(begin) + 1);
    return text;
}

static void equal_programs_have_equal_text(void **state)
{
    (void)state;
    char *text = dumped(0.1), *same = dumped(0.1), *other = dumped(0.1 + 0x1p-20);
    assert_string_equal(text, same);
    assert_string_not_equal(text, other);
    assert_non_null(strstr(text, "mhlo.num_replicas = 2 : i32"));
    assert_non_null(strstr(text, "\"stablehlo.reduce\""));
    free(text), free(same), free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_what_it_is),
        cmocka_unit_test(several_are_open_at_once),
        cmocka_unit_test(too_many_shards_are_refused),
        cmocka_unit_test(an_unknown_option_is_the_plugins_to_refuse),
        cmocka_unit_test(a_deterministic_device_computes_the_same),
        cmocka_unit_test(integers_below_32_bits_have_a_maximum),
        cmocka_unit_test(a_precision_is_told),
        cmocka_unit_test_setup_teardown(equal_programs_have_equal_text, files_begin, files_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
