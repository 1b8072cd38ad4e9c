/* Loading and calling PJRT plugins, with faults: plugins are compiled here from fake.toy, if
 * there is a compiler and the test is not emulated. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../device/host/machine/accelerators.h"
#include "../../../device/pjrt/plugin.h"
#include "../../datasets/files.h"
#include "../../expect.h"
#include "toys.h"
#include "../../skip.h"

/* The path of a library that is compiled from fake.toy with these options. */
static const char *compiled(const char *name, const char *options)
{
    return toy_compiled("fake.toy", name, options);
}

static const CornuPjrtPlugin *loaded(const char *path)
{
    const CornuPjrtPlugin *plugin = NULL;
    expect_ok(cornu__pjrt_load(path, &plugin));
    assert_non_null(plugin);
    assert_string_equal(plugin->path, path);
    return plugin;
}

/* The message names the library. */
static void expect_unusable(const char *path, const char *part)
{
    const CornuPjrtPlugin *plugin;
    expect_error(cornu__pjrt_load(path, &plugin), CORNU_ERR_DEVICE, part);
    assert_non_null(strstr(cornu_error_message(), path));
}

/* A variable of the plugin. */
static int value_of(const char *path, const char *name)
{
    return *(const int *)toy_variable(path, name);
}

/* ---- Loading ---- */

static void versions_are_told(void **state)
{
    (void)state;
    assert_string_equal(loaded(compiled("a.so", ""))->versions, "API 0.81, StableHLO 1.13.3");
    assert_string_equal(loaded(compiled("b.so", "-DMINOR=57"))->versions,
                        "API 0.57, StableHLO 1.13.3");
    assert_string_equal(loaded(compiled("c.so", "-DOTHER_ATTRIBUTES"))->versions, "API 0.81");
    assert_string_equal(loaded(compiled("d.so", "-DABSENT=PJRT_PLUGIN_ATTRIBUTES"))->versions,
                        "API 0.81");
    const char *path = compiled("e.so", "-DNO_ATTRIBUTES -DMINOR=120 -DSIZE=2000");
    assert_string_equal(loaded(path)->versions, "API 0.120");
    assert_int_equal(value_of(path, "fake_errors"), 0);
}

/* Also under another name, or relative to the current folder. */
static void a_library_is_loaded_once(void **state)
{
    (void)state;
    char                   path[FILES_PATH], link[FILES_PATH], here[FILES_PATH];
    const CornuPjrtPlugin *again;
    snprintf(path, sizeof path, "%s", compiled("once.so", ""));
    snprintf(link, sizeof link, "%s", files_path(folder, "link.so"));
    const CornuPjrtPlugin *plugin = loaded(path);
    assert_ptr_equal(loaded(path), plugin);
    assert_int_equal(symlink(path, link), 0);
    expect_ok(cornu__pjrt_load(link, &again));
    assert_ptr_equal(again, plugin);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder), 0);
    expect_ok(cornu__pjrt_load("once.so", &again));
    assert_int_equal(chdir(here), 0);
    assert_ptr_equal(again, plugin);
    assert_int_equal(value_of(path, "fake_initialized"), 1);
    assert_ptr_not_equal(loaded(compiled("other.so", "")), plugin);
}

static void *load_in_thread(void *path)
{
    const CornuPjrtPlugin *plugin;
    return cornu__pjrt_load(path, &plugin) == CORNU_OK ? (void *)plugin : NULL;
}

static void threads_load_it_once(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    char      path[FILES_PATH];
    pthread_t threads[THREADS];
    void     *plugin[THREADS];
    snprintf(path, sizeof path, "%s", compiled("threads.so", "-DSLOW"));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load_in_thread, path), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], &plugin[i]);
    for (int i = 0; i < THREADS; i++) assert_ptr_equal(plugin[i], loaded(path));
    assert_int_equal(value_of(path, "fake_initialized"), 1);
}

static void files_that_are_no_plugins(void **state)
{
    (void)state;
    static const char text[] = "This is no library. It is long enough to have an ELF header, if "
                               "it were one.";
    const char *path = files_path(folder, "none.so");
    expect_unusable(path, "No such file");
    path = files_path(folder, "x.so");
    files_write(path, text, sizeof text);
    expect_unusable(path, "invalid ELF header");
    files_write(path, "", 0);
    expect_unusable(path, "cannot be loaded: ");
    expect_unusable(folder, "cannot be loaded: ");
    expect_unusable(compiled("symbol.so", "-DNO_SYMBOL"), "is not a PJRT plugin: ");
    assert_non_null(strstr(cornu_error_message(), "GetPjrtApi"));
    expect_unusable(compiled("null.so", "-DNULL_TABLE"), "GetPjrtApi returns NULL");
    char long_path[2 * CORNU_PJRT_PATH] = { 0 };
    memset(long_path, '/', sizeof long_path - 1);
    const CornuPjrtPlugin *plugin;
    expect_error(cornu__pjrt_load(long_path, &plugin), CORNU_ERR_DEVICE, "path of 2047 characters");
}

/* Nothing of them is called. */
static void other_versions_are_refused(void **state)
{
    (void)state;
    const char *path = compiled("54.so", "-DMINOR=54 -DSIZE=888");
    expect_unusable(path, "has version 0.54 of the PJRT API, expected 0.57 or a later 0.x; install "
                    "a newer plugin");
    assert_int_equal(value_of(path, "fake_initialized"), 0);
    expect_unusable(path, "has version 0.54");
    path = compiled("major.so", "-DMAJOR=1");
    expect_unusable(path, "has version 1.81 of the PJRT API, expected 0.57 or a later 0.x; install "
                    "an older plugin");
    assert_int_equal(value_of(path, "fake_initialized"), 0);
}

static void short_tables_are_refused(void **state)
{
    (void)state;
    expect_unusable(compiled("a.so", "-DSIZE=0"), "a table of 0 bytes");
    expect_unusable(compiled("b.so", "-DSIZE=39"), "a table of 39 bytes");
    expect_unusable(compiled("c.so", "-DSIZE=40"), "API 0.81 has no PJRT_Error_Destroy");
    expect_unusable(compiled("d.so", "-DSIZE=71"), "has no PJRT_Plugin_Initialize");
    expect_unusable(compiled("e.so", "-DABSENT=PJRT_ERROR_MESSAGE"), "has no PJRT_Error_Message");
    loaded(compiled("f.so", "-DSIZE=72"));
}

/* It is tried again: a driver may have been installed. */
static void initializing_fails(void **state)
{
    (void)state;
    const char *path = compiled("a.so", "-DINITIALIZE=14");
    expect_unusable(path, "pjrt: PJRT_Plugin_Initialize: 14 UNAVAILABLE: no\\x1b[31mdriver");
    expect_unusable(path, "14 UNAVAILABLE");
    assert_int_equal(value_of(path, "fake_initialized"), 2);
    assert_int_equal(value_of(path, "fake_errors"), 0);
}

/* The last test: those before it have loaded some. */
static void there_are_at_most_32(void **state)
{
    (void)state;
    static char            library[100000];
    const CornuPjrtPlugin *plugin;
    const size_t size = files_read(compiled("a.so", ""), library, sizeof library);
    int          count = 0;
    char         name[FILES_PATH];
    CornuStatus  status = CORNU_OK;
    for (; status == CORNU_OK && count < 40; count++) {
        snprintf(name, sizeof name, "%d.so", count);
        const char *path = files_path(folder, name);
        files_write(path, library, size);
        status = cornu__pjrt_load(path, &plugin);
    }
    expect_error(status, CORNU_ERR_DEVICE, "more than 32 plugins in a process");
    assert_in_range(count, 2, 33);
    expect_ok(cornu__pjrt_load(files_path(folder, "0.so"), &plugin));
}

/* ---- Calling ---- */

static CornuStatus compile(const CornuPjrtPlugin *plugin, PjrtFunctionId id, int code,
                           const char *message, size_t size)
{
    const PjrtProgram program = PJRT_ARGUMENTS(PjrtProgram, .code_size = (size_t)code);
    PjrtClientCompile arguments = PJRT_ARGUMENTS(PjrtClientCompile, .program = &program,
                                                 .options = message, .options_size = size);
    return cornu__pjrt_call(plugin, id, &arguments);
}

static void errors_have_the_plugins_words(void **state)
{
    (void)state;
    static const struct { int code; CornuStatus status; const char *name; } codes[] = {
        { 1, CORNU_ERR_DEVICE, "1 CANCELLED" },
        { PJRT_INVALID_ARGUMENT, CORNU_ERR_DEVICE, "3 INVALID_ARGUMENT" },
        { PJRT_NOT_FOUND, CORNU_ERR_DEVICE, "5 NOT_FOUND" },
        { PJRT_RESOURCE_EXHAUSTED, CORNU_ERR_MEMORY, "8 RESOURCE_EXHAUSTED" },
        { PJRT_UNIMPLEMENTED, CORNU_ERR_UNSUPPORTED, "12 UNIMPLEMENTED" },
        { PJRT_INTERNAL, CORNU_ERR_DEVICE, "13 INTERNAL" },
        { PJRT_UNAVAILABLE, CORNU_ERR_DEVICE, "14 UNAVAILABLE" },
        { 16, CORNU_ERR_DEVICE, "16 UNAUTHENTICATED" },
        { 17, CORNU_ERR_DEVICE, "17 unknown code" },
        { -1, CORNU_ERR_DEVICE, "-1 unknown code" },
        { 99, CORNU_ERR_DEVICE, "99 unknown code" },   /* and getting it fails */
    };
    char                   path[FILES_PATH], expected[200], words[2000];
    snprintf(path, sizeof path, "%s", compiled("a.so", ""));
    const CornuPjrtPlugin *plugin = loaded(path);
    expect_ok(compile(plugin, PJRT_CLIENT_COMPILE, 0, "", 0));
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        snprintf(expected, sizeof expected, "pjrt: PJRT_Client_Compile: %s: the words",
                 codes[i].name);
        expect_error(compile(plugin, PJRT_CLIENT_COMPILE, codes[i].code, "the words, not all", 9),
                     codes[i].status, expected);
        assert_null(strstr(cornu_error_message(), "not all"));
    }
    expect_error(compile(plugin, PJRT_CLIENT_COMPILE, 13, "\033[1m\a\177two\nlines", 15),
                 CORNU_ERR_DEVICE, "INTERNAL: \\x1b[1m\\x07\\x7ftwo\nlines");
    expect_error(compile(plugin, PJRT_CLIENT_COMPILE, 13, "", 0), CORNU_ERR_DEVICE, "INTERNAL: ");
    memset(words, 'w', sizeof words);
    expect_error(compile(plugin, PJRT_CLIENT_COMPILE, 13, words, sizeof words), CORNU_ERR_DEVICE,
                 "INTERNAL: wwwwwwww");
    assert_int_equal(value_of(path, "fake_errors"), 0);
}

/* Those that are absent, or beyond the end of the table. */
static void absent_functions_are_not_called(void **state)
{
    (void)state;
    const CornuPjrtPlugin *plugin = loaded(compiled("a.so", "-DSIZE=40+8*PJRT_COMPILE+7"));
    assert_false(cornu__pjrt_has(plugin, PJRT_COMPILE));
    assert_true(cornu__pjrt_has(plugin, PJRT_CLIENT_COMPILE));
    assert_false(cornu__pjrt_has(plugin, PJRT_CLIENT_CREATE));
    expect_error(compile(plugin, PJRT_COMPILE, 0, "", 0), CORNU_ERR_UNSUPPORTED,
                 "pjrt: the plugin (API 0.81) has no PJRT_Compile");
    expect_error(compile(plugin, PJRT_CLIENT_CREATE, 0, "", 0), CORNU_ERR_UNSUPPORTED,
                 "has no PJRT_Client_Create");
    plugin = loaded(compiled("b.so", "-DSIZE=40+8*PJRT_COMPILE+8"));
    assert_true(cornu__pjrt_has(plugin, PJRT_COMPILE));
    expect_ok(compile(plugin, PJRT_COMPILE, 0, "", 0));
}

/* buffer: not NULL for an event with an error. */
static PjrtEvent *event_of(const CornuPjrtPlugin *plugin, void *buffer)
{
    PjrtBufferReady ready = PJRT_ARGUMENTS(PjrtBufferReady, .buffer = buffer);
    expect_ok(cornu__pjrt_call(plugin, PJRT_BUFFER_READY_EVENT, &ready));
    return ready.event;
}

static void events_are_destroyed(void **state)
{
    (void)state;
    char path[FILES_PATH];
    snprintf(path, sizeof path, "%s", compiled("a.so", ""));
    const CornuPjrtPlugin *plugin = loaded(path);
    expect_ok(cornu__pjrt_await(plugin, NULL));
    expect_ok(cornu__pjrt_await(plugin, event_of(plugin, NULL)));
    assert_int_equal(value_of(path, "fake_events"), 0);
    expect_error(cornu__pjrt_await(plugin, event_of(plugin, path)), CORNU_ERR_DEVICE,
                 "pjrt: PJRT_Event_Await: 13 INTERNAL: late");
    assert_null(strstr(cornu_error_message(), "later"));
    assert_int_equal(value_of(path, "fake_events"), 0);
    assert_int_equal(value_of(path, "fake_errors"), 0);
}

/* ---- Variables that plugins read ---- */

/* Unless the user has decided. */
static void plugins_tell_errors_only(void **state)
{
    (void)state;
    unsetenv("TF_CPP_MIN_LOG_LEVEL");
    loaded(compiled("other.so", ""));
    assert_string_equal(getenv("TF_CPP_MIN_LOG_LEVEL"), "2");
    setenv("TF_CPP_MIN_LOG_LEVEL", "0", 1);
    loaded(compiled("another.so", ""));
    assert_string_equal(getenv("TF_CPP_MIN_LOG_LEVEL"), "0");
}

/* libtpu is told what it would ask the cloud, unless there may be a TPU or the user has decided. */
static void without_a_tpu_the_cloud_is_not_asked(void **state)
{
    (void)state;
    static const char *const variables[][2] = { { "TPU_SKIP_MDS_QUERY", "1" },
                                                { "TPU_WORKER_HOSTNAMES", "localhost" },
                                                { "TPU_ACCELERATOR_TYPE", "v3-8" } };
    enum { COUNT = sizeof variables / sizeof *variables };
    if (cornu__has_tpu()) SKIP_FOR("no TPU: a machine without one");
    for (int i = 0; i < COUNT; i++) unsetenv(variables[i][0]);
    loaded(compiled("other.so", ""));
    for (int i = 0; i < COUNT; i++) assert_null(getenv(variables[i][0]));
    loaded(compiled("libtpu.so", ""));
    for (int i = 0; i < COUNT; i++)
        assert_string_equal(getenv(variables[i][0]), variables[i][1]);
    for (int i = 0; i < COUNT; i++) setenv(variables[i][0], "0", 1);
    loaded(compiled("libtpu/libtpu.so", ""));
    for (int i = 0; i < COUNT; i++) assert_string_equal(getenv(variables[i][0]), "0");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_begin, files_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(versions_are_told),
        TEST(a_library_is_loaded_once),
        TEST(threads_load_it_once),
        TEST(files_that_are_no_plugins),
        TEST(other_versions_are_refused),
        TEST(short_tables_are_refused),
        TEST(initializing_fails),
        TEST(errors_have_the_plugins_words),
        TEST(absent_functions_are_not_called),
        TEST(events_are_destroyed),
        TEST(plugins_tell_errors_only),
        TEST(without_a_tpu_the_cloud_is_not_asked),
        TEST(there_are_at_most_32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
