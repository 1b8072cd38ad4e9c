/* Units of ops: which are joined, against a search of all paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../device/host/compile/units.h"
#include "../../programs.h"

enum { MOST = 60 };

static uint32_t state = 1;

static int random_below(int limit)   /* Numerical Recipes' generator */
{
    state = state * 1664525 + 1013904223;
    return (int)((uint64_t)state * (uint64_t)limit >> 32);
}

/* Sums of values before them, and reshapes, which are seen through. */
static CornuProgram *make_program(int ops, bool *is_seen_through)
{
    CornuProgram *p = cornu_program_create();
    CornuValue    values[MOST + 2];
    int           count = 2;
    values[0] = input(p, cornu_type(CORNU_F32, 6));
    values[1] = input(p, cornu_type(CORNU_F32, 6));
    for (int i = 0; i < ops; i++) {
        const int far = random_below(count);
        const CornuValue near = values[count - 1 - random_below(count < 4 ? count : 4)];
        is_seen_through[i] = random_below(5) == 0;
        values[count] = is_seen_through[i] ? reshape(p, near, cornu_shape(6))
                                           : op2(p, CORNU_OP_ADD, near, values[far]);
        count++;
    }
    output(p, values[count - 1], -1);
    return p;
}

/* What operand k is, or is seen through reshapes as: the op that makes it, -1. */
static int maker_of(const CornuProgram *p, const bool *is_seen_through, int k)
{
    int op = p->values[p->operands[k]].op;
    while (op >= 0 && is_seen_through[op]) op = p->values[p->operands[p->ops[op].in_first]].op;
    return op;
}

/* Whether a path leads from unit a to what it depends on, b, other than by direct operands of a. */
static bool depends_apart(const CornuUnits *u, const bool *is_seen_through, int a, int b)
{
    const CornuProgram *p = u->program;
    bool met[MOST] = { false };
    met[a] = true;
    for (bool first = true, grown = true; grown; first = false) {
        grown = false;
        for (int i = 0; i < p->op_count; i++) {
            if (is_seen_through[i] || !met[u->of[i]] || (first && u->of[i] != a)) continue;
            for (int k = p->ops[i].in_first; k < p->ops[i].in_first + p->ops[i].in_count; k++) {
                const int maker = maker_of(p, is_seen_through, k);
                if (maker < 0 || u->of[maker] == a) continue;
                if (u->of[i] == a && u->direct[k] >= 0 && u->of[maker] == b) continue;
                if (u->of[maker] == b) return true;
                grown |= !met[u->of[maker]];
                met[u->of[maker]] = true;
            }
        }
    }
    return false;
}

static void expect_order(const CornuUnits *u, const bool *is_seen_through)
{
    for (int i = 0; i < u->program->op_count; i++)
        for (int k = u->program->ops[i].in_first, n = u->program->ops[i].in_count;
             n > 0 && !is_seen_through[i]; k++, n--) {
            const int maker = maker_of(u->program, is_seen_through, k);
            if (maker >= 0 && u->of[maker] != u->of[i])
                assert_true(u->rank[u->of[maker]] < u->rank[u->of[i]]);
        }
}

static void test_joins_of_random_programs(void **unused)
{
    int joined = 0, refused = 0;
    (void)unused;
    for (int round = 0; round < 2000; round++) {
        bool          is_seen_through[MOST];
        const int     ops = 2 + random_below(MOST - 2);
        CornuProgram *p = make_program(ops, is_seen_through);
        CornuUnits    u;
        assert_int_equal(cornu__units_create(&u, p), CORNU_OK);
        for (int k = 0; k < p->operand_count; k++)   /* some are read from memory */
            u.direct[k] = random_below(4) ? maker_of(p, is_seen_through, k) : -1;
        cornu__units_order(&u, is_seen_through);
        for (int tries = 0; tries < 3 * ops; tries++) {
            const int i = random_below(ops);
            const int k = p->ops[i].in_first + random_below(p->ops[i].in_count);
            const int other = u.direct[k] < 0 ? -1 : u.of[u.direct[k]];
            if (is_seen_through[i] || other < 0 || other == u.of[i]) continue;
            const bool apart = depends_apart(&u, is_seen_through, u.of[i], other);
            assert_true(cornu__units_join(&u, u.of[i], other) != apart);
            assert_true((u.of[i] == u.of[u.direct[k]]) != apart);
            *(apart ? &refused : &joined) += 1;
            expect_order(&u, is_seen_through);
        }
        cornu__units_free(&u);
        cornu_program_free(p);
    }
    assert_true(joined > 1000 && refused > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_joins_of_random_programs) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
