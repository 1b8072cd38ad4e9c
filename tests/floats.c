/*
 * cmocka compares floats with `difference > bound`, which is false where one of them is NaN or
 * infinite: assert_float_equal(NAN, 1, 0) passes. All test programs are linked with this function
 * in the place of its own. Floats are equal within the bound or one unit in the last place.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* NOLINTNEXTLINE(bugprone-reserved-identifier): cmocka's name */
void _assert_float_equal(const float a, const float b, const float bound, const char *const file,
                         const int line)
{
    const float most = fmaxf(bound, fmaxf(fabsf(a), fabsf(b)) * FLT_EPSILON);
    if (a == b || (isfinite(a) && isfinite(b) && fabsf(a - b) <= most)) return;
    print_error("%.9g, expected %.9g within %.3g\n", (double)a, (double)b, (double)bound);
    _fail(file, line);
}
