/* The modelled cost of an Edge TPU, by numbers worked out by hand from the published figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../../device/edgetpu/edgetpu.h"

enum { MIB = 1 << 20 };

static void cost(void **state)
{
    (void)state;
    CornuEdgeTpuOperator operators[] = {
        { .name = "CONV_2D", .multiply_adds = 2000000, .parameter_bytes = 7 * MIB, .mapped = true },
        { .name = "CONV_2D", .multiply_adds = 6000000, .parameter_bytes = 2 * MIB, .mapped = true },
        { .name = "CONV_2D", .multiply_adds = 0, .parameter_bytes = MIB, .mapped = true },
    };
    const CornuEdgeTpuCost got = cornu_edgetpu_cost(operators, 3, 1000);
    assert_int_equal(got.mapped, 3);
    assert_int_equal(got.host, 0);
    assert_int_equal(got.multiply_adds, 8000000);
    assert_int_equal(got.cached_bytes, 8 * MIB);       /* the second does not fit, the third does */
    assert_int_equal(got.streamed_bytes, 2 * MIB);
    assert_float_equal(got.compute_s, 4e-6, 1e-12);    /* 16 million operations at 4 TOPS */
    assert_float_equal(got.transfer_s, (2 * MIB + 1000) / 500e6, 1e-12);
    assert_float_equal(got.joules, 2 * got.total_s, 1e-12);
}

/* What follows an operator on the host stays there. */
static void host(void **state)
{
    (void)state;
    CornuEdgeTpuOperator operators[] = {
        { .name = "CONV_2D", .multiply_adds = 1000, .mapped = true },
        { .name = "LEAKY_RELU", .mapped = false, .why = "unknown" },
        { .name = "CONV_2D", .multiply_adds = 500, .mapped = true },
    };
    const CornuEdgeTpuCost got = cornu_edgetpu_cost(operators, 3, 0);
    assert_int_equal(got.mapped, 1);
    assert_int_equal(got.host, 2);
    assert_int_equal(got.multiply_adds, 1000);
    assert_false(operators[2].mapped);
    assert_string_equal(operators[2].why, "follows an operator on the host");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(cost), cmocka_unit_test(host) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
