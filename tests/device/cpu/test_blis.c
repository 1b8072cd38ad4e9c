#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../skip.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../device/cpu/blis.h"
#include "../../../device/host/machine/cpu.h"
#include "../../../device/host/machine/threads.h"
#include "../../allocations.h"
#include "../isas.h"

enum { THREADS = 4 };

/* A product whose operands lie at any strides, checked against a plain loop in double. */
typedef struct {
    int64_t m, n, k;
    int64_t a_row, a_column, b_row, b_column, c_row, c_column;
    float   alpha, beta;
} Product;

static float draw(int64_t i)
{
    return (float)((i * 2654435761u + 12345) % 2001) / 1000 - 1;
}

static float *draw_many(int64_t count, int64_t seed)
{
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++) values[i] = draw(i + seed);
    return values;
}

static int64_t reach(int64_t rows, int64_t row, int64_t columns, int64_t column)
{
    return (rows > 0 ? rows - 1 : 0) * row + (columns > 0 ? columns - 1 : 0) * column + 1;
}

/*
 * The largest error, in units of what rounding may give:
 *     |computed - exact| <= (k + 2) u (|alpha| sum |a| |b| + |beta c|),   u = 2^-24
 * Source: "Accuracy and Stability of Numerical Algorithms", section 3.5.
 */
static double error_of(const Product *p)
{
    const int64_t c_count = reach(p->m, p->c_row, p->n, p->c_column);
    float *a = draw_many(reach(p->m, p->a_row, p->k, p->a_column), 1);
    float *b = draw_many(reach(p->k, p->b_row, p->n, p->b_column), 2);
    float *c = draw_many(c_count, 3), *before = draw_many(c_count, 3);
    /* With beta 0 nothing may be read, not even NaN. */
    for (int64_t i = 0; i < c_count && p->beta == 0; i++) c[i] = NAN;
    cornu__blis_sgemm(p->m, p->n, p->k, p->alpha, a, p->a_row, p->a_column, b, p->b_row,
                      p->b_column, p->beta, c, p->c_row, p->c_column);
    double worst = 0;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            const int64_t at = i * p->c_row + j * p->c_column;
            double exact = p->beta ? p->beta * before[at] : 0, size = fabs(exact);
            for (int64_t l = 0; l < p->k; l++) {
                const double term = (double)p->alpha * a[i * p->a_row + l * p->a_column] *
                                    b[l * p->b_row + j * p->b_column];
                exact += term;
                size += fabs(term);
            }
            const double bound = (double)(p->k + 2) * 0x1p-24 * size + 1e-30;
            const double error = fabs(c[at] - exact) / bound;
            if (!(error <= worst)) worst = error;
        }
    free(a), free(b), free(c), free(before);
    return worst;
}

static const Product products[] = {
    /* m   n    k    A          B          C        alpha beta */
    {   1,   1,   1,   1,   1,   1,   1,   1,   1,  1,    0 },
    {   1,   5,   3,   3,   1,   5,   1,   5,   1,  1,    0 },
    {   7,   1, 300, 300,   1,   1,   1,   1,   1,  1,    1 },
    {  64,  10, 128, 128,   1,  10,   1,  10,   1,  1,    0 },
    {  33,  47,  61,  61,   1,  47,   1,  47,   1,  2,    0.5f },
    { 130, 200, 400, 400,   1, 200,   1, 200,   1,  1,    0 },
    { 130,  51,  70,   1, 130,  51,   1,  51,   1,  1,    1 },   /* A transposed */
    { 130,  51,  70,  70,   1,   1,  70,  51,   1,  1,    1 },   /* B transposed */
    {  65,  51,  70,  70,   1,  51,   1,   1,  65, -1,    0 },   /* C transposed */
    {  65,  51,  70,  80,   1,  60,   1,  99,   1,  1,    1 },   /* parts of rows */
    {  20,  30,  40, 100,   2, 200,   3, 128,   4,  1,    1 },   /* general strides */
    { 100,  30,  50,  10,   1,  30,   1,  30,   1,  1,    0 },   /* rows of A overlap */
    { 500,   3,   9,   9,   1,   3,   1,   3,   1,  1,    0 },
    {   3,   4,   0,   1,   1,   4,   1,   4,   1,  1,    0 },   /* no terms: zeros */
    {   0,   4,   5,   5,   1,   4,   1,   4,   1,  1,    0 },
};
enum { PRODUCTS = sizeof products / sizeof *products };

static void test_products(void **state)
{
    (void)state;
    assert_int_equal(cornu__blis_open(1), CORNU_OK);
    for (int i = 0; i < PRODUCTS; i++) {
        const double error = error_of(&products[i]);
        if (!(error <= 1)) fail_msg("product %d: error is %g of the bound", i, error);
    }
    cornu__blis_close(1);
}

static void multiply_and_compare(void *context, int64_t block, int thread)
{
    (void)thread;
    double *errors = context;
    errors[block] = error_of(&products[block % PRODUCTS]);
}

static void test_products_of_threads(void **state)
{
    (void)state;
    enum { BLOCKS = 20 * PRODUCTS };
    double        errors[BLOCKS];
    CornuThreads *pool = cornu__threads_create(THREADS);
    assert_int_equal(cornu__blis_open(THREADS), CORNU_OK);
    cornu__threads_run(pool, BLOCKS, multiply_and_compare, errors);
    for (int i = 0; i < BLOCKS; i++) assert_true(errors[i] <= 1);
    cornu__blis_close(THREADS);
    cornu__threads_free(pool);
}

typedef struct { const float *a, *b; float *c; int size; } Square;

static void multiply_square(void *context, int64_t block, int thread)
{
    (void)thread;
    const Square *s = context;
    const int64_t n = s->size;
    cornu__blis_sgemm(n, n, n, 1, s->a, n, 1, s->b, n, 1, 0, s->c + block * n * n, n, 1);
}

/* In a fresh process, from the very first product on, which is where BLIS does allocate:
 * all of it comes from the reserve. */
static int allocate_nothing(void)
{
    enum { SIZE = 400 };
    static float a[SIZE * SIZE], c[THREADS * SIZE * SIZE];
    Square        square = { a, a, c, SIZE };
    CornuThreads *pool = cornu__threads_create(THREADS);
    if (!pool || cornu__blis_open(THREADS) != CORNU_OK) return 1;
    const int64_t before = allocations();
    allocations_fail_after(0);
    for (int i = 0; i < 20; i++)
        cornu__threads_run(pool, THREADS, multiply_square, &square);
    square.size = 20;
    cornu__threads_run(pool, THREADS, multiply_square, &square);
    allocations_fail_after(NEVER);
    cornu__threads_free(pool);
    return allocations() - before > 0 ? 2 : 0;
}

static int refuse(const char *arch_type, CornuStatus status, const char *words)
{
    setenv("BLIS_ARCH_TYPE", arch_type, 1);
    if (cornu__blis_open(1) != status || !strstr(cornu_error_message(), words)) {
        printf("BLIS_ARCH_TYPE=%s: %s\n", arch_type, cornu_error_message());
        return 1;
    }
    return 0;
}

static int refuse_arch_types(void)
{
    const char *const wrong[] = {
        "12", "1", "6", "-1", "99", "haswell", "3x", "99999999999999999999",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (refuse(wrong[i], CORNU_ERR_DEVICE, "built into this library")) return 1;
#if defined(__x86_64__)
    if (cornu__cpu()->best < CORNU_ISA_AVX512 && refuse("0", CORNU_ERR_DEVICE, "avx512"))
        return 1;
#endif
    unsetenv("BLIS_ARCH_TYPE");
    setenv("CORNU_ISA", "sse9", 1);
    return cornu__blis_open(1) != CORNU_ERR_ARGUMENT;
}

static const char *kernels_of(CornuIsa isa)
{
#if defined(__x86_64__)
    if (isa == CORNU_ISA_AVX512 && !cornu__cpu()->halves) return "skx";
    return isa == CORNU_ISA_PORTABLE ? "generic" : "haswell";
#elif defined(__aarch64__)
    (void)isa;
    return "cortexa57";
#else
    (void)isa;
    return "generic";
#endif
}

static int kernels_follow_isa(CornuIsa isa)
{
    unsetenv("BLIS_ARCH_TYPE");
    if (!isa_take(isa) || cornu__blis_open(1) != CORNU_OK) return 1;
    printf("%s: %s, BLIS %s\n", cornu__isa_name(isa), cornu__blis_kernels(),
           cornu__blis_version());
    if (strcmp(cornu__blis_kernels(), kernels_of(isa)) != 0) return 1;
    for (int i = 0; i < PRODUCTS; i++)
        if (!(error_of(&products[i]) <= 1)) return 1;
    return 0;
}

static int lack_memory(void)
{
    allocations_fail_after(0);
    const CornuStatus status = cornu__blis_open(2);
    allocations_fail_after(NEVER);
    if (status != CORNU_ERR_MEMORY) return 1;
    return cornu__blis_open(2) != CORNU_OK;
}

/* BLIS starts once a process: a child shows each beginning, and the kernels of each set. It runs
 * this program again, as a process with threads cannot simply be forked. */
static const struct { const char *name; int (*function)(void); } beginnings[] = {
    { "allocate_nothing", allocate_nothing },
    { "refuse_arch_types", refuse_arch_types },
    { "lack_memory", lack_memory },
};

static const char *this_program;

static void begin(const char *name)
{
    char        command[4096];
    const char *wrapper = getenv("CORNU_TEST_WRAPPER");
    snprintf(command, sizeof command, "%s '%s' %s", wrapper ? wrapper : "", this_program, name);
    fflush(stdout);
    assert_int_equal(system(command), 0);
}

static void test_allocates_nothing(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    begin("allocate_nothing");
}

static void test_memory_missing(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    begin("lack_memory");
}

static void test_arch_type_refused(void **state)
{
    (void)state;
    begin("refuse_arch_types");
}

static void test_kernels_of_isa(void **state)
{
    const CornuIsa isa = *(const CornuIsa *)*state;
    if (!isa_present(isa)) SKIP_FOR(SKIP_ISA);
    begin(cornu__isa_name(isa));
}

int main(int count, char **arguments)
{
    this_program = arguments[0];
    for (size_t i = 0; count > 1 && i < sizeof beginnings / sizeof *beginnings; i++)
        if (strcmp(arguments[1], beginnings[i].name) == 0)
            return beginnings[i].function();
    for (int isa = 0; count > 1 && isa < CORNU_F32_ISA_COUNT; isa++)
        if (strcmp(arguments[1], cornu__isa_name((CornuIsa)isa)) == 0)
            return kernels_follow_isa((CornuIsa)isa);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_products_of_threads),
#define OF_ISA(type, table, id, isa)                                                      \
        { .name = "test_kernels_of_" #isa, .test_func = test_kernels_of_isa,              \
          .initial_state = (CornuIsa[]){ CORNU_ISA_##id } },
        CORNU__F32_ISAS(OF_ISA, , )
#undef OF_ISA
        cmocka_unit_test(test_arch_type_refused),
        cmocka_unit_test(test_allocates_nothing),
        cmocka_unit_test(test_memory_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
