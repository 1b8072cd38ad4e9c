/* How devices say that they compute an op, and why not better. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../../device/placement/placement.h"
#include "../../expect.h"
#include "../programs.h"

static CornuType matrix(CornuDtype dtype)
{
    return cornu_type_from(dtype, (CornuShape){ 2, { 4, 4 } });
}

/* The only op of a program, of operands of one type; matmul of two, others of one. */
static CornuPlacement placed(const char *device_name, CornuOpId id, CornuDtype dtype)
{
    CornuPlacement  p;
    CornuAttributes attributes = { .matmul = { .dtype = id == CORNU_OP_MATMUL ? dtype : 0 } };
    CornuProgram   *program = cornu_program_create();
    CornuDevice    *device = cornu_device_open(device_name);
    if (!device) fail_msg("%s", cornu_error_message());
    const CornuValue in[] = { input(program, matrix(dtype)), input(program, matrix(dtype)) };
    op(program, id, &attributes, in, cornu_op_input_count(id));
    expect_ok(cornu_device_place(device, program, 0, &p));
    cornu_device_close(device);
    cornu_program_free(program);
    return p;
}

static void expect_placed(CornuPlacement p, CornuPlacementKind kind, const char *how,
                          const char *why)
{
    assert_string_equal(cornu_placement_name(p.kind), cornu_placement_name(kind));
    assert_string_equal(p.how, how);
    assert_string_equal(p.why, why);
}

static void kernels_and_loops_are_native(void **state)
{
    (void)state;
    expect_placed(placed("cpu", CORNU_OP_MATMUL, CORNU_F32), CORNU_PLACED_NATIVE, "kernel matmul",
                  "");
    expect_placed(placed("tpu", CORNU_OP_MATMUL, CORNU_BF16), CORNU_PLACED_NATIVE,
                  "kernel matmul", "");
    expect_placed(placed("cpu", CORNU_OP_TANH, CORNU_BF16), CORNU_PLACED_NATIVE, "loop tanh", "");
    expect_placed(placed("cpu", CORNU_OP_SOFTMAX, CORNU_F16), CORNU_PLACED_NATIVE,
                  "kernel softmax, between conversions to f32",
                  "no kernel takes f16 (4, 4)");
}

static void others_say_why(void **state)
{
    (void)state;
    expect_placed(placed("cpu", CORNU_OP_MATMUL, CORNU_F64), CORNU_PLACED_REFERENCE,
                  "reference kernel matmul", "no kernel takes f64 (4, 4), f64 (4, 4), "
                  "and it is not composed of others");
    expect_placed(placed("reference", CORNU_OP_TANH, CORNU_F32), CORNU_PLACED_REFERENCE,
                  "reference kernel tanh", "as every op on this device");
    const CornuPlacement p = placed("cpu", CORNU_OP_SOFTMAX, CORNU_F64);
    assert_int_equal(p.kind, CORNU_PLACED_DECOMPOSED);
    assert_string_equal(p.why, "no kernel takes f64 (4, 4)");
    assert_string_equal(p.how, "reduce_max, 2 broadcast, subtract, exp, reduce_sum, divide");
}

static void names_and_numbers_are_checked(void **state)
{
    (void)state;
    CornuPlacement p;
    CornuProgram  *program = cornu_program_create();
    CornuDevice   *device = cornu_device_open("cpu");
    assert_string_equal(cornu_placement_name(CORNU_PLACED_COUNT), "unknown");
    assert_int_equal(cornu_device_place(device, program, 0, &p), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "op 0 of a program with 0 ops"));
    cornu_device_close(device);
    cornu_program_free(program);
}

/* Every op of a plan says which recorded op it comes from. */
static void compiled_ops_know_their_origin(void **state)
{
    (void)state;
    int           count;
    CornuProgram *program = cornu_program_create();
    CornuDevice  *device = cornu_device_open("cpu");
    CornuValue    x = input(program, matrix(CORNU_F32));
    op1(program, CORNU_OP_EXP, x);   /* not used */
    output(program, op1(program, CORNU_OP_TANH, op1(program, CORNU_OP_SOFTMAX, x)), -1);
    CornuExecutable *executable = cornu_device_compile(device, program);
    if (!executable) fail_msg("%s", cornu_error_message());
    const CornuProgram *compiled = cornu_executable_program(executable);
    assert_int_equal(cornu_executable_recorded(executable)->op_count, 3);
    assert_int_equal(compiled->op_count, 2);
    assert_int_equal(compiled->ops[0].origin, 1);
    assert_int_equal(compiled->ops[1].origin, 2);
    cornu_executable_steps(executable, &count);
    assert_int_equal(count, 2);
    cornu_executable_release(executable);
    cornu_device_close(device);
    cornu_program_free(program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_and_loops_are_native),
        cmocka_unit_test(others_say_why),
        cmocka_unit_test(names_and_numbers_are_checked),
        cmocka_unit_test(compiled_ops_know_their_origin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
