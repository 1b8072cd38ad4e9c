/* Devices that plan: they count memory and compile, without having any. And those of which a shard
 * has so much. */
#include "../../device/device_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* 1 TB. */
static const CornuType huge = { CORNU_F32, { .rank = 2, .extent = { 1 << 20, 1 << 18 } } };

static CornuProgram *doubled(void)
{
    CornuProgram *program = cornu_program_create();
    CornuValue    x, y;
    CornuValue    in[2];
    assert_int_equal(cornu_program_input(program, huge, &x), CORNU_OK);
    in[0] = in[1] = x;
    assert_int_equal(cornu_program_record(program, CORNU_OP_ADD, NULL, in, 2, &y), CORNU_OK);
    assert_int_equal(cornu_program_output(program, y, -1), CORNU_OK);
    return program;
}

static void plans_more_than_there_is(void **state)
{
    (void)state;
    static const char *const names[] = { "cpu", "tpu:v3-8" };
    for (int i = 0; i < 2; i++) {
        CornuDevice *device = cornu_device_open(names[i], .threads = 1, .shards = 1);
        cornu__device_plan(device);
        CornuBuffer *x = cornu_buffer_create(device, huge, .use = CORNU_USE_WEIGHTS);
        CornuBuffer *y = cornu_buffer_create(device, huge);
        assert_non_null(y);
        CornuProgram    *program = doubled();
        CornuExecutable *executable = cornu_device_compile(device, program);
        assert_non_null(executable);
        float            one = 1.0f;
        const CornuArray part = cornu_array(&one, CORNU_F32, 1);
        assert_int_equal(cornu_buffer_write_part(x, 5, part), CORNU_OK);
        assert_int_equal(cornu_buffer_read_part(x, 5, part), CORNU_OK);
        assert_true(one == 1.0f);
        assert_int_equal(cornu_executable_run(executable, &x, &y), CORNU_ERR_UNSUPPORTED);
        const CornuMemory memory = cornu_device_memory(device);
        assert_int_equal(memory.uses[CORNU_USE_WEIGHTS].now, (int64_t)1 << 40);
        assert_int_equal(memory.total.now, (int64_t)1 << 41);
        cornu_executable_release(executable);
        cornu_program_free(program);
        cornu_buffer_free(x);
        cornu_buffer_free(y);
        cornu_device_close(device);
    }
}

static void a_shard_has_what_it_is_given(void **state)
{
    (void)state;
    const CornuType kb = cornu_type(CORNU_F32, 250);
    CornuDevice    *device = cornu_device_open("cpu", .shard_memory = 1999);
    assert_int_equal(cornu_device_memory(device).capacity, 1999);
    CornuBuffer *first = cornu_buffer_create(device, kb);
    assert_non_null(first);
    assert_null(cornu_buffer_create(device, kb));
    assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
    CornuDevice *like = cornu_device_open_like(device, 1);
    assert_int_equal(cornu_device_memory(like).capacity, 1999);
    cornu_device_close(like);
    cornu_buffer_free(first);
    cornu_device_close(device);
    assert_null(cornu_device_open("cpu", .shard_memory = -1));
    assert_non_null(strstr(cornu_error_message(), ".shard_memory is -1"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_more_than_there_is),
        cmocka_unit_test(a_shard_has_what_it_is_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
