/* Buffers of the pjrt device, whose values are on the host, on the device, or on both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../expect.h"
#include "../programs.h"
#include "opened.h"

static CornuBuffer *make(CornuDevice *device, CornuType type)
{
    CornuBuffer *buffer = cornu_buffer_create(device, type);
    if (!buffer) fail_msg("%s", cornu_error_message());
    return buffer;
}

/* x becomes x + x: its buffer is donated in each run. */
static CornuProgram *doubling(CornuType type)
{
    CornuProgram *p = cornu_program_create();
    CornuValue    x = input(p, type);
    output(p, op2(p, CORNU_OP_ADD, x, x), 0);
    return p;
}

static void expect_numbers(const double *got, const double *expected, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (got[i] != expected[i])
            fail_msg("element %lld is %.9g, expected %.9g", (long long)i, got[i], expected[i]);
}

/* ---- On the host ---- */

static void a_new_buffer_is_zeros(void **state)
{
    CornuDevice *device = pjrt_open(*(const int *)*state);
    for (int dtype = 0; dtype < CORNU_DTYPE_COUNT; dtype++) {
        CornuBuffer *buffer = make(device, cornu_type((CornuDtype)dtype, 2, 3));
        char         bytes[48], zeros[48] = { 0 };
        memset(bytes, 1, sizeof bytes);
        expect_ok(cornu_buffer_read(buffer, cornu_array_from(bytes, cornu_buffer_type(buffer))));
        assert_memory_equal(bytes, zeros, cornu_type_bytes(cornu_buffer_type(buffer)));
        cornu_buffer_free(buffer);
    }
    cornu_device_close(device);
}

static void parts_are_written_and_read(void **state)
{
    CornuDevice *device = pjrt_open(*(const int *)*state);
    CornuBuffer *buffer = make(device, cornu_type(CORNU_F32, 2, 4));
    float        part[2] = { 7, 8 }, read[3], all[8];
    expect_ok(cornu_buffer_write_part(buffer, 3, cornu_array(part, CORNU_F32, 2)));
    expect_ok(cornu_buffer_read_part(buffer, 2, cornu_array(read, CORNU_F32, 3)));
    assert_memory_equal(read, ((float[]){ 0, 7, 8 }), sizeof read);
    expect_ok(cornu_buffer_read(buffer, cornu_array(all, CORNU_F32, 2, 4)));
    assert_memory_equal(all, ((float[]){ 0, 0, 0, 7, 8, 0, 0, 0 }), sizeof all);
    cornu_buffer_free(buffer);
    cornu_device_close(device);
}

/* ---- On the device ---- */

/* Through the device and back, in every dtype; then scalars, and values without elements. */
static void every_type_goes_through_a_run(void **state)
{
    CornuDevice    *device = pjrt_open(*(const int *)*state);
    const CornuType types[] = {
        cornu_type(CORNU_F32, 2, 3), cornu_type(CORNU_F64, 2, 3), cornu_type(CORNU_BF16, 2, 3),
        cornu_type(CORNU_F16, 2, 3), cornu_type(CORNU_I64, 2, 3), cornu_type(CORNU_I32, 2, 3),
        cornu_type(CORNU_U32, 2, 3), cornu_type(CORNU_U8, 2, 3), cornu_type(CORNU_BOOL, 2, 3),
        cornu_scalar(CORNU_F32), cornu_scalar(CORNU_I64), cornu_scalar(CORNU_BOOL),
        cornu_type(CORNU_F32, 0), cornu_type(CORNU_I32, 3, 0, 2), cornu_type(CORNU_BF16, 0, 5),
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        CornuProgram    *p = cornu_program_create();
        CornuAttributes  back = { .axis = { 0 } };
        CornuValue       x = input(p, types[i]);
        const bool       has_axis = types[i].shape.rank > 0;
        output(p, has_axis ? op(p, CORNU_OP_FLIP, &back, &x, 1) : reshape(p, x, cornu_shape(1)),
               -1);
        Compiled compiled = compile(device, p);
        int64_t  count, again;
        set_inputs(&compiled, 5 + i);
        run(&compiled);
        double *in = get_input(&compiled, 0, &count), *out = get_output(&compiled, 0, &again);
        const int64_t row = has_axis && count ? count / types[i].shape.extent[0] : count;
        assert_int_equal(count, again);
        for (int64_t k = 0; k < count; k++)
            expect_numbers(&out[k], &in[has_axis ? count - row - k / row * row + k % row : k], 1);
        free(in), free(out);
        release(&compiled);
        cornu_program_free(p);
    }
    cornu_device_close(device);
}

/* The weights' way: written once, then only the device writes them. */
static void aliased_inputs_are_updated_in_place(void **state)
{
    enum { RUNS = 100 };
    CornuDevice  *device = pjrt_open(*(const int *)*state);
    CornuProgram *p = cornu_program_create();
    CornuValue    x = input(p, cornu_type(CORNU_F32, 3)), y = input(p, cornu_type(CORNU_F32, 3));
    CornuValue    step = input(p, cornu_type(CORNU_F32, 3));
    CornuValue    sum = op2(p, CORNU_OP_ADD, x, step);
    output(p, op2(p, CORNU_OP_ADD, y, sum), 1);
    output(p, sum, 0);
    output(p, sum, -1);
    Compiled compiled = compile(device, p);
    set_numbers(&compiled, 2, (double[]){ 1, 2, -1 });
    set_numbers(&compiled, 0, (double[]){ 0, 0, 4 });
    for (int i = 1; i <= RUNS; i++) {
        int64_t count;
        run(&compiled);
        if (i % 33 != 1) continue;   /* a value is read, or stays on the device */
        double *total = get_output(&compiled, 0, &count), *x_now = get_input(&compiled, 0, &count);
        double *copy = get_output(&compiled, 2, &count), *given = get_input(&compiled, 2, &count);
        const double n = i, triangle = n * (n + 1) / 2;
        expect_numbers(x_now, (double[]){ n, 2 * n, 4 - n }, 3);
        expect_numbers(copy, x_now, 3);
        expect_numbers(total, (double[]){ triangle, 2 * triangle, 4 * n - triangle }, 3);
        expect_numbers(given, (double[]){ 1, 2, -1 }, 3);
        free(total), free(x_now), free(copy), free(given);
    }
    release(&compiled);
    cornu_program_free(p);
    cornu_device_close(device);
}

/* What is on the device alone is read in parts, and keeps the other elements when a part of it is
 * written. */
static void parts_change_what_the_device_wrote(void **state)
{
    CornuDevice  *device = pjrt_open(*(const int *)*state);
    CornuProgram *p = doubling(cornu_type(CORNU_F32, 4));
    Compiled      compiled = compile(device, p);
    float         part[2];
    int64_t       count;
    set_numbers(&compiled, 0, (double[]){ 1, 2, 3, 4 });
    run(&compiled);
    expect_ok(cornu_buffer_read_part(compiled.inputs[0], 1, cornu_array(part, CORNU_F32, 2)));
    assert_memory_equal(part, ((float[]){ 4, 6 }), sizeof part);
    run(&compiled);
    part[0] = 100;
    expect_ok(cornu_buffer_write_part(compiled.inputs[0], 2, cornu_array(part, CORNU_F32, 1)));
    run(&compiled);
    double *got = get_input(&compiled, 0, &count);
    expect_numbers(got, (double[]){ 8, 16, 200, 32 }, 4);
    free(got);
    release(&compiled);
    cornu_program_free(p);
    cornu_device_close(device);
}

/* One program's result is another's input, and outlives what made it. */
static void results_outlive_their_program(void **state)
{
    CornuDevice  *device = pjrt_open(*(const int *)*state);
    CornuProgram *p = doubling(cornu_type(CORNU_F32, 2));
    Compiled      compiled = compile(device, p);
    CornuBuffer  *kept = compiled.inputs[0];
    float         two[2] = { 3, 4 };
    set_input(&compiled, 0, two);
    run(&compiled);
    compiled.inputs[0] = NULL;
    release(&compiled);
    CornuProgram *q = cornu_program_create();
    CornuValue    x = input(q, cornu_type(CORNU_F32, 2));
    output(q, op1(q, CORNU_OP_NEGATIVE, x), -1);
    Compiled      next = compile(device, q);
    cornu_buffer_free(next.inputs[0]);
    next.inputs[0] = kept;
    run(&next);
    cornu_buffer_free(kept);   /* right after a run that read it */
    next.inputs[0] = NULL;
    int64_t count;
    double *got = get_output(&next, 0, &count);
    expect_numbers(got, (double[]){ -6, -8 }, 2);
    free(got);
    release(&next);
    cornu_program_free(p);
    cornu_program_free(q);
    cornu_device_close(device);
}

/* The same buffer twice: a donated argument must not be an argument elsewhere. */
static void a_buffer_may_be_two_inputs(void **state)
{
    CornuDevice  *device = pjrt_open(*(const int *)*state);
    CornuProgram *p = cornu_program_create();
    CornuValue    x = input(p, cornu_type(CORNU_F32, 2)), y = input(p, cornu_type(CORNU_F32, 2));
    output(p, op2(p, CORNU_OP_SUBTRACT, op2(p, CORNU_OP_ADD, x, x), y), -1);
    Compiled      compiled = compile(device, p);
    CornuBuffer  *second = compiled.inputs[1];
    int64_t       count;
    set_numbers(&compiled, 0, (double[]){ 3, 4 });
    compiled.inputs[1] = compiled.inputs[0];
    run(&compiled);
    double *got = get_output(&compiled, 0, &count);
    expect_numbers(got, (double[]){ 3, 4 }, 2);
    free(got);
    compiled.inputs[1] = second;
    release(&compiled);
    cornu_program_free(p);
    cornu_device_close(device);
}

/* What one program has a part of on each shard, another may have whole on all, and vice versa. */
static void parts_of_shards_are_read_whole(void **state)
{
    const int     shards = *(const int *)*state;
    CornuDevice  *device = pjrt_open(shards);
    CornuProgram *p = cornu_program_create(), *q = cornu_program_create();
    CornuValue    x, y = input(q, cornu_type(CORNU_F32, shards, 2));
    expect_ok(cornu_program_shard_input(p, cornu_type(CORNU_F32, 2), &x));
    output(p, op1(p, CORNU_OP_NEGATIVE, x), 0);
    output(q, op2(q, CORNU_OP_ADD, y, y), 0);
    Compiled      parts = compile(device, p), whole = compile(device, q);
    double        numbers[16];
    int64_t       count;
    for (int i = 0; i < 16; i++) numbers[i] = i;
    set_numbers(&parts, 0, numbers);
    CornuBuffer *own = whole.inputs[0];
    whole.inputs[0] = parts.inputs[0];
    for (int i = 0; i < 3; i++) run(&parts), run(&whole);
    double *got = get_input(&parts, 0, &count);
    for (int i = 0; i < 2 * shards; i++) numbers[i] *= -8;
    expect_numbers(got, numbers, count);
    free(got);
    whole.inputs[0] = own;
    release(&parts), release(&whole);
    cornu_program_free(p);
    cornu_program_free(q);
    cornu_device_close(device);
}

int main(void)
{
    static int one = 1, two = 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(a_new_buffer_is_zeros, &two),
        cmocka_unit_test_prestate(parts_are_written_and_read, &one),
        cmocka_unit_test_prestate(every_type_goes_through_a_run, &one),
        cmocka_unit_test_prestate(every_type_goes_through_a_run, &two),
        cmocka_unit_test_prestate(aliased_inputs_are_updated_in_place, &one),
        cmocka_unit_test_prestate(aliased_inputs_are_updated_in_place, &two),
        cmocka_unit_test_prestate(parts_change_what_the_device_wrote, &one),
        cmocka_unit_test_prestate(parts_change_what_the_device_wrote, &two),
        cmocka_unit_test_prestate(results_outlive_their_program, &one),
        cmocka_unit_test_prestate(a_buffer_may_be_two_inputs, &one),
        cmocka_unit_test_prestate(parts_of_shards_are_read_whole, &two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
