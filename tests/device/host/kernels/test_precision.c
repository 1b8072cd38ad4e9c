/*
 * The passes in which a device that multiplies bf16 multiplies f32: their errors, and the results
 * for Inf and NaN; for each instruction set this processor has, matmul of both layouts of a,
 * conv2d and its filter gradient.
 *
 * tests/run: all instruction sets
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../device/device.h"
#include "../../../../device/host/machine/cpu.h"
#include "../../isas.h"

enum { M = 37, K = 1024, N = 41 };

static float operand(void) { return (float)(2.0 * rand() / RAND_MAX - 1.0); }

typedef enum { PLAIN, TRANSPOSED, CONVOLUTION, FILTER_GRADIENT } Kind;

/* c (M, N) = a (M, K) b (K, N), as the device multiplies. */
static void multiply(CornuPrecision precision, Kind kind, const float *a, const float *b, float *c)
{
    CornuDevice  *tpu = cornu_device_open("tpu", .shards = 1, .precision = precision);
    CornuProgram *program = cornu_program_create();
    CornuType     types[3] = { cornu_type(CORNU_F32, M, K), cornu_type(CORNU_F32, K, N),
                               cornu_type(CORNU_F32, M, N) };
    float        *turned = malloc((size_t)M * K * sizeof *turned);
    assert_non_null(tpu);
    memcpy(turned, a, (size_t)M * K * sizeof *turned);
    CornuAttributes attributes = { .matmul = { .dtype = CORNU_F32 } };
    CornuOpId       id = CORNU_OP_MATMUL;
    if (kind == TRANSPOSED || kind == FILTER_GRADIENT)
        for (int m = 0; m < M; m++)
            for (int k = 0; k < K; k++) turned[k * M + m] = a[m * K + k];
    if (kind == TRANSPOSED) {
        attributes.matmul.transpose_a = 1;
        types[0] = cornu_type(CORNU_F32, K, M);
    }
    if (kind == FILTER_GRADIENT) {
        id = CORNU_OP_CONV2D_GRAD_FILTER;
        attributes = (CornuAttributes){ .conv2d_grad = { .extents = { 1, 1 },
                                                         .dtype = CORNU_F32 } };
        types[0] = cornu_type(CORNU_F32, K / 4, 2, 2, M);
        types[1] = cornu_type(CORNU_F32, K / 4, 2, 2, N);
        types[2] = cornu_type(CORNU_F32, 1, 1, M, N);
    }
    if (kind == CONVOLUTION) {
        id = CORNU_OP_CONV2D;
        attributes = (CornuAttributes){ .conv2d = { .dtype = CORNU_F32 } };
        types[0] = cornu_type(CORNU_F32, M, 4, 4, K / 16);
        types[1] = cornu_type(CORNU_F32, 4, 4, K / 16, N);
        types[2] = cornu_type(CORNU_F32, M, 1, 1, N);
    }
    CornuValue in[2], out;
    for (int i = 0; i < 2; i++)
        assert_int_equal(cornu_program_input(program, types[i], &in[i]), CORNU_OK);
    assert_int_equal(cornu_program_record(program, id, &attributes, in, 2, &out), CORNU_OK);
    assert_int_equal(cornu_program_output(program, out, -1), CORNU_OK);
    CornuExecutable *executable = cornu_device_compile(tpu, program);
    assert_non_null(executable);
    assert_int_equal(cornu_executable_statistics(executable)->fallbacks, 0);
    CornuBuffer *buffers[3];
    for (int i = 0; i < 3; i++) buffers[i] = cornu_buffer_create(tpu, types[i]);
    cornu_buffer_write(buffers[0], cornu_array_from(turned, types[0]));
    cornu_buffer_write(buffers[1], cornu_array_from((float *)(uintptr_t)b, types[1]));
    assert_int_equal(cornu_executable_run(executable, buffers, buffers + 2), CORNU_OK);
    cornu_buffer_read(buffers[2], cornu_array_from(c, types[2]));
    for (int i = 0; i < 3; i++) cornu_buffer_free(buffers[i]);
    cornu_executable_release(executable);
    cornu_program_free(program);
    cornu_device_close(tpu);
    free(turned);
}

static float a[M * K], b[K * N], c[M * N];

static void fill(void)
{
    srand(1);
    for (int i = 0; i < M * K; i++) a[i] = operand();
    for (int i = 0; i < K * N; i++) b[i] = operand();
}

/* Errors relative to the sum of absolute products, K = 1024, operands uniform in [-1, 1]. The error
 * of six passes is below the rounding of f32 sums, which then is the bound. */
static void test_errors(void **state)
{
    (void)state;
    static const struct { double mean, max; } bounds[] = {
        [CORNU_PRECISION_HIGHEST] = { 1.9e-8, 1.3e-7 },
        [CORNU_PRECISION_HIGH] = { 1.6e-7, 6.5e-7 },
        [CORNU_PRECISION_DEFAULT] = { 9e-5, 4e-4 },
    };
    fill();
    for (int kind = PLAIN; kind <= FILTER_GRADIENT; kind++) {
        double before = 0.0;
        for (int p = CORNU_PRECISION_HIGHEST; p <= CORNU_PRECISION_DEFAULT; p++) {
            double mean = 0.0, max = 0.0;
            multiply((CornuPrecision)p, (Kind)kind, a, b, c);
            for (int m = 0; m < M; m++)
                for (int n = 0; n < N; n++) {
                    double sum = 0.0, size = 0.0;
                    for (int k = 0; k < K; k++) {
                        const double term = (double)a[m * K + k] * (double)b[k * N + n];
                        sum += term;
                        size += fabs(term);
                    }
                    const double error = fabs((double)c[m * N + n] - sum) / size;
                    mean += error / (M * N);
                    max = fmax(max, error);
                }
            if (!(mean <= bounds[p].mean && max <= bounds[p].max))
                fail_msg("%s: mean %.2g, at most %.2g; max %.2g, at most %.2g",
                         cornu_precision_name((CornuPrecision)p), mean, bounds[p].mean, max,
                         bounds[p].max);
            assert_true(mean > 4.0 * before);   /* fewer passes are not as exact */
            before = mean;
        }
    }
}

/* As one multiplication by f32 would: Inf times a finite number is Inf of its sign, whatever parts
 * that number has; Inf times zero and NaN times anything are NaN; other rows are not affected. */
static void test_what_is_not_finite(void **state)
{
    (void)state;
    for (int kind = PLAIN; kind <= FILTER_GRADIENT; kind++)
        for (int p = CORNU_PRECISION_HIGHEST; p <= CORNU_PRECISION_DEFAULT; p++) {
            fill();
            for (int n = 0; n < N; n++) {
                b[3 * N + n] = n % 2 ? -1.0f : 1.00390625f - (float)n / 3000.0f;
                b[4 * N + n] = 0.0f;
            }
            a[0 * K + 3] = INFINITY;
            a[1 * K + 4] = INFINITY;
            a[2 * K + 5] = NAN;
            b[7 * N + 9] = -INFINITY;
            for (int m = 0; m < M; m++) a[m * K + 7] = 0.5f + (float)m / 1000.0f;
            multiply((CornuPrecision)p, (Kind)kind, a, b, c);
            for (int n = 0; n < N; n++) {
                if (n != 9) assert_true(c[n] == (n % 2 ? -INFINITY : INFINITY));
                assert_true(isnan(c[N + n]));
                assert_true(isnan(c[2 * N + n]));
                for (int m = 3; m < M; m++)
                    assert_true(n == 9 ? c[m * N + n] == -INFINITY : isfinite(c[m * N + n]));
            }
            assert_true(c[9] == -INFINITY);
        }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_what_is_not_finite),
    };
    int failed = 0;
    for (int isa = 0; isa < CORNU_ISA_COUNT; isa++)
        failed += isa_run_group("", (CornuIsa)isa, tests, sizeof tests / sizeof *tests);
    return failed;
}
