/* Random programs on host devices, against the reference device; a run allocates nothing, and a
 * compilation survives failed allocations. CORNU_TEST_SEED=17 runs that program alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../../allocations.h"
#include "../../agreement.h"
#include "../../../skip.h"

enum { MOST_VALUES = 200 };

/* A program under construction: the values so far, and whether their rounding may differ from the
 * reference's, so that comparisons must not depend on them. */
typedef struct {
    CornuProgram *p;
    uint64_t      seed;
    CornuValue    values[MOST_VALUES];
    bool          exact[MOST_VALUES];
    int           count;
} Generator;

static void keep(Generator *g, CornuValue value, bool exact)
{
    if (g->count == MOST_VALUES) return;
    g->values[g->count] = value;
    g->exact[g->count++] = exact;
}

/* A value, of this dtype if possible; -1 if there is none. */
static int pick(Generator *g, int dtype)
{
    for (int tries = 0; tries < 20; tries++) {
        int i = (int)draw(&g->seed, g->count);
        if (dtype < 0 || (int)cornu_program_type(g->p, g->values[i]).dtype == dtype)
            return i;
    }
    return -1;
}

/* Another value of the type of value i: an earlier one, a broadcast, or a constant. */
static CornuValue partner(Generator *g, int i)
{
    CornuType type = cornu_program_type(g->p, g->values[i]);
    for (int tries = 0; tries < 10; tries++) {
        int k = pick(g, (int)type.dtype);
        if (k < 0) break;
        CornuType other = cornu_program_type(g->p, g->values[k]);
        if (cornu_type_equal(type, other)) return g->values[k];
        bool fits = other.shape.rank <= type.shape.rank;
        for (int a = 0; fits && a < other.shape.rank; a++) {
            int64_t extent = other.shape.extent[other.shape.rank - 1 - a];
            fits = extent == 1 || extent == type.shape.extent[type.shape.rank - 1 - a];
        }
        if (fits) return broadcast(g->p, g->values[k], type.shape);
    }
    return broadcast(g->p, constant(g->p, type.dtype, (double)(1 + draw(&g->seed, 3))),
                     type.shape);
}

static void add_random_op(Generator *g)
{
    static const CornuOpId unary[] = { CORNU_OP_NEGATIVE, CORNU_OP_ABSOLUTE,
                                       CORNU_OP_TANH,     CORNU_OP_SIGMOID,
                                       CORNU_OP_RELU,     CORNU_OP_SIN,
                                       CORNU_OP_COS,      CORNU_OP_ERF,
                                       CORNU_OP_SOFTPLUS };
    static const CornuOpId binary[] = { CORNU_OP_ADD, CORNU_OP_SUBTRACT,
                                        CORNU_OP_MULTIPLY, CORNU_OP_MAXIMUM,
                                        CORNU_OP_MINIMUM };
    CornuProgram *p = g->p;
    int           i = pick(g, draw(&g->seed, 4) ? (int)CORNU_F32 : -1);
    if (i < 0) return;
    CornuValue x = g->values[i];
    CornuType  type = cornu_program_type(p, x);
    bool is_float = cornu_dtype_is_float(type.dtype), number = type.dtype != CORNU_BOOL;
    CornuAttributes attributes = { 0 };
    switch (draw(&g->seed, 13)) {
    case 0: case 1:
        if (is_float) keep(g, op1(p, unary[draw(&g->seed, 9)], x), false);
        break;
    case 2: case 3: case 4:
        if (!number) break;
        x = op2(p, binary[draw(&g->seed, 5)], x, partner(g, i));
        /* bounded, or powers of powers would overflow */
        keep(g, is_float ? op1(p, CORNU_OP_TANH, x) : op2(p, CORNU_OP_MINIMUM, x,
             broadcast(p, constant(p, type.dtype, 20.0), type.shape)), !is_float);
        break;
    case 5:
        if (!g->exact[i]) break;
        attributes.compare.comparison = (CornuComparison)draw(&g->seed, 6);
        keep(g,
             op(p, CORNU_OP_COMPARE, &attributes,
                (CornuValue[]){ x,
                                broadcast(p, constant(p, type.dtype, 1.0), type.shape) },
                2),
             true);
        break;
    case 6: {
        int c = pick(g, CORNU_BOOL);
        if (c < 0 ||
            !cornu_shape_equal(cornu_program_type(p, g->values[c]).shape, type.shape))
            break;
        keep(g,
             op(p, CORNU_OP_SELECT, NULL,
                (CornuValue[]){ g->values[c], x, partner(g, i) }, 3),
             false);
        break;
    }
    case 7:
        keep(g, convert(p, x, draw(&g->seed, 2) || is_float ? CORNU_F32 : CORNU_F64),
             false);
        break;
    case 8: {
        int64_t    count = cornu_type_count(type);
        int64_t    part = count % 2 == 0 ? 2 : count % 3 == 0 ? 3 : 1;
        keep(g, reshape(p, x, cornu_shape(part, count / part)), g->exact[i]);
        break;
    }
    case 9:
        for (int a = 0; a < type.shape.rank; a++)
            attributes.permutation.axes[a] = type.shape.rank - 1 - a;
        keep(g, op(p, CORNU_OP_TRANSPOSE, &attributes, &x, 1), g->exact[i]);
        break;
    case 10:
        if (type.shape.rank == 0) break;
        for (int a = 0; a < type.shape.rank; a++)
            attributes.slice.sizes[a] = type.shape.extent[a];
        attributes.slice.starts[0] = draw(&g->seed, type.shape.extent[0]);
        attributes.slice.sizes[0] -= attributes.slice.starts[0];
        keep(g, op(p, CORNU_OP_SLICE, &attributes, &x, 1), g->exact[i]);
        break;
    case 11:
        if (!number) break;
        x = reduce(p, draw(&g->seed, 2) ? CORNU_OP_REDUCE_SUM : CORNU_OP_REDUCE_MAX, x,
                   draw(&g->seed, (int64_t)1 << type.shape.rank));
        keep(g, is_float ? op1(p, CORNU_OP_TANH, x) : x, false);
        break;
    case 12: {
        CornuValue in[4] = { x, constant(p, CORNU_I64, 5.0), constant(p, CORNU_I64, 1.0),
                             constant(p, CORNU_I64, 0.0) };
        attributes.dropout.rate = 0.25;
        if (type.dtype == CORNU_F32)
            keep(g, op(p, CORNU_OP_DROPOUT, &attributes, in, 4), false);
        break;
    }
    }
}

static CornuProgram *random_program(uint64_t seed)
{
    static const int64_t extents[] = { 1, 2, 3, 4, 7, 16, 33 };
    static const CornuDtype dtypes[] = { CORNU_F32, CORNU_F32, CORNU_F32, CORNU_F64,
                                         CORNU_I32, CORNU_I64, CORNU_BOOL };
    Generator g = { .p = cornu_program_create(), .seed = seed };
    CornuShape base = { .rank = 1 + (int)draw(&g.seed, 3) };
    for (int i = 0; i < base.rank; i++) base.extent[i] = extents[draw(&g.seed, 7)];
    if (draw(&g.seed, 6) == 0) base.extent[0] *= 300;
    for (int i = 0; i < 6; i++) {
        CornuShape shape = base;
        if (draw(&g.seed, 3) == 0) shape.rank = 0;
        for (int a = 0; a < shape.rank; a++)
            if (draw(&g.seed, 5) == 0) shape.extent[a] = 1;
        keep(&g, input(g.p, cornu_type_from(dtypes[draw(&g.seed, 7)], shape)), true);
    }
    int ops = 4 + (int)draw(&g.seed, 40);
    for (int i = 0; i < ops; i++) add_random_op(&g);
    for (int i = 0; i < 5; i++) output(g.p, g.values[draw(&g.seed, g.count)], -1);
    for (int i = 0; i < 6; i++)   /* some inputs are variables */
        for (int k = g.count - 1; k > i && draw(&g.seed, 4); k--) {
            if (!cornu_type_equal(cornu_program_type(g.p, g.values[k]),
                                  cornu_program_type(g.p, g.values[i])))
                continue;
            output(g.p, g.values[k], i);
            break;
        }
    return g.p;
}

static void test_random_programs(void **state)
{
    (void)state;
    const char *only = getenv("CORNU_TEST_SEED");
    for (uint64_t seed = 1; seed <= 400; seed++) {
        if (only && strtoull(only, NULL, 10) != seed) continue;
        char name[32];
        snprintf(name, sizeof name, "random program %d", (int)seed);
        CornuProgram *p = random_program(seed);
        check(p, 1e-4, name);
        cornu_program_free(p);
    }
}

static void test_a_run_allocates_nothing(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        CornuProgram *p = random_program(seed);
        Compiled      made = compile(cpu[1], p);
        set_inputs(&made, seed);
        run(&made);
        int64_t before = allocations();
        for (int i = 0; i < 3; i++) run(&made);
        assert_int_equal(allocations(), before);
        release(&made);
        cornu_program_free(p);
    }
}

/* Each allocation of a compilation fails in turn: CORNU_ERR_MEMORY, no crash, no leak. */
static void test_compiling_without_memory(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    CornuProgram *p = random_program(3);
    for (int64_t i = 0;; i++) {
        CornuDevice *device = cornu_device_open("cpu", .threads = 1);
        allocations_fail_after(i);
        CornuExecutable *executable = cornu_device_compile(device, p);
        allocations_fail_after(NEVER);
        cornu_executable_release(executable);
        cornu_device_close(device);
        if (executable) break;
        assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
    }
    cornu_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_a_run_allocates_nothing),
        cmocka_unit_test(test_compiling_without_memory),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
