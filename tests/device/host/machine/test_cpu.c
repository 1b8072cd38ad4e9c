#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../../device/host/machine/cpu.h"

static void test_facts(void **state)
{
    (void)state;
    const CornuCpu *cpu = cornu__cpu();
    assert_true(strlen(cpu->name) > 0);
    assert_true(cpu->best < CORNU_ISA_COUNT);
    assert_in_range(cpu->l1d, 4 << 10, 1 << 20);
    assert_true(cpu->l2 >= cpu->l1d);
    assert_true(cpu->l3 >= 0);
    assert_true(cornu__cpu_threads() >= 1);
    assert_ptr_equal(cpu, cornu__cpu());
}

/* A lowered choice must not leak into the tests that follow. */
static void choose_isa(const char *name)
{
    if (name) setenv("CORNU_ISA", name, 1);
    else unsetenv("CORNU_ISA");
}

static void test_isa_lowers(void **state)
{
    (void)state;
    const char *kept = getenv("CORNU_ISA");
    char       *before = kept ? strdup(kept) : NULL;
    CornuIsa    isa;

    choose_isa(NULL);
    assert_int_equal(cornu__cpu_isa(&isa), CORNU_OK);
    assert_int_equal(isa, cornu__cpu()->preferred);
    assert_true(isa <= cornu__cpu()->best);
    for (int i = 0; i < CORNU_ISA_COUNT; i++) {
        const char *name = cornu__isa_name((CornuIsa)i);
        choose_isa(name);
        if (i <= (int)cornu__cpu()->best) {
            assert_int_equal(cornu__cpu_isa(&isa), CORNU_OK);
            assert_int_equal(isa, i);
        } else {
            assert_int_equal(cornu__cpu_isa(&isa), CORNU_ERR_DEVICE);
            assert_non_null(strstr(cornu_error_message(), name));
            assert_non_null(strstr(cornu_error_message(), cornu__cpu()->name));
        }
    }
    choose_isa("sse9");
    assert_int_equal(cornu__cpu_isa(&isa), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "sse9"));
    assert_non_null(strstr(cornu_error_message(), "expected portable"));

    choose_isa(before);
    free(before);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* A tree of cgroups in the current folder, and the quota found in it. */
static int quota_of(const char *membership)
{
    write_file("membership", membership);
    return cornu__cpu_quota("membership", ".");
}

static void test_cgroup_quota(void **state)
{
    (void)state;
    char home[4096], folder[] = "/tmp/cornu-test-XXXXXX";
    assert_non_null(getcwd(home, sizeof home));
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);

    assert_int_equal(cornu__cpu_quota("nothing", "."), INT_MAX);
    assert_int_equal(quota_of("0::/\n"), INT_MAX);

    /* version 2: the least of all levels, rounded up */
    mkdir("a", 0700), mkdir("a/b", 0700);
    write_file("a/b/cpu.max", "max 100000\n");
    assert_int_equal(quota_of("0::/a/b\n"), INT_MAX);
    write_file("a/cpu.max", "250000 100000\n");
    assert_int_equal(quota_of("0::/a/b\n"), 3);
    write_file("a/b/cpu.max", "50000 100000\n");
    assert_int_equal(quota_of("0::/a/b\n"), 1);
    assert_int_equal(quota_of("0::/a\n"), 3);
    assert_int_equal(quota_of("0::/\n"), INT_MAX);

    /* version 1, the group's folder not visible from inside a container */
    mkdir("cpu", 0700);
    write_file("cpu/cpu.cfs_period_us", "100000\n");
    write_file("cpu/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(quota_of("3:cpuset:/x\n2:cpu,cpuacct:/x\n"), INT_MAX);
    write_file("cpu/cpu.cfs_quota_us", "400000\n");
    assert_int_equal(quota_of("3:cpuset:/x\n2:cpu,cpuacct:/x/y\n"), 4);
    assert_int_equal(quota_of("3:cpuset:/x\n"), INT_MAX);
    assert_int_equal(quota_of("nonsense\n"), INT_MAX);

    const char *const files[] = {
        "membership", "a/b/cpu.max", "a/cpu.max", "a/b", "a",
        "cpu/cpu.cfs_period_us", "cpu/cpu.cfs_quota_us", "cpu",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) remove(files[i]);
    assert_int_equal(chdir(home), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_isa_lowers),
        cmocka_unit_test(test_cgroup_quota),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
