#include "agreement.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

CornuDevice *reference, *cpu[THREADS];

int open_devices(void **state)
{
    (void)state;
    reference = cornu_device_open("reference");
    for (int i = 0; i < THREADS; i++) cpu[i] = cornu_device_open("cpu", .threads = i + 1);
    return reference && cpu[0] && cpu[1] && cpu[2] ? 0 : -1;
}

int close_devices(void **state)
{
    (void)state;
    cornu_device_close(reference);
    for (int i = 0; i < THREADS; i++) cornu_device_close(cpu[i]);
    return 0;
}

void expect_close(const double *got, const double *expected, int64_t count,
                  double tolerance, const char *what, int number)
{
    double largest = 0.0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(expected[i])) largest = fmax(largest, fabs(expected[i]));
    for (int64_t i = 0; i < count; i++) {
        if (got[i] == expected[i] || (isnan(got[i]) && isnan(expected[i]))) continue;
        if (!(fabs(got[i] - expected[i]) <= tolerance * fmax(largest, 1e-3)))
            fail_msg("%s, output %d, element %lld: %.9g, expected %.9g, largest %.9g",
                     what, number, (long long)i, got[i], expected[i], largest);
    }
}

void check(const CornuProgram *program, double tolerance, const char *what)
{
    Compiled wanted = compile(reference, program), made[THREADS];
    for (int t = 0; t < THREADS; t++) made[t] = compile(cpu[t], program);
    set_inputs(&wanted, 1);
    for (int t = 0; t < THREADS; t++) set_inputs(&made[t], 1);
    for (int round = 0; round < 2; round++) {
        run(&wanted);
        for (int t = 0; t < THREADS; t++) run(&made[t]);
        for (int i = 0; i < program->output_count; i++) {
            int64_t count;
            double *expected = get_output(&wanted, i, &count),
                   *first = get_output(&made[0], i, &count);
            CornuDtype dtype =
                cornu_program_type(program, program->outputs[i].value).dtype;
            expect_close(first, expected, count,
                         cornu_dtype_is_float(dtype) ? tolerance : 0.0, what, i);
            for (int t = 1; t < THREADS; t++) {
                double *got = get_output(&made[t], i, &count);
                if (memcmp(got, first, (size_t)count * sizeof *got) != 0)
                    fail_msg("%s, output %d: %d threads give other bits than 1", what, i,
                             t + 1);
                free(got);
            }
            free(first);
            free(expected);
        }
    }
    release(&wanted);
    for (int t = 0; t < THREADS; t++) release(&made[t]);
}

void check_without(const CornuProgram *program, const char *passes, const char *what)
{
    int64_t count;
    double *now = numbers_of(cpu[1], program, 5, &count);
    setenv("CORNU_PASSES", passes, 1);
    double *without = numbers_of(cpu[1], program, 5, &count);
    unsetenv("CORNU_PASSES");
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&now[i], &without[i], sizeof *now))
            fail_msg("%s, element %lld: %.9g, with CORNU_PASSES=%s %.9g", what, (long long)i,
                     now[i], passes, without[i]);
    free(now);
    free(without);
}
