/*
 * The vector loops of every instruction set this CPU has: functions of f32 against libm's
 * double over all bf16 and 12.6 million more floats, both signs of every exponent, the largest
 * error in units in the last place (ULP); exact ops bit by bit; random numbers against the
 * definition in random.h.
 *
 * tests/run: all instruction sets, quick
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cornu/device/host/machine/cpu.h>
#include <cornu/device/host/isa/normalize.h>
#include <cornu/device/host/isa/recurrent.h>
#include <cornu/device/host/machine/vector.h>
#include <cornu/device/op_internal.h>
#include <cornu/device/random.h>

#include "../../../quick.h"
#include "../../isas.h"

enum { CHUNK = 1 << 16, SPACING = 341, CHUNKS = 1 + 192 };

static const struct {
    const char         *name;
    CornuIsa            isa;
    const CornuVectors *vectors;
} tables[] = {
#define TABLE(type, table, id, isa) { #isa, CORNU_ISA_##id, &table##_##isa },
    CORNU__F32_ISAS(TABLE, , cornu__vectors)
#undef TABLE
};
enum { TABLE_COUNT = sizeof tables / sizeof *tables };

static double sigmoid(double x)
{
    return x < 0 ? exp(x) / (1.0 + exp(x)) : 1.0 / (1.0 + exp(-x));
}
static double softplus(double x) { return fmax(x, 0.0) + log1p(exp(-fabs(x))); }
static double elu_1(double x) { return x > 0.0 ? x : expm1(x); }
static double elu_03(double x) { return x > 0.0 ? x : (double)0.3f * expm1(x); }
static double rsqrt(double x) { return 1.0 / sqrt(x); }

/* `bound` in ULP, as vector.h states it. */
static const struct {
    CornuOpId id;
    double (*exact)(double);
    double bound;
    double alpha;
} functions[] = {
    { CORNU_OP_EXP, exp, 1.05, 0.0 },     { CORNU_OP_LOG, log, 1.0, 0.0 },
    { CORNU_OP_TANH, tanh, 1.5, 0.0 },   { CORNU_OP_SIGMOID, sigmoid, 2.5, 0.0 },
    { CORNU_OP_ERF, erf, 1.5, 0.0 },     { CORNU_OP_SOFTPLUS, softplus, 2.0, 0.0 },
    { CORNU_OP_ELU, elu_1, 1.0, 1.0 },   { CORNU_OP_ELU, elu_03, 2.0, 0.3 },
    { CORNU_OP_SIN, sin, 1.0, 0.0 },     { CORNU_OP_COS, cos, 1.0, 0.0 },
    { CORNU_OP_SQRT, sqrt, 0.5, 0.0 },   { CORNU_OP_RSQRT, rsqrt, 1.5, 0.0 },
};
enum { FUNCTION_COUNT = sizeof functions / sizeof *functions };

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double error_in_ulp(float got, double exact)
{
    float nearest = (float)exact;
    if (isnan(nearest) || isnan(got))
        return isnan(nearest) && isnan(got) ? 0.0 : INFINITY;
    if (got == nearest)
        return signbit(got) == signbit(nearest) || got != 0.0f ? 0.0 : INFINITY;
    if (isinf(got) || isinf(nearest))
        return fabs(exact) > 3.4028e38 && isinf(got) ? 1.0 : INFINITY;
    int exponent;
    frexp(exact, &exponent);
    return fabs((double)got - exact) / ldexp(1.0, exponent < -125 ? -149 : exponent - 24);
}

static const float specials[] = { 0.0f,        -0.0f,     INFINITY,     -INFINITY,
                                  NAN,         0x1p-149f, -0x1p-149f,   0x1p-126f,
                                  88.72283f,   88.72284f, -87.33655f,   -103.97208f,
                                  -103.97209f, 0.625f,    0.927734375f, 1.0f,
                                  -1.0f,       0x1p28f,   0x1.fffffep127f, -0x1.fffffep127f };

/* Chunk 0 is every bf16, the others together the special values and every SPACING-th float. */
static void fill_chunk(uint32_t chunk, float *x)
{
    for (uint32_t i = 0; i < CHUNK; i++)
        x[i] = chunk == 0 ? float_of(i << 16) : float_of(((chunk - 1) * CHUNK + i) * SPACING);
    if (chunk == 1) memcpy(x, specials, sizeof specials);
}

static void test_functions(void **state)
{
    (void)state;
    static float  x[CHUNK], y[CHUNK];
    static double exact[CHUNK];
    double        worst[FUNCTION_COUNT][TABLE_COUNT] = { { 0.0 } };
    float         at[FUNCTION_COUNT][TABLE_COUNT];
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk += chunk ? (uint32_t)quick(16, 1) : 1) {
        fill_chunk(chunk, x);
        for (int f = 0; f < FUNCTION_COUNT; f++) {
            for (int i = 0; i < CHUNK; i++) exact[i] = functions[f].exact((double)x[i]);
            for (int t = 0; t < TABLE_COUNT; t++) {
                if (!isa_begin(tables[t].isa)) continue;
                CornuVector *loop = tables[t].vectors->class[CORNU_CLASS_F32]->op[functions[f].id];
                for (int i = 0; i < CHUNK; i += CORNU_BLOCK)
                    loop(&(CornuVectorCall){ .in = { x + i }, .out = { y + i },
                                             .attributes = &functions[f].alpha }, CORNU_BLOCK);
                for (int i = 0; i < CHUNK; i++) {
                    const double error = error_in_ulp(y[i], exact[i]);
                    if (error > worst[f][t]) worst[f][t] = error, at[f][t] = x[i];
                }
            }
        }
    }
    bool failed = false;
    for (int f = 0; f < FUNCTION_COUNT; f++)
        for (int t = 0; t < TABLE_COUNT; t++) {
            if (!isa_present(tables[t].isa)) continue;
            print_message("%s %s: %.2f ULP\n", cornu_op_name(functions[f].id), tables[t].name,
                          worst[f][t]);
            if (worst[f][t] <= functions[f].bound) continue;
            failed = true;
            print_error("%s, %s: %.2f ULP at %.9g, expected at most %.2f\n",
                        cornu_op_name(functions[f].id), tables[t].name, worst[f][t],
                        (double)at[f][t], functions[f].bound);
        }
    assert_false(failed);
}

/* The sigmoids and tanhs of recurrent cells, as exponential.h states them. */
static void test_gates(void **state)
{
    (void)state;
    enum { UNITS = CORNU_CELL_UNITS };
    static const CornuCells *const cells[TABLE_COUNT] = {
        CORNU__F32_ISAS(CORNU__ADDRESS, , cornu__cells)
    };
    static const double bounds[4] = { 2.5, 2.5, 2.4, 2.5 };
    static float        x[CHUNK], sums[4][UNITS];
    for (int i = 0; i < 4 * UNITS; i++) sums[i / UNITS][i % UNITS] = -0.0f;
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk += chunk ? (uint32_t)quick(16, 1) : 1) {
        fill_chunk(chunk, x);
        for (int t = 0; t < TABLE_COUNT; t++) {
            if (!isa_begin(tables[t].isa)) continue;
            for (int first = 0; first < CHUNK; first += UNITS) {
                float z[4][UNITS], gates[4][UNITS], c[UNITS] = { 0.0f }, h[UNITS], state_c[UNITS];
                for (int k = 0; k < 4; k++) memcpy(z[k], x + first, sizeof z[k]);
                cells[t]->lstm(&(CornuLstmCell){
                    .units = UNITS, .gate = UNITS, .sums = *sums, .sums_gate = UNITS, .c = c,
                    .z = { .from = z }, .gates = { .to = gates }, .cells = { .to = state_c },
                    .h = { .to = h },
                });
                for (int i = 0; i < 4 * UNITS; i++) {
                    const int    k = i / UNITS;
                    const float  at = z[k][i % UNITS], y = gates[k][i % UNITS];
                    const double exact = k == 2 ? tanh((double)at) : sigmoid((double)at);
                    if (!(error_in_ulp(y, exact) <= bounds[k]))
                        fail_msg("%s, gate %d: %.9g of %.9g, expected %.9g, %.2f ULP at most",
                                 tables[t].name, k, (double)y, (double)at, exact, bounds[k]);
                }
            }
        }
    }
}

/* Every f16, and f32 of every exponent around the ties of their rounding to f16. */
static void test_f16(void **state)
{
    (void)state;
    enum { HALVES = 1 << 16, STEP = 1 << 11 };
    uint16_t *half = malloc(HALVES * sizeof *half), *back = malloc(HALVES * sizeof *back);
    uint32_t *bits = malloc(HALVES * sizeof *bits), *wide = malloc(HALVES * sizeof *wide);
    for (int t = 0; t < TABLE_COUNT; t++) {
        if (!isa_begin(tables[t].isa)) continue;
        const CornuVectors *vectors = tables[t].vectors;
        for (int i = 0; i < HALVES; i++) half[i] = (uint16_t)i;
        vectors->load[CORNU_F16](&(CornuVectorCall){ .in = { half }, .out = { wide } }, HALVES);
        for (int i = 0; i < HALVES; i++) {
            const float expected = cornu_f16_to_float((uint16_t)i);
            assert_memory_equal(&wide[i], &expected, sizeof expected);
        }
        for (uint32_t start = 0; start < 3; start++)
            for (uint32_t part = 0; part < 32; part++) {
                for (uint32_t i = 0; i < HALVES; i++)
                    bits[i] = (part * HALVES + i) * STEP + start - 1;
                vectors->store[CORNU_F16](&(CornuVectorCall){ .in = { bits }, .out = { back } },
                                          HALVES);
                vectors->round[CORNU_F16](&(CornuVectorCall){ .in = { bits }, .out = { wide } },
                                          HALVES);
                for (int i = 0; i < HALVES; i++) {
                    float x;
                    memcpy(&x, &bits[i], sizeof x);
                    const uint16_t expected = cornu_f16_from_float(x);
                    const float    rounded = cornu_f16_to_float(expected);
                    if (back[i] != expected || wide[i] != bits_of(rounded))
                        fail_msg("%s: %08x becomes %04x, expected %04x", tables[t].name,
                                 (unsigned)bits[i], back[i], expected);
                }
            }
    }
    free(half), free(back), free(bits), free(wide);
}

/* A destination may be the source. */
static void test_in_place(void **state)
{
    (void)state;
    for (int t = 0; t < TABLE_COUNT; t++) {
        if (!isa_begin(tables[t].isa)) continue;
        for (int f = 0; f < FUNCTION_COUNT; f++) {
            float x[256], y[256];
            for (int i = 0; i < 256; i++) x[i] = (float)(i - 100) * 0.07f;
            CornuVectorCall call = { .in = { x }, .out = { y },
                                     .attributes = (const double[]){ 1.0 } };
            CornuVector    *loop =
                tables[t].vectors->class[CORNU_CLASS_F32]->op[functions[f].id];
            loop(&call, 256);
            call.out[0] = x;
            loop(&call, 256);
            for (int i = 0; i < 256; i++)
                assert_true(x[i] == y[i] || (isnan(x[i]) && isnan(y[i])));
        }
    }
}

static void test_uniform(void **state)
{
    (void)state;
    static const int64_t rows[] = { 1, 3, 4, 63, 64, 65, 1000 };
    for (int t = 0; t < TABLE_COUNT; t++) {
        if (!isa_begin(tables[t].isa)) continue;
        for (int r = 0; r < 7; r++) {
            CornuRandom random = { .seed = 0x123456789abcdefu,
                                   .position = 40,
                                   .iteration = 7,
                                   .generator = 3,
                                   .row = rows[r] };
            for (int64_t first = 0; first < 3000; first += 991) {
                float           y[512];
                CornuVectorCall call = { .out = { y },
                                         .first = first,
                                         .random = &random };
                tables[t].vectors->uniform(&call, 512);
                for (int64_t i = 0; i < 512; i++) {
                    int64_t  row = (first + i) / rows[r], column = (first + i) % rows[r];
                    uint32_t words[4],
                        counter[4] = { (uint32_t)(column / 4), 40 + (uint32_t)row, 7, 3 };
                    cornu_philox(random.seed, counter, words);
                    assert_true(y[i] == cornu_uniform(words[column % 4]));
                }
            }
        }
    }
}

static void test_runs(void **state)
{
    (void)state;
    float x[5000];
    for (int i = 0; i < 5000; i++) x[i] = (float)((i * 7919) % 1000) / 1000.0f;
    for (int t = 0; t < TABLE_COUNT; t++) {
        if (!isa_begin(tables[t].isa)) continue;
        for (int64_t count = 1; count < 5000; count += 1 + count / 7) {
            double sum = 0.0, largest = 0.0;
            for (int64_t i = 0; i < count; i++)
                sum += x[i], largest = fmax(largest, x[i]);
            float total, most;
            tables[t].vectors->sum_runs(x, 1, count, &total);
            tables[t].vectors->max_runs(x, 1, count, &most);
            assert_true(fabs((double)total - sum) <= 4e-6 * sum);
            assert_true((double)most == largest);
        }
        for (int64_t count = 1; count <= 100; count++) {   /* runs have the bits of each alone */
            float total[50], most[50], alone;
            tables[t].vectors->sum_runs(x, 50, count, total);
            tables[t].vectors->max_runs(x, 50, count, most);
            for (int64_t run = 0; run < 50; run++) {
                tables[t].vectors->sum_runs(x + run * count, 1, count, &alone);
                assert_true(total[run] == alone);
                tables[t].vectors->max_runs(x + run * count, 1, count, &alone);
                assert_true(most[run] == alone);
            }
        }
        for (int64_t count = 2; count <= 70; count += 17) {
            float broken[70] = { 0.0f }, most;
            broken[count - 1] = NAN;
            tables[t].vectors->max_runs(broken, 1, count, &most);
            assert_true(isnan(most));
        }
    }
}

/* The same bits as neighbours added first, then the pairs, then the fours. */
static void test_sums_of_rows(void **state)
{
    (void)state;
    float        x[CORNU_SUM_ROWS][100], part[CORNU_SUM_ROWS], y[101];
    const float *from[CORNU_SUM_ROWS];
    for (int k = 0; k < CORNU_SUM_ROWS; k++) {
        from[k] = x[k];
        for (int i = 0; i < 100; i++)
            x[k][i] = (float)((i * 7919 + k * 104729) % 1009 - 504) / 37.0f;
    }
    for (int t = 0; t < TABLE_COUNT; t++) {
        if (!isa_begin(tables[t].isa)) continue;
        for (int rows = 1; rows <= CORNU_SUM_ROWS; rows++)
            for (int count = 0; count <= 100; count++) {
                y[count] = 1.5f;
                tables[t].vectors->sum_rows(y, from, rows, count);
                assert_true(y[count] == 1.5f);
                for (int i = 0; i < count; i++) {
                    for (int k = 0; k < rows; k++) part[k] = x[k][i];
                    for (int step = 1; step < rows; step *= 2)
                        for (int k = 0; k + step < rows; k += 2 * step) part[k] += part[k + step];
                    assert_true(y[i] == part[0]);
                }
            }
    }
}

/* Rows of every length up to 300, in place, whose smallest exponentials are denormal or 0. */
static void test_softmax(void **state)
{
    (void)state;
    static const CornuNormalizes *const normalizes[TABLE_COUNT] = {
        CORNU__F32_ISAS(CORNU__ADDRESS, , cornu__normalizes)
    };
    for (int t = 0; t < TABLE_COUNT; t++) {
        if (!isa_begin(tables[t].isa)) continue;
        for (int classes = 1; classes <= 300; classes++) {
            float  x[300], y[300], z[300];
            double sum = 0.0, largest = -INFINITY;
            for (int k = 0; k < classes; k++) {
                x[k] = (float)((k * 7919 + classes * 31) % 1201) / 10.0f - 60.0f;
                if (k % 50 == 49) x[k] = -INFINITY;
                y[k] = z[k] = x[k];
                largest = fmax(largest, (double)x[k]);
            }
            for (int k = 0; k < classes; k++) sum += exp((double)x[k] - largest);
            normalizes[t]->softmax(y, 1, classes, false, y);
            normalizes[t]->softmax(z, 1, classes, true, z);
            for (int k = 0; k < classes; k++) {
                const double below = largest - (double)x[k], exact = exp(-below) / sum;
                const double logarithm = -below - log(sum);
                const int    terms = classes / 4 + 8;   /* added in sequence */
                const double bound = isinf(x[k]) ? 0.0 : (below + terms) * 0x1p-24;
                if (!(fabs((double)y[k] - exact) <= bound * exact + 0x1p-148) ||
                    !(isinf(x[k]) ? z[k] == x[k]
                      : fabs((double)z[k] - logarithm) <= bound * (1.0 - logarithm)))
                    fail_msg("%s, %d classes: %.9g and %.9g of %.9g, expected %.9g and %.9g",
                             tables[t].name, classes, (double)y[k], (double)z[k], (double)x[k],
                             exact, logarithm);
            }
            x[classes / 2] = NAN;
            normalizes[t]->softmax(x, 1, classes, false, y);
            for (int k = 0; k < classes; k++) assert_true(isnan(y[k]));
        }
    }
}

/* Rows have the bits of each by itself; a NaN stays in its row. */
static void test_softmax_of_rows(void **state)
{
    (void)state;
    enum { ROWS = 37, CLASSES = 40 };
    static const CornuNormalizes *const normalizes[TABLE_COUNT] = {
        CORNU__F32_ISAS(CORNU__ADDRESS, , cornu__normalizes)
    };
    for (int t = 0; t < TABLE_COUNT; t++) {
        if (!isa_begin(tables[t].isa)) continue;
        for (int classes = 1; classes <= CLASSES; classes++)
            for (int logarithm = 0; logarithm < 2; logarithm++) {
                float x[ROWS * CLASSES], y[ROWS * CLASSES], alone[CLASSES];
                for (int i = 0; i < ROWS * classes; i++)
                    x[i] = (float)((i * 7919 + classes * 31) % 1201) / 50.0f - 12.0f;
                x[(ROWS - 2) * classes + classes / 2] = NAN;
                normalizes[t]->softmax(x, ROWS, classes, logarithm, y);
                for (int row = 0; row < ROWS; row++) {
                    normalizes[t]->softmax(x + row * classes, 1, classes, logarithm, alone);
                    for (int k = 0; k < classes; k++)
                        assert_true(row == ROWS - 2 ? isnan(y[row * classes + k])
                                                    : y[row * classes + k] == alone[k]);
                }
            }
    }
}

/* An op that has a loop says in its row what the loop costs, and every elementwise op does. */
static void test_costs(void **state)
{
    const CornuVectors *vectors = cornu__vectors();
    (void)state;
    for (int id = 0; id < CORNU_OP_COUNT; id++) {
        bool has_loop = cornu__is_elementwise(id);
        for (int class = 0; class < CORNU_CLASS_COUNT; class++)
            has_loop |= vectors->class[class]->op[id] != NULL;
        if (has_loop && cornu__op_cost(id) < 1)
            fail_msg("%s: has a loop, and no cost", cornu_op_name(id));
    }
    assert_int_equal(cornu__op_cost(CORNU_OP_ADD), 1);
    assert_int_equal(cornu__op_cost(CORNU_OP_SIN), 8);
    assert_int_equal(cornu__op_cost(CORNU_OP_MATMUL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_gates),
        cmocka_unit_test(test_f16),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_sums_of_rows),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_softmax_of_rows),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + isas_run_counted(CORNU_F32_ISA_COUNT - 1);
}
