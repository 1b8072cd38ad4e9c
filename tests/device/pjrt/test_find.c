/* Where PJRT plugins are found, in folders made for the test; nothing is loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../device/host/machine/accelerators.h"
#include "../../../device/pjrt/plugin.h"
#include "../../datasets/files.h"
#include "../../expect.h"
#include "../../skip.h"

#define LAMMPS "/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"
#define OLD    "/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"
#define CUDA12 "/jax_plugins/xla_cuda12/xla_cuda_plugin.so"
#define CUDA13 "/jax_plugins/xla_cuda13/xla_cuda_plugin.so"
#define LIBTPU "/libtpu/libtpu.so"

/* All that the search reads; a user's own are unset. */
static const char *const variables[] = {
    "CORNU_PJRT", "TPU_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PATH", "HOME",
    "XDG_CACHE_HOME",
};
enum { VARIABLES = sizeof variables / sizeof *variables };
static char *saved[VARIABLES];

static int begin(void **state)
{
    for (int i = 0; i < VARIABLES; i++) {
        const char *value = getenv(variables[i]);
        saved[i] = value ? strdup(value) : NULL;
        unsetenv(variables[i]);
    }
    return files_begin(state);
}

static int end(void **state)
{
    for (int i = 0; i < VARIABLES; i++) {
        if (saved[i]) setenv(variables[i], saved[i], 1);
        else unsetenv(variables[i]);
        free(saved[i]);
    }
    return files_end(state);
}

/* An empty file in the temporary folder. */
static void make(const char *name) { files_write(files_path(folder, name), "", 0); }

static void set(const char *variable, const char *name)
{
    setenv(variable, *name ? files_path(folder, name) : folder, 1);
}

static void expect_found(const char *plugin, const char *name)
{
    char path[CORNU_PJRT_PATH];
    expect_ok(cornu__pjrt_find(plugin, path));
    assert_string_equal(path, files_path(folder, name));
}

static void expect_none(const char *plugin, const char *part)
{
    char path[CORNU_PJRT_PATH];
    expect_error(cornu__pjrt_find(plugin, path), CORNU_ERR_DEVICE, part);
}

/* Plugins in /usr and /usr/local cannot be hidden. */
static void skip_where_installed(void)
{
    char path[CORNU_PJRT_PATH];
    if (cornu__pjrt_find("cpu", path) == CORNU_OK || cornu__pjrt_find("cuda", path) == CORNU_OK ||
        cornu__pjrt_find("tpu", path) == CORNU_OK)
        SKIP_FOR("no plugin: a machine without one");
}

static void paths_are_taken_as_they_are(void **state)
{
    (void)state;
    static const char *const given[] = { "/opt/none/plugin", "./x", "x.so", "a/b.so" };
    char path[CORNU_PJRT_PATH];
    set("CORNU_PJRT", "none");
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        expect_ok(cornu__pjrt_find(given[i], path));
        assert_string_equal(path, given[i]);
    }
    char longest[CORNU_PJRT_PATH + 1] = { 0 };
    memset(longest, '/', CORNU_PJRT_PATH);
    expect_none(longest, "a plugin's path of 1024 characters");
}

static void virtual_environments_are_searched(void **state)
{
    (void)state;
    set("VIRTUAL_ENV", "env");
    make("env/lib/python3.11/site-packages" LAMMPS);
    expect_found("cpu", "env/lib/python3.11/site-packages" LAMMPS);
    make("env/lib/python3.11/site-packages" LIBTPU);
    expect_found("tpu", "env/lib/python3.11/site-packages" LIBTPU);
    unsetenv("VIRTUAL_ENV");
    set("CONDA_PREFIX", "env");
    expect_found("tpu", "env/lib/python3.11/site-packages" LIBTPU);
}

/* Numbers are compared as numbers. */
static void the_newest_counts(void **state)
{
    (void)state;
    skip_where_installed();
    set("VIRTUAL_ENV", "env");
    make("env/lib/python3.9/site-packages" CUDA12);
    make("env/lib/python3.11/site-packages" CUDA12);
    expect_found("cuda", "env/lib/python3.11/site-packages" CUDA12);
    make("env/lib/python3.11/site-packages" CUDA13);
    expect_found("cuda", "env/lib/python3.11/site-packages" CUDA13);
    set("XDG_CACHE_HOME", "cache");
    make("cache/cornu/pjrt/xla-cpu-pjrt-0.0.9" OLD);
    make("cache/cornu/pjrt/xla-cpu-pjrt-0.0.10" OLD);
    expect_found("cpu", "cache/cornu/pjrt/xla-cpu-pjrt-0.0.10" OLD);
    make("cache/cornu/pjrt/lammps-jax-pjrt-cpu-0.11.2" LAMMPS);   /* the preferred one */
    expect_found("cpu", "cache/cornu/pjrt/lammps-jax-pjrt-cpu-0.11.2" LAMMPS);
}

static void the_order_of_places(void **state)
{
    (void)state;
    skip_where_installed();
    set("HOME", "home");
    make("home/.cache/cornu/pjrt/a-1" LAMMPS);
    expect_found("cpu", "home/.cache/cornu/pjrt/a-1" LAMMPS);
    set("XDG_CACHE_HOME", "cache");                      /* instead of the one in HOME */
    make("cache/cornu/pjrt/a-1" LAMMPS);
    expect_found("cpu", "cache/cornu/pjrt/a-1" LAMMPS);
    setenv("XDG_CACHE_HOME", "relative", 1);             /* to be ignored */
    expect_found("cpu", "home/.cache/cornu/pjrt/a-1" LAMMPS);
    make("home/.local/lib/python3.9/site-packages" LAMMPS);
    expect_found("cpu", "home/.local/lib/python3.9/site-packages" LAMMPS);
    make("home/.pyenv/versions/3.12.1/lib/python3.12/site-packages" LAMMPS);
    expect_found("cpu", "home/.pyenv/versions/3.12.1/lib/python3.12/site-packages" LAMMPS);

    char path[3 * FILES_PATH], python[FILES_PATH];
    snprintf(python, sizeof python, "%s", files_path(folder, "python/bin/python3"));
    snprintf(path, sizeof path, "%s::relative:%s/", files_path(folder, "none"),
             files_path(folder, "python/bin"));
    setenv("PATH", path, 1);
    make("python/lib64/python3.10/dist-packages" LAMMPS);
    files_write(python, "", 0);                          /* no program yet */
    expect_found("cpu", "home/.pyenv/versions/3.12.1/lib/python3.12/site-packages" LAMMPS);
    assert_int_equal(chmod(python, 0755), 0);
    expect_found("cpu", "python/lib64/python3.10/dist-packages" LAMMPS);

    set("CONDA_PREFIX", "conda");
    make("conda/lib/python3.10/site-packages" LAMMPS);
    expect_found("cpu", "conda/lib/python3.10/site-packages" LAMMPS);
    set("VIRTUAL_ENV", "env");
    make("env/lib/python3.10/site-packages" LAMMPS);
    expect_found("cpu", "env/lib/python3.10/site-packages" LAMMPS);
    snprintf(path, sizeof path, "%s:%s", files_path(folder, "none"), files_path(folder, "path"));
    setenv("PYTHONPATH", path, 1);
    make("path" LAMMPS);
    expect_found("cpu", "path" LAMMPS);
    set("CORNU_PJRT", "own/");
    make("own" LAMMPS);
    expect_found("cpu", "own" LAMMPS);
}

/* A python3 of an environment is a link to another installation's. */
static void pythons_may_be_links(void **state)
{
    (void)state;
    set("PATH", "env/bin/");
    const char *real = files_path(folder, "real/bin/python3.11");
    files_write(real, "", 0);
    assert_int_equal(chmod(real, 0755), 0);
    assert_int_equal(symlink(real, files_path(folder, "env/bin/python3")), 0);
    make("real/lib/python3.11/site-packages" LIBTPU);
    expect_found("tpu", "real/lib/python3.11/site-packages" LIBTPU);
    make("env/lib/python3.11/site-packages" LIBTPU);
    expect_found("tpu", "env/lib/python3.11/site-packages" LIBTPU);
}

static void characters_of_patterns_are_plain(void **state)
{
    (void)state;
    skip_where_installed();
    set("VIRTUAL_ENV", "a[b]*c\\d?");
    make("a[b]*c\\d?/lib/python3.11/site-packages" LAMMPS);
    make("ab_c_d_/lib/python3.11/site-packages" LIBTPU);
    expect_found("cpu", "a[b]*c\\d?/lib/python3.11/site-packages" LAMMPS);
    set("VIRTUAL_ENV", "ab*");
    expect_none("tpu", "no PJRT plugin for tpu");
}

static void the_library_of_tpus(void **state)
{
    (void)state;
    skip_where_installed();
    set("VIRTUAL_ENV", "env");
    make("env/lib/python3.11/site-packages" LIBTPU);
    set("TPU_LIBRARY_PATH", "other/libtpu.so");
    expect_found("tpu", "other/libtpu.so");
    expect_none("cpu", "no PJRT plugin for cpu");
    set("CORNU_PJRT", "");
    expect_found("tpu", "other/libtpu.so");
    make("libtpu/libtpu.so");
    expect_found("tpu", "libtpu/libtpu.so");
}

/* A folder is not a library. */
static void only_files_count(void **state)
{
    (void)state;
    skip_where_installed();
    set("VIRTUAL_ENV", "env");
    make("env/lib/python3.11/site-packages" LIBTPU "/file");
    expect_none("tpu", "no PJRT plugin for tpu");
}

static void packages_in_the_namespace(void **state)
{
    (void)state;
    set("PYTHONPATH", "");
    make("jax_plugins/mine/util.so");
    expect_found("mine", "jax_plugins/mine/util.so");
    make("jax_plugins/mine/my_plugin.so");
    expect_found("mine", "jax_plugins/mine/my_plugin.so");
    make("jax_plugins/mine/libpjrt_plugin_mine.so");
    expect_found("mine", "jax_plugins/mine/libpjrt_plugin_mine.so");
    expect_none("min", "no PJRT plugin for min");
    expect_none("m*e", "no PJRT plugin for m*e");
}

static void write_metadata(const char *name, const char *text)
{
    files_write(files_path(folder, name), text, strlen(text));
}

static void entry_points_are_read(void **state)
{
    (void)state;
    set("VIRTUAL_ENV", "env");
#define PACKAGES "env/lib/python3.11/site-packages/"
    make(PACKAGES "their/device/libtheir.so");
    make(PACKAGES "wrong/libwrong.so");
    write_metadata(PACKAGES "a-1.0.dist-info/entry_points.txt",
                   "[console_scripts]\ntheirs = wrong:main\n");
    expect_none("theirs", "pip install the package that has it");
    write_metadata(PACKAGES "b-1.0.dist-info/entry_points.txt",
                   "theirs = wrong\n[console_scripts]\ntheirs = wrong:main\n\n"
                   "[jax_plugins]\r\nother = wrong\r\n theirs =  their.device:initialize [x]\r\n"
                   "[more]\ntheirs = wrong\n");
    expect_found("theirs", PACKAGES "their/device/libtheir.so");
    expect_found("other", PACKAGES "wrong/libwrong.so");
    expect_none("their", "no PJRT plugin for their");
    write_metadata(PACKAGES "b-1.0.dist-info/entry_points.txt",
                   "[jax_plugins]\ntheirs = /their\nother = ..wrong\nthird = none\n");
    expect_none("theirs", "no PJRT plugin for theirs");
    expect_none("other", "no PJRT plugin for other");
    expect_none("third", "no PJRT plugin for third");
    unlink(files_path(folder, PACKAGES "b-1.0.dist-info/entry_points.txt"));
    write_metadata(PACKAGES "c.egg-info/entry_points.txt", "[jax_plugins]\ntheirs=their.device");
    expect_found("theirs", PACKAGES "their/device/libtheir.so");
}

/* "pjrt" alone: what the hardware is there for. */
static void the_best_that_is_there(void **state)
{
    (void)state;
    skip_where_installed();
    set("PYTHONPATH", "");
    make(&LAMMPS[1]);
    expect_found("", &LAMMPS[1]);
    make(&CUDA12[1]);
    make(&LIBTPU[1]);
    expect_found("", cornu__has_tpu()   ? &LIBTPU[1]
                     : cornu__has_gpu() ? &CUDA12[1] : &LAMMPS[1]);
    make("mine.plugin");
    set("CORNU_PJRT", "mine.plugin");
    expect_found("", "mine.plugin");
    expect_found("cuda", &CUDA12[1]);       /* it is not for names */
    set("CORNU_PJRT", "none");
    expect_none("", "/none, which does not exist");
    expect_none("cpu", "/none, which does not exist");
}

static void messages_say_what_to_do(void **state)
{
    (void)state;
    skip_where_installed();
    set("VIRTUAL_ENV", "env");
    expect_none("cuda", "no PJRT plugin for cuda; install one (pip install \"jax[cuda12]\")");
    expect_none("cpu", "`make deps-pjrt`");
    expect_none("tpu", "(pip install libtpu)");
    expect_none("", "no PJRT plugin; install one");
    expect_none("", "set CORNU_PJRT to a folder of packages or a library");
    expect_none("cpu", files_path(folder, "env/lib*/python3*/*-packages, "));
    assert_null(strstr(cornu_error_message(), ".cache"));     /* no HOME */
    set("HOME", "home");
    expect_none("cpu", files_path(folder, "home/.cache/cornu/pjrt/*"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(paths_are_taken_as_they_are),
        TEST(virtual_environments_are_searched),
        TEST(the_newest_counts),
        TEST(the_order_of_places),
        TEST(pythons_may_be_links),
        TEST(characters_of_patterns_are_plain),
        TEST(the_library_of_tpus),
        TEST(only_files_count),
        TEST(packages_in_the_namespace),
        TEST(entry_points_are_read),
        TEST(the_best_that_is_there),
        TEST(messages_say_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
