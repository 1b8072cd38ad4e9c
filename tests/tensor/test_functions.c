/* Functions written with ops against those of C's <math.h>: values, also where formulas cancel or
 * overflow, and slopes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../device/program_internal.h"
#include "../../tensor/function_internal.h"
#include "../../tensor/functions/functions_internal.h"
#include "../expect.h"

enum { MOST = 128 };

static const double pi = 3.14159265358979323846;

static double gelu(double x) { return 0.5 * x * erfc(-x * sqrt(0.5)); }

static double gelu_by_tanh(double x)
{
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / pi) * (x + 0.044715 * x * x * x)));
}

static double slope_of_gelu(double x)
{
    return 0.5 * erfc(-x * sqrt(0.5)) + x * exp(-0.5 * x * x) / sqrt(2.0 * pi);
}

static double slope_of_log1p(double x) { return 1.0 / (1.0 + x); }
static double slope_of_tan(double x) { return 1.0 / (cos(x) * cos(x)); }
static double slope_of_asin(double x) { return 1.0 / sqrt(1.0 - x * x); }
static double slope_of_acos(double x) { return -slope_of_asin(x); }
static double slope_of_atan(double x) { return 1.0 / (1.0 + x * x); }
static double slope_of_asinh(double x) { return 1.0 / hypot(1.0, x); }
static double slope_of_acosh(double x) { return 1.0 / (sqrt(x - 1.0) * sqrt(x + 1.0)); }
static double slope_of_atanh(double x) { return 1.0 / ((1.0 - x) * (1.0 + x)); }
static double slope_of_erfc(double x) { return -2.0 / sqrt(pi) * exp(-x * x); }

/* Where values are compared, on top of what all functions are given, and where slopes are: from low
 * to high. Both within `bound` of their size, for f32; gelu near its zero at minus infinity within
 * `near`. */
static const struct {
    const char *name;
    CornuTensor *(*of)(CornuTensor *);
    double (*value)(double), (*slope)(double);
    double low, high, bound, near;
} functions[] = {
    { "log1p", cornu__log1p, log1p, slope_of_log1p, -0.9, 1e6, 1e-6, 0 },
    { "expm1", cornu__expm1, expm1, exp, -20, 60, 1e-6, 0 },
    { "sinh", cornu__sinh, sinh, cosh, -60, 60, 3e-6, 0 },
    { "cosh", cornu__cosh, cosh, sinh, -60, 60, 3e-6, 0 },
    { "asinh", cornu__asinh, asinh, slope_of_asinh, -1e10, 1e10, 1e-6, 0 },
    { "acosh", cornu__acosh, acosh, slope_of_acosh, 1.001, 1e10, 1e-6, 0 },
    { "atanh", cornu__atanh, atanh, slope_of_atanh, -0.99, 0.99, 2e-6, 0 },
    { "tan", cornu__tan, tan, slope_of_tan, -1.5, 1.5, 4e-6, 0 },
    { "asin", cornu__asin, asin, slope_of_asin, -0.99, 0.99, 2e-6, 0 },
    { "acos", cornu__acos, acos, slope_of_acos, -0.99, 0.99, 2e-6, 0 },
    { "atan", cornu__atan, atan, slope_of_atan, -1e6, 1e6, 1e-6, 0 },
    { "erfc", cornu__erfc, erfc, slope_of_erfc, -3, 3, 1e-5, 0 },
    { "gelu", cornu__gelu, gelu, slope_of_gelu, -4, 4, 2e-6, 1e-6 },
    { "gelu by tanh", cornu__gelu_approximate, gelu_by_tanh, NULL, 0, 0, 2e-6, 1e-6 },
    { "ceil", cornu__ceil, ceil, NULL, 0, 0, 0, 0 },
    { "trunc", cornu__trunc, trunc, NULL, 0, 0, 0, 0 },
    { "round", cornu__round, nearbyint, NULL, 0, 0, 0, 0 },
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* Numbers of all sizes and both signs, and those around the bounds of branches. */
static int numbers(float *x)
{
    static const float of[] = { 0.0F, 1e-30F, 1e-10F, 1e-7F, 1e-4F, 1e-3F, 0.05F, 0.1F, 0.25F,
        0.4142135F, 0.41421357F, 0.49999997F, 0.5F, 0.50000006F, 0.9F, 0.99999994F, 1.0F,
        1.0000001F, 1.5F, 1.9999999F, 2.0F, 2.4142135F, 2.4142137F, 2.5F, 3.5F, 8.0F, 10.0F, 20.0F,
        50.0F, 88.0F, 89.0F, 100.0F, 1000.0F, 8388607.5F, 8388609.0F, 16777215.0F, 1e10F, 2e19F,
        1e30F, 3.4028235e38F, INFINITY };
    int count = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        x[count++] = of[i];
        x[count++] = -of[i];
    }
    x[count++] = NAN;
    return count;
}

static bool agree(double seen, double want, double bound, double near)
{
    if (isnan(want)) return isnan(seen);
    if (fabs(want) > 3.4028235e38) return seen == (want > 0 ? INFINITY : -INFINITY);
    if (isinf(want)) return seen == want;
    return fabs(seen - want) <= bound * fabs(want) + near + 1.2e-38;
}

static void values_are_those_of_libm(void **state)
{
    float        x[MOST], y[FUNCTIONS][MOST];
    const int    count = numbers(x);
    const char  *device_name = *state;
    CornuDevice *device = cornu_device_open(device_name);
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *in = cornu_graph_input(graph, cornu_type(CORNU_F32, count)), *out[FUNCTIONS];
    CornuArray   to[FUNCTIONS];
    for (int f = 0; f < FUNCTIONS; f++) {
        out[f] = functions[f].of(in);
        to[f] = cornu_array(y[f], CORNU_F32, count);
    }
    assert_int_equal(cornu_graph_feed(in, cornu_array(x, CORNU_F32, count)), CORNU_OK);
    assert_int_equal(cornu_run(graph, out, FUNCTIONS, to), CORNU_OK);
    for (int f = 0; f < FUNCTIONS; f++)
        for (int i = 0; i < count; i++) {
            /* sin and cos of large numbers are not of this test, nor is -inf times 0 of gelu. */
            if (functions[f].of == cornu__tan && fabsf(x[i]) > 10.0F) continue;
            if (functions[f].near > 0 && isinf(x[i])) continue;
            const double want = functions[f].value(x[i]);
            if (!agree(y[f][i], want, functions[f].bound, functions[f].near))
                fail_msg("%s on %s: %s(%.9g) is %.9g, expected %.9g", functions[f].name,
                         device_name, functions[f].name, (double)x[i], (double)y[f][i], want);
        }
    cornu_graph_free(graph);
    cornu_device_close(device);
}

/* In f64, where the slope is to be that of the function, not of its polynomial's error. */
static void slopes_are_those_of_the_functions(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("reference");
    for (int f = 0; f < FUNCTIONS; f++) {
        if (!functions[f].slope) continue;
        double       x[MOST], d[MOST];
        CornuGraph  *graph = cornu_graph_create(device);
        const double low = functions[f].low, high = functions[f].high;
        int          count = 0;
        for (int i = 0; i <= 40; i++) x[count++] = low + (high - low) * i / 40;
        for (int i = 0; i < 20; i++) {
            x[count] = (i % 2 ? -1 : 1) * ldexp(1.0, i - 12);
            if (x[count] > low && x[count] < high) count++;
        }
        CornuTensor *in = cornu_graph_input(graph, cornu_type(CORNU_F64, count)), *slope;
        assert_int_equal(cornu_gradients(cornu_op_sum(functions[f].of(in)), &in, 1, &slope),
                         CORNU_OK);
        CornuArray to = cornu_array(d, CORNU_F64, count);
        assert_int_equal(cornu_graph_feed(in, cornu_array(x, CORNU_F64, count)), CORNU_OK);
        assert_int_equal(cornu_run(graph, &slope, 1, &to), CORNU_OK);
        for (int i = 0; i < count; i++)
            if (!agree(d[i], functions[f].slope(x[i]), 1e-5, 1e-7))
                fail_msg("the slope of %s at %.9g is %.9g, expected %.9g", functions[f].name, x[i],
                         d[i], functions[f].slope(x[i]));
        cornu_graph_free(graph);
    }
    cornu_device_close(device);
}

static double modulo(double a, double b)
{
    const double rest = fmod(a, b);
    if (rest == 0.0 || isnan(rest) || (rest < 0.0) == (b < 0.0)) return rest;
    return isinf(b) ? b : rest + b;
}

static double log_add_exp(double a, double b)
{
    const double most = fmax(a, b), least = fmin(a, b);
    return isnan(a) || isnan(b) ? NAN : most == least ? most + log(2.0)
                                                      : most + log1p(exp(least - most));
}

static double length(double a, double b) { return isnan(a) || isnan(b) ? NAN : hypot(a, b); }

static void functions_of_two_are_those_of_libm(void **state)
{
    static const float of[] = { 0.0F, -0.0F, 1.0F, -1.0F, 2.5F, -2.5F, 7.0F, -7.0F, 0.3F, 1e20F,
                                -1e20F, 3e38F, INFINITY, -INFINITY, NAN };
    enum { N = sizeof of / sizeof *of };
    static const struct {
        const char *name;
        CornuTensor *(*of)(CornuTensor *, CornuTensor *);
        double (*value)(double, double);
    } pairs[] = { { "hypot", cornu__hypot, length },
                  { "log_add_exp", cornu__log_add_exp, log_add_exp },
                  { "fmod", cornu__fmod, fmod },
                  { "floor_mod", cornu__floor_mod, modulo } };
    float        y[4][N * N];
    CornuDevice *device = cornu_device_open(*state);
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *a = cornu_graph_input(graph, cornu_type(CORNU_F32, N, 1)), *out[4];
    CornuTensor *b = cornu_graph_input(graph, cornu_type(CORNU_F32, 1, N));
    CornuArray   to[4];
    for (int f = 0; f < 4; f++) {
        out[f] = pairs[f].of(a, b);
        to[f] = cornu_array(y[f], CORNU_F32, N, N);
    }
    assert_int_equal(cornu_graph_feed(a, cornu_array((void *)of, CORNU_F32, N, 1)), CORNU_OK);
    assert_int_equal(cornu_graph_feed(b, cornu_array((void *)of, CORNU_F32, 1, N)), CORNU_OK);
    assert_int_equal(cornu_run(graph, out, 4, to), CORNU_OK);
    for (int f = 0; f < 4; f++)
        for (int i = 0; i < N * N; i++) {
            const double p = of[i / N], q = of[i % N];
            /* A quotient above 2^24 has lost the remainder. */
            if (f >= 2 && isfinite(p) && isfinite(q) && fabs(p) > 1e7 * fabs(q)) continue;
            if (!agree(y[f][i], pairs[f].value(p, q), 2e-6, 0))
                fail_msg("%s(%g, %g) is %.9g, expected %.9g", pairs[f].name, p, q, (double)y[f][i],
                         pairs[f].value(p, q));
        }
    cornu_graph_free(graph);
    cornu_device_close(device);
}

/* Minus x would make the smallest of unsigned numbers the largest but one. */
static void the_smallest_of_any_dtype(void **state)
{
    const uint8_t  bytes[2][3] = { { 5, 0, 1 }, { 3, 200, 250 } };
    const int32_t  words[2][3] = { { 5, INT32_MIN, 1 }, { 3, -7, 250 } };
    const int32_t  of_bytes[] = { 1, 0 }, of_words[] = { 1, 1 };
    CornuDevice   *device = cornu_device_open(*state);
    CornuGraph    *graph = cornu_graph_create(device);
    CornuTensor   *u = cornu_graph_input(graph, cornu_type(CORNU_U8, 2, 3));
    CornuTensor   *i = cornu_graph_input(graph, cornu_type(CORNU_I32, 2, 3));
    CornuTensor   *out[] = { cornu__reduce_min(u, 2, false), cornu__reduce_min(i, 2, false),
                             cornu__argmin(u, 1), cornu__argmin(i, 1) };
    uint8_t        least_byte[2];
    int32_t        least_word[2], at[2][2];
    CornuArray     to[] = { cornu_array(least_byte, CORNU_U8, 2),
                              cornu_array(least_word, CORNU_I32, 2),
                              cornu_array(at[0], CORNU_I32, 2), cornu_array(at[1], CORNU_I32, 2) };
    cornu_graph_feed(u, cornu_array((void *)bytes, CORNU_U8, 2, 3));
    cornu_graph_feed(i, cornu_array((void *)words, CORNU_I32, 2, 3));
    assert_int_equal(cornu_run(graph, out, 4, to), CORNU_OK);
    assert_int_equal(least_byte[0], 0);
    assert_int_equal(least_byte[1], 3);
    assert_int_equal(least_word[0], INT32_MIN);
    assert_int_equal(least_word[1], -7);
    assert_memory_equal(at[0], of_bytes, sizeof of_bytes);
    assert_memory_equal(at[1], of_words, sizeof of_words);
    cornu_graph_free(graph);
    cornu_device_close(device);
}

static void nan_is_the_last(void **state)
{
    static const float of[] = { 2.0F, NAN, -INFINITY, NAN, INFINITY };
    static const bool  below[5][5] = { { 0, 1, 0, 1, 1 }, { 0 }, { 1, 1, 0, 1, 1 }, { 0 },
                                       { 0, 1, 0, 1, 0 } };
    bool         seen[2][5][5];
    CornuDevice *device = cornu_device_open(*state);
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *a = cornu_graph_input(graph, cornu_type(CORNU_F32, 5, 1));
    CornuTensor *b = cornu_graph_input(graph, cornu_type(CORNU_F32, 1, 5));
    CornuTensor *out[] = { cornu__sorts_below(a, b), cornu__sorts_equal(a, b) };
    CornuArray   to[] = { cornu_array(seen[0], CORNU_BOOL, 5, 5),
                          cornu_array(seen[1], CORNU_BOOL, 5, 5) };
    cornu_graph_feed(a, cornu_array((void *)of, CORNU_F32, 5, 1));
    cornu_graph_feed(b, cornu_array((void *)of, CORNU_F32, 1, 5));
    assert_int_equal(cornu_run(graph, out, 2, to), CORNU_OK);
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++) {
            assert_int_equal(seen[0][i][k], below[i][k]);
            assert_int_equal(seen[1][i][k], i == k || (isnan(of[i]) && isnan(of[k])));
        }
    cornu_graph_free(graph);
    cornu_device_close(device);
}

/* ---- Names in programs ---- */

static CornuTensor *scores(CornuTensor *x, CornuTensor *scale)
{
    return cornu__leaky_relu(cornu__layer_norm(x, scale, NULL, 2, 0.25), 0.5);
}

/* A graph records the ops of functions; one that keeps functions records their names, operands and
 * numbers in place of them, and computes the same. */
static void names_are_kept_where_asked(void **state)
{
    static const float x[] = { 1, 2, 4, -3, 0, 5 }, scale[] = { 1, -2, 0.5F };
    float              y[2][6];
    (void)state;
    CornuDevice *device = cornu_device_open("reference");
    for (int kept = 0; kept < 2; kept++) {
        CornuGraph *graph = cornu_graph_create(device);
        if (kept) cornu__graph_keep_functions(graph);
        CornuTensor *in[] = { cornu_graph_input(graph, cornu_type(CORNU_F32, 2, 3)),
                              cornu_graph_input(graph, cornu_type(CORNU_F32, 3)) };
        CornuTensor *out = scores(in[0], in[1]);
        CornuArray   to = cornu_array(y[kept], CORNU_F32, 2, 3);
        assert_non_null(out);
        cornu_graph_feed(in[0], cornu_array((void *)x, CORNU_F32, 2, 3));
        cornu_graph_feed(in[1], cornu_array((void *)scale, CORNU_F32, 3));
        assert_int_equal(cornu_run(graph, &out, 1, &to), CORNU_OK);
        const CornuProgram *program = cornu_graph_program(graph);
        int                 named = 0;
        for (int i = 0; i < program->op_count; i++) {
            const CornuProgramOp         *op = &program->ops[i];
            const CornuAttributes_CUSTOM *custom = &op->attributes.custom;
            if (op->id != CORNU_OP_CUSTOM) continue;
            assert_true(custom->definition->by_body);
            assert_string_equal(custom->definition->name, named ? "leaky_relu" : "layer_norm");
            assert_int_equal(op->in_count, named ? 1 : 2);
            assert_int_equal(custom->number_count, named ? 1 : 4);
            assert_true(custom->numbers[0] == (named ? 0.5 : 0.25));
            named++;
        }
        assert_int_equal(named, kept ? 2 : 0);
        if (kept) assert_int_equal(program->op_count, 2);
        cornu_graph_free(graph);
    }
    /* Row 0: mean 7/3, variance 14/9; (1 - 7/3) / sqrt(14/9 + 1/4) = -0.99227788, then halved. */
    assert_true(fabs((double)y[0][0] + 0.49613894) < 1e-6);
    for (int i = 0; i < 6; i++) assert_true(y[0][i] == y[1][i]);
    cornu_device_close(device);
}

static void sum_and_ratio(CornuTensor *const *x, int count, const double *numbers,
                          CornuTensor **out)
{
    (void)count;
    out[0] = cornu_op_add(x[0], x[1]);
    out[1] = cornu_op_scale(cornu_op_divide(x[0], x[1]), numbers[0]);
}

/* Likewise of a function with two results. */
static void functions_have_several_results(void **state)
{
    static const CornuFunction function = CORNU__FUNCTION_OF("both", 2, .formulas = sum_and_ratio);
    static const float         x[2][2] = { { 1, 6 }, { 2, -4 } };
    (void)state;
    CornuDevice *device = cornu_device_open("reference");
    for (int kept = 0; kept < 2; kept++) {
        CornuGraph  *graph = cornu_graph_create(device);
        CornuTensor *in[2], *out[2];
        float        y[2][2];
        CornuArray   to[2] = { cornu_array(y[0], CORNU_F32, 2), cornu_array(y[1], CORNU_F32, 2) };
        if (kept) cornu__graph_keep_functions(graph);
        for (int i = 0; i < 2; i++) in[i] = cornu_graph_input(graph, cornu_type(CORNU_F32, 2));
        assert_true(cornu__function_many(&function, in, 2, (const double[]){ 10.0 }, 1, out));
        for (int i = 0; i < 2; i++)
            cornu_graph_feed(in[i], cornu_array((void *)x[i], CORNU_F32, 2));
        assert_int_equal(cornu_run(graph, out, 2, to), CORNU_OK);
        assert_true(y[0][0] == 3 && y[0][1] == 2 && y[1][0] == 5 && y[1][1] == -15);
        if (kept) assert_int_equal(cornu_graph_program(graph)->op_count, 1);
        assert_false(cornu__function_many(&function, (CornuTensor *[]){ in[0], NULL }, 2,
                                          (const double[]){ 10.0 }, 1, out));
        assert_non_null(strstr(cornu_error_message(), "both: operand 1 is NULL"));
        assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
        cornu_graph_free(graph);
    }
    cornu_device_close(device);
}

int main(void)
{
#define ON(test, device) { #test " on " device, test, NULL, NULL, device }
    const struct CMUnitTest tests[] = {
        ON(values_are_those_of_libm, "cpu"),
        ON(values_are_those_of_libm, "reference"),
        ON(functions_of_two_are_those_of_libm, "cpu"),
        ON(functions_of_two_are_those_of_libm, "reference"),
        ON(the_smallest_of_any_dtype, "cpu"),
        ON(the_smallest_of_any_dtype, "reference"),
        ON(nan_is_the_last, "cpu"),
        ON(nan_is_the_last, "reference"),
        cmocka_unit_test(slopes_are_those_of_the_functions),
        cmocka_unit_test(names_are_kept_where_asked),
        cmocka_unit_test(functions_have_several_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
