/* What is counted of a device's memory, and what happens at its capacity. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../device/device_internal.h"
#include "programs.h"

static void *made(void *thing)
{
    if (!thing) fail_msg("%s", cornu_error_message());
    return thing;
}

static void expect_bytes(CornuBytes got, int64_t now, int64_t peak)
{
    assert_int_equal(got.now, now);
    assert_int_equal(got.peak, peak);
}

/* ---- Counts ---- */

static void buffers_count_by_use_until_they_are_freed(void **state)
{
    CornuDevice     *device = made(cornu_device_open(*state, .threads = 1));
    const CornuType  f32 = cornu_type(CORNU_F32, 8, 5), bf16 = cornu_type(CORNU_BF16, 3);
    CornuBuffer     *w = made(cornu_buffer_create(device, f32, .use = CORNU_USE_WEIGHTS));
    CornuBuffer     *m = made(cornu_buffer_create(device, bf16, .use = CORNU_USE_WEIGHTS));
    CornuBuffer     *v = made(cornu_buffer_create(device, f32, .use = CORNU_USE_SLOTS));
    CornuMemory      memory = cornu_device_memory(device);
    expect_bytes(memory.uses[CORNU_USE_WEIGHTS], 166, 166);
    expect_bytes(memory.uses[CORNU_USE_SLOTS], 160, 160);
    expect_bytes(memory.uses[CORNU_USE_OTHER], 0, 0);
    expect_bytes(memory.total, 326, 326);
    cornu_buffer_free(m);
    cornu_buffer_free(w);
    CornuBuffer *x = made(cornu_buffer_create(device, f32));
    memory = cornu_device_memory(device);
    expect_bytes(memory.uses[CORNU_USE_WEIGHTS], 0, 166);
    expect_bytes(memory.uses[CORNU_USE_OTHER], 160, 160);
    expect_bytes(memory.total, 320, 326);
    cornu_buffer_free(v);
    cornu_buffer_free(x);
    expect_bytes(cornu_device_memory(device).total, 0, 326);
    cornu_device_close(device);
}

static void a_shard_has_its_part(void **state)
{
    (void)state;
    CornuDevice     *device = made(cornu_device_open("tpu", .threads = 1, .shards = 8));
    const CornuType  f32 = cornu_type(CORNU_F32, 8, 5);
    CornuBuffer     *w = made(cornu_buffer_create(device, f32, .use = CORNU_USE_WEIGHTS));
    CornuBuffer     *x = made(cornu_buffer_create(device, f32, .use = CORNU_USE_INFEED,
                                                  .per_shard = true));
    const CornuMemory memory = cornu_device_memory(device);
    expect_bytes(memory.uses[CORNU_USE_WEIGHTS], 160, 160);
    expect_bytes(memory.uses[CORNU_USE_INFEED], 20, 20);
    expect_bytes(memory.total, 180, 180);
    cornu_buffer_free(w);
    cornu_buffer_free(x);
    assert_null(cornu_buffer_create(device, cornu_type(CORNU_F32, 5, 8), .per_shard = true));
    assert_int_equal(cornu_error_take(), CORNU_ERR_SHAPE);
    assert_string_equal(cornu_error_message(),
                        "a buffer per shard is f32 (5, 8), expected 8 in axis 0");
    assert_null(cornu_buffer_create(NULL, cornu_type(CORNU_F32, 8)));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    cornu_device_close(device);
}

/* x (4, 8) w (8, 16) v (16, 32) u (32, 8): two values in between. */
static CornuProgram *three_products(void)
{
    CornuProgram *program = made(cornu_program_create());
    CornuValue    x;
    assert_int_equal(cornu_program_shard_input(program, cornu_type(CORNU_F32, 4, 8), &x), CORNU_OK);
    assert_int_equal(cornu_program_scope(program, "dense_1"), CORNU_OK);
    x = op2(program, CORNU_OP_MATMUL, x, input(program, cornu_type(CORNU_F32, 8, 16)));
    x = op2(program, CORNU_OP_MATMUL, x, input(program, cornu_type(CORNU_F32, 16, 32)));
    assert_int_equal(cornu_program_scope(program, "dense_2"), CORNU_OK);
    x = op2(program, CORNU_OP_MATMUL, x, input(program, cornu_type(CORNU_F32, 32, 8)));
    output(program, x, -1);
    return program;
}

/* The second product needs both values at once: 4 16 4 + 4 32 4 bytes. */
enum { BETWEEN = 256 + 512 };

/* The device counts the plan of one shard, bytes_planned all shards that run at once. */
static void programs_count_their_plans(void **state)
{
    (void)state;
    static const struct { const char *name; int shards, threads, at_once; } devices[] = {
        { "cpu", 1, 1, 1 }, { "cpu", 4, 1, 1 }, { "cpu", 4, 2, 2 }, { "cpu", 2, 3, 1 },
        { "tpu", 1, 1, 1 }, { "tpu", 8, 1, 1 }, { "tpu", 8, 3, 3 },
    };
    CornuProgram *program = three_products(), *other = made(cornu_program_create());
    const CornuValue x = input(other, cornu_type(CORNU_F32, 4, 8));
    output(other, op2(other, CORNU_OP_MATMUL,
                      op2(other, CORNU_OP_MATMUL, x, input(other, cornu_type(CORNU_F32, 8, 4))),
                      input(other, cornu_type(CORNU_F32, 4, 4))), -1);
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        CornuDevice     *device = made(cornu_device_open(devices[i].name,
                                                         .threads = devices[i].threads,
                                                         .shards = devices[i].shards));
        CornuExecutable *first = made(cornu_device_compile(device, program));
        assert_int_equal(cornu_executable_statistics(first)->bytes_planned,
                         BETWEEN * devices[i].at_once);
        expect_bytes(cornu_device_memory(device).uses[CORNU_USE_ACTIVATIONS], BETWEEN, BETWEEN);
        assert_ptr_equal(cornu_device_compile(device, program), first);
        expect_bytes(cornu_device_memory(device).uses[CORNU_USE_ACTIVATIONS], BETWEEN, BETWEEN);
        made(cornu_device_compile(device, other));   /* which all shards share */
        expect_bytes(cornu_device_memory(device).uses[CORNU_USE_ACTIVATIONS], BETWEEN + 64,
                     BETWEEN + 64);
        cornu_device_close(device);
    }
    cornu_program_free(program);
    cornu_program_free(other);
}

/* ---- Capacity ---- */

static void capacities_are_those_of_the_profiles(void **state)
{
    (void)state;
    static const struct { const char *name; int64_t bytes; } devices[] = {
        { "cpu", 0 }, { "reference", 0 }, { "tpu", 8000000000 }, { "tpu:v3-8", INT64_C(1) << 34 },
        { "tpu:v4-8", INT64_C(1) << 35 }, { "tpu:v5e-8", 16000000000 },
    };
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        CornuDevice *device = made(cornu_device_open(devices[i].name, .threads = 1));
        assert_int_equal(cornu_device_memory(device).capacity, devices[i].bytes);
        cornu_device_close(device);
    }
}

/* Refused before any is taken here: zeroing 10 GB would take seconds, and this machine may have
 * less. */
static void too_large_a_buffer_is_refused(void **state)
{
    (void)state;
    CornuDevice *device = made(cornu_device_open("tpu", .threads = 1, .shards = 8));
    assert_null(cornu_buffer_create(device, cornu_type(CORNU_F32, 50000, 50000),
                                    .use = CORNU_USE_WEIGHTS, .name = "dense/kernel"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
    assert_string_equal(cornu_error_message(),
                        "tpu:v2-8: out of memory: dense/kernel takes 10.00 GB of a shard's 8.00 "
                        "GB, of which 0 B are in use; the largest: dense/kernel f32 (50000, "
                        "50000) 10.00 GB (weights)");
    expect_bytes(cornu_device_memory(device).total, 0, 0);
    cornu_device_close(device);
}

static void the_cap_is_exact(void **state)
{
    (void)state;
    CornuDevice *device = made(cornu_device_open("tpu", .threads = 1, .shards = 1));
    device->memory.capacity = 1000;
    CornuBuffer *a = made(cornu_buffer_create(device, cornu_type(CORNU_U8, 400)));
    assert_null(cornu_buffer_create(device, cornu_type(CORNU_U8, 601)));
    assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
    CornuBuffer *b = made(cornu_buffer_create(device, cornu_type(CORNU_U8, 600)));
    expect_bytes(cornu_device_memory(device).total, 1000, 1000);
    cornu_buffer_free(b);
    b = made(cornu_buffer_create(device, cornu_type(CORNU_U8, 600)));
    cornu_buffer_free(b);
    cornu_buffer_free(a);
    cornu_device_close(device);
}

static void a_program_names_its_largest_values(void **state)
{
    (void)state;
    CornuDevice  *device = made(cornu_device_open("tpu:v3-8", .threads = 1, .shards = 8));
    CornuProgram *program = three_products();
    device->memory.capacity = 2000;
    static const char *const names[] = { "a", "b", "c", "d" };
    CornuBuffer *buffers[4];
    for (int i = 0; i < 4; i++)
        buffers[i] = made(cornu_buffer_create(device, cornu_type(CORNU_U8, 300 + i),
                                              .name = names[i], .use = CORNU_USE_SLOTS));
    CornuBuffer *w = made(cornu_buffer_create(device, cornu_type(CORNU_U8, 90),
                                              .use = CORNU_USE_WEIGHTS));
    assert_null(cornu_device_compile(device, program));
    assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
    assert_string_equal(cornu_error_message(),
                        "tpu:v3-8: out of memory: a program takes 768 B of a shard's 2.00 kB, of "
                        "which 1.30 kB are in use: weights 90 B, slots 1.21 kB; the largest: "
                        "matmul in dense_1 f32 (4, 32) 512 B (activations), d u8 (303,) 303 B "
                        "(slots), c u8 (302,) 302 B (slots), b u8 (301,) 301 B (slots), a u8 "
                        "(300,) 300 B (slots)");
    expect_bytes(cornu_device_memory(device).uses[CORNU_USE_ACTIVATIONS], 0, 0);
    cornu_buffer_free(buffers[0]);
    made(cornu_device_compile(device, program));   /* now there is room */
    expect_bytes(cornu_device_memory(device).uses[CORNU_USE_ACTIVATIONS], BETWEEN, BETWEEN);
    assert_null(cornu_buffer_create(device, cornu_type(CORNU_U8, 600), .name = "e"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
    assert_non_null(strstr(cornu_error_message(), "the largest: e u8 (600,) 600 B (other), matmul "
                           "in dense_1 f32 (4, 32) 512 B (activations), d u8"));
    for (int i = 1; i < 4; i++) cornu_buffer_free(buffers[i]);
    cornu_buffer_free(w);
    cornu_program_free(program);
    cornu_device_close(device);
}

/* An unused executable is kept for an equal program until its memory is needed. */
static void unused_programs_give_way(void **state)
{
    (void)state;
    CornuDevice  *device = made(cornu_device_open("tpu", .threads = 1, .shards = 8));
    CornuProgram *program = three_products();
    device->memory.capacity = 1000;
    CornuExecutable *executable = made(cornu_device_compile(device, program));
    assert_ptr_equal(cornu_device_compile(device, program), executable);
    cornu_executable_release(executable);
    assert_null(cornu_buffer_create(device, cornu_type(CORNU_U8, 300)));   /* one user is left */
    assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
    cornu_executable_release(executable);
    assert_ptr_equal(cornu_device_compile(device, program), executable);
    cornu_executable_release(executable);
    expect_bytes(cornu_device_memory(device).total, BETWEEN, BETWEEN);
    CornuBuffer *buffer = made(cornu_buffer_create(device, cornu_type(CORNU_U8, 300)));
    expect_bytes(cornu_device_memory(device).uses[CORNU_USE_ACTIVATIONS], 0, BETWEEN);
    cornu_buffer_free(buffer);
    made(cornu_device_compile(device, program));
    cornu_program_free(program);
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        { "buffers count by use (cpu)", buffers_count_by_use_until_they_are_freed, NULL, NULL,
          "cpu" },
        { "buffers count by use (tpu)", buffers_count_by_use_until_they_are_freed, NULL, NULL,
          "tpu" },
        { "buffers count by use (reference)", buffers_count_by_use_until_they_are_freed, NULL,
          NULL, "reference" },
        cmocka_unit_test(a_shard_has_its_part),
        cmocka_unit_test(programs_count_their_plans),
        cmocka_unit_test(capacities_are_those_of_the_profiles),
        cmocka_unit_test(too_large_a_buffer_is_refused),
        cmocka_unit_test(the_cap_is_exact),
        cmocka_unit_test(a_program_names_its_largest_values),
        cmocka_unit_test(unused_programs_give_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
