#include "isas.h"
#include "../skip.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_TESTS = 32 };

bool isa_present(CornuIsa isa) { return isa <= cornu__cpu()->best; }

/* Kernels that no device is opened for follow only when they are told. */
bool isa_take(CornuIsa isa)
{
    CornuIsa taken;
    if (!isa_present(isa)) return false;
    setenv("CORNU_ISA", cornu__isa_name(isa), 1);
    return cornu__cpu_isa(&taken) == CORNU_OK && taken == isa;
}

static void lacking(void **state)
{
    (void)state;
    SKIP_FOR(SKIP_ISA);
}

int isa_run_group(const char *name, CornuIsa isa, const struct CMUnitTest *tests, size_t count)
{
    struct CMUnitTest named[MOST_TESTS];
    char              names[MOST_TESTS][96], group[64];
    if (count > MOST_TESTS) {
        fprintf(stderr, "%zu tests, expected at most %d\n", count, MOST_TESTS);
        return 1;
    }
    snprintf(group, sizeof group, "%s%s%s", name, *name ? " " : "", cornu__isa_name(isa));
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%s: %s", group, tests[i].name);
        named[i] = isa_present(isa) ? tests[i] : (struct CMUnitTest){ .test_func = lacking };
        named[i].name = names[i];
    }
    if (isa_present(isa) && !isa_take(isa)) return 1;
    return _cmocka_run_group_tests(group, named, count, NULL, NULL);
}

/* ---- Several sets in one test ---- */

static int64_t counts[CORNU_ISA_COUNT];

bool isa_begin(CornuIsa isa)
{
    if (!isa_present(isa)) return false;
    counts[isa]++;
    return true;
}

static void was_counted(void **state)
{
    const CornuIsa isa = *(const CornuIsa *)*state;
    if (!isa_present(isa)) SKIP_FOR(SKIP_ISA);
    print_message("%s: %lld comparisons\n", cornu__isa_name(isa), (long long)counts[isa]);
    assert_true(counts[isa] > 0);
}

int isas_run_counted(CornuIsa last)
{
    CornuIsa isas[CORNU_ISA_COUNT];
    int      failed = 0;
    for (int i = 0; i <= (int)last; i++) {
        isas[i] = (CornuIsa)i;
        const struct CMUnitTest test = { .name = cornu__isa_name(isas[i]),
                                         .test_func = was_counted, .initial_state = &isas[i] };
        failed += _cmocka_run_group_tests("instruction sets", &test, 1, NULL, NULL);
    }
    return failed;
}
