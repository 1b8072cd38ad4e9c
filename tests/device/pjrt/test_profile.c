/* Runs timed by the profiler of a plugin: of one that computes nothing, and of one for processors
 * that is given a profiler here. */
#define _XOPEN_SOURCE 700
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../device/log.h"
#include "../../../device/pjrt/client.h"
#include "../../../device/pjrt/profile.h"
#include "../../../nn/training/trace.h"
#include "../../datasets/files.h"
#include "../../expect.h"
#include "../programs.h"
#include "opened.h"
#include "spaces.h"
#include "toys.h"

/* ---- What is collected, and what is said of it ---- */

/* A module of so many picoseconds on each of `count` devices. */
static Space space_of(int count, const int64_t *picoseconds)
{
    Space space = { .size = 0 };
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "/device:TPU:%d", i);
        Space plane = space_plane(i, name), line = space_line("XLA Modules", 1700000000000000000);
        space_event(&line, 5000, picoseconds[i]);
        space_add_line(&plane, &line);
        space_add_plane(&space, &plane);
    }
    space.bytes[space.size++] = 0;
    return space;
}

static char path[FILES_PATH];   /* of the plugin */

static int *number(const char *name) { return toy_variable(path, name); }

static void give(const Space *space, const char *fails)
{
    *(const void **)toy_variable(path, "fake_profile") = space->bytes;
    *number("fake_profile_size") = (int)space->size;
    *(const char **)toy_variable(path, "fake_profiler_fails") = fails;
}

static void expect_nothing_left(void)
{
    assert_int_equal(*number("fake_profilers"), 0);
    assert_int_equal(*number("fake_profiler_errors"), 0);
}

static char said[1000];   /* all warnings */

static void hear(void *context, CornuLogLevel level, const char *message)
{
    (void)context;
    if (level > CORNU_LOG_WARNING) return;
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", message);
}

static void expect_said(const char *text)
{
    if (strcmp(said, text) != 0) fail_msg("said \"%s\", expected \"%s\"", said, text);
    *said = '\0';
}

static int begin(void **state)
{
    *said = '\0';
    cornu_set_log(CORNU_LOG_WARNING, hear, NULL);
    setenv("CORNU_PJRT_CACHE", "off", 1);
    return files_begin(state);
}

static int end(void **state)
{
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
    return files_end(state);
}

/* ---- A plugin that computes nothing ---- */

static const CornuPjrtPlugin *load(const char *options)
{
    const CornuPjrtPlugin *plugin = NULL;
    snprintf(path, sizeof path, "%s", toy_compiled("fake.toy", "fake.so", options));
    expect_ok(cornu__pjrt_load(path, &plugin));
    return plugin;
}

/* Profiles nothing, in at most a millisecond. */
static bool profile(const CornuPjrtPlugin *plugin, int shards, double *seconds)
{
    CornuPjrtProfile profile;
    return cornu__pjrt_profile_start(&profile, plugin) &&
           cornu__pjrt_profile_stop(&profile, shards, 1e-3, seconds);
}

static void times_are_those_of_the_profile(void **state)
{
    (void)state;
    double      seconds[2] = { 0 };
    const Space space = space_of(2, (const int64_t[]){ 300000000, 20000000 });
    const CornuPjrtPlugin *plugin = load("-DPROFILER -DOTHERS_FIRST");
    for (int copies = 0; copies < 2; copies++) {
        give(&space, "");
        *number("fake_profile_copies") = copies;
        assert_true(profile(plugin, 2, seconds));
        assert_true(fabs(seconds[0] - 3e-4) < 1e-12 && fabs(seconds[1] - 2e-5) < 1e-12);
        expect_nothing_left();
    }
    assert_int_equal(*number("fake_profilers_created"), 2);
    give(&space, "destroy");   /* the times are there */
    assert_true(profile(plugin, 2, seconds));
    expect_nothing_left();
}

static void a_failing_profiler_is_told(void **state)
{
    (void)state;
    double                 seconds[1];
    const Space            space = space_of(1, (const int64_t[]){ 1000000 });
    const CornuPjrtPlugin *plugin = load("-DPROFILER");
    *number("fake_profile_copies") = 1;
    static const struct { const char *call, *name; } calls[] = {
        { "create", "create" }, { "start", "start" }, { "stop", "stop" }, { "collect", "collect" },
        { "collect again", "collect" },
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char expected[100];
        give(&space, calls[i].call);
        assert_false(profile(plugin, 1, seconds));
        snprintf(expected, sizeof expected, "pjrt: the profiler's %s: it is in use; steps are "
                 "timed by wall clock\n", calls[i].name);
        expect_said(expected);
        expect_nothing_left();
    }
    assert_int_equal(cornu_error_status(), CORNU_OK);
}

static void doubtful_times_are_not_taken(void **state)
{
    (void)state;
    double                 seconds[2];
    const CornuPjrtPlugin *plugin = load("-DPROFILER");
    Space                  space = space_of(2, (const int64_t[]){ 1000000, 2000000 });
    give(&space, "");
    assert_false(profile(plugin, 1, seconds));
    expect_said("pjrt: the profile has times of 2 devices, expected 1; steps are timed by wall "
                "clock\n");
    space = (Space){ .size = 1 };   /* as a plugin without its device collects */
    give(&space, "");
    assert_false(profile(plugin, 1, seconds));
    expect_said("pjrt: the profile has times of 0 devices, expected 1; steps are timed by wall "
                "clock\n");
    space.size = 0;
    give(&space, "");
    assert_false(profile(plugin, 1, seconds));
    expect_said("pjrt: the profile has times of 0 devices, expected 1; steps are timed by wall "
                "clock\n");
    space = space_of(2, (const int64_t[]){ 1000000, 2000000000 });
    give(&space, "");
    assert_false(profile(plugin, 2, seconds));
    expect_said("pjrt: by the profile device 1 took 0.002 s of a run of 0.001 s; steps are timed "
                "by wall clock\n");
    space = space_of(2, (const int64_t[]){ 0, 1000000 });
    give(&space, "");
    assert_false(profile(plugin, 2, seconds));
    expect_said("pjrt: by the profile device 0 took 0 s of a run of 0.001 s; steps are timed by "
                "wall clock\n");
    memset(space.bytes, 0xa5, sizeof space.bytes);
    give(&space, "");
    assert_false(profile(plugin, 2, seconds));
    expect_said("pjrt: the profile is damaged; steps are timed by wall clock\n");
    expect_nothing_left();
}

/* Of which nothing is said: most plugins for processors are so. */
static void plugins_without_a_profiler(void **state)
{
    (void)state;
    double seconds[1];
    for (const char *const *options = (const char *const[]){
             "", "-DPROFILER -DEXTENSION_SIZE=31", "-DPROFILER -DTABLE_SIZE=79", NULL }; *options;
         options++) {
        assert_false(profile(load(*options), 1, seconds));
        expect_said("");
        files_end(NULL), files_begin(NULL);   /* another library, so another path */
    }
}

/* ---- A plugin that computes, with a profiler of ours ---- */

static CornuDevice *open_profiled(int shards)
{
    char name[FILES_PATH + 8];
    CornuDevice *device = pjrt_open(1);   /* or skip */
    setenv("CORNU_TEST_PLUGIN", cornu__pjrt_of(device)->plugin->path, 1);
    cornu_device_close(device);
    snprintf(path, sizeof path, "%s", toy_compiled("profiled.toy", "profiled.so", ""));
    snprintf(name, sizeof name, "pjrt:%s", path);
    device = cornu_device_open(name, .shards = shards, .threads = 2);
    if (!device) fail_msg("%s", cornu_error_message());
    return device;
}

static Compiled compile_sine(CornuDevice *device, CornuProgram *program)
{
    CornuValue x = input(program, cornu_type(CORNU_F32, 64));
    output(program, op1(program, CORNU_OP_SIN, x), 0);
    Compiled compiled = compile(device, program);
    set_inputs(&compiled, 1);
    return compiled;
}

/* The event of each shard, after a run. */
static const CornuStepEvent *timed(const Compiled *compiled, CornuStepEvent events[4])
{
    assert_int_equal(cornu_executable_event_count(compiled->executable),
                     2 * cornu_device_shards(compiled->device));
    cornu_executable_record(compiled->executable, events);
    run((Compiled *)(uintptr_t)compiled);
    cornu_executable_record(compiled->executable, NULL);
    return events;
}

static void close_all(Compiled *compiled, CornuProgram *program)
{
    CornuDevice *device = compiled->device;
    release(compiled);
    cornu_device_close(device);
    cornu_program_free(program);
}

static void runs_have_the_times_of_the_device(void **state)
{
    (void)state;
    CornuProgram  *program = cornu_program_create();
    Compiled       compiled = compile_sine(open_profiled(2), program);
    const Space    space = space_of(2, (const int64_t[]){ 2000000, 1000000 });
    CornuStepEvent events[4];
    give(&space, "");
    for (int i = 1; i <= 2; i++) {
        timed(&compiled, events);
        assert_true(fabs(events[0].end_s - events[0].begin_s - 2e-6) < 1e-9);
        assert_true(fabs(events[2].end_s - events[2].begin_s - 1e-6) < 1e-9);
        assert_true(events[0].end_s == events[2].end_s);
        assert_int_equal(events[0].clock, CORNU_CLOCK_DEVICE);
        assert_int_equal(events[2].clock, CORNU_CLOCK_DEVICE);
        double share;   /* shards run at the same time: that of the longest */
        cornu_executable_shares(compiled.executable, events, &share);
        assert_true(fabs(share - 2e-6) < 1e-9);
        assert_int_equal(*number("fake_profilers_created"), i);
    }
    run(&compiled);   /* not recorded */
    assert_int_equal(*number("fake_profilers_created"), 2);
    expect_nothing_left();
    expect_said("");
    close_all(&compiled, program);
}

/* It is not an error, and the profiler is not tried again. */
static void a_failure_leaves_wall_clock(void **state)
{
    (void)state;
    const Space good = space_of(1, (const int64_t[]){ 1000000 });
    const Space late = space_of(1, (const int64_t[]){ 9000000000000 });   /* 9 s */
    Space       garbage = good;
    memset(garbage.bytes, 0x5a, garbage.size);
    const struct { const Space *space; const char *fails; } table[] = {
        { &good, "create" }, { &good, "start" }, { &good, "stop" }, { &good, "collect" },
        { &late, "" }, { &garbage, "" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        CornuProgram  *program = cornu_program_create();
        Compiled       compiled = compile_sine(open_profiled(1), program);
        CornuStepEvent events[4];
        give(table[i].space, table[i].fails);
        timed(&compiled, events);
        assert_int_equal(events[0].clock, CORNU_CLOCK_WALL);
        assert_true(events[0].begin_s > 0.0 && events[0].end_s - events[0].begin_s > 1e-9);
        expect_nothing_left();
        assert_non_null(strstr(said, "; steps are timed by wall clock\n"));
        *said = '\0';
        give(&good, "");
        const int created = *number("fake_profilers_created");
        assert_int_equal(timed(&compiled, events)->clock, CORNU_CLOCK_WALL);
        assert_int_equal(*number("fake_profilers_created"), created);
        expect_said("");
        close_all(&compiled, program);
        files_end(NULL), files_begin(NULL);
    }
}

/* ---- Traces ---- */

static void expect_traced(const Compiled *compiled, const char *clock)
{
    static char text[20000];
    char        expected[100], file[FILES_PATH];
    snprintf(file, sizeof file, "%s", files_path(folder, "trace.json"));
    CornuTrace *trace = cornu_trace_create();
    expect_ok(cornu_trace_run(trace, compiled->executable));
    run((Compiled *)(uintptr_t)compiled);
    cornu_trace_phase(trace, NULL);
    expect_ok(cornu_trace_write(trace, file));
    cornu_trace_free(trace);
    text[files_read(file, text, sizeof text - 1)] = '\0';
    snprintf(expected, sizeof expected, "| steps timed by %s\"", clock);
    if (!strstr(text, expected)) fail_msg("no %s in %s", expected, text);
    snprintf(expected, sizeof expected, "\"clock\": \"%s\"", clock);
    if (!strstr(text, expected)) fail_msg("no %s in %s", expected, text);
}

static void a_trace_says_who_measured(void **state)
{
    (void)state;
    CornuProgram *program = cornu_program_create();
    Compiled      compiled = compile_sine(pjrt_open(1), program);
    expect_traced(&compiled, "wall clock");
    close_all(&compiled, program);
    program = cornu_program_create();
    compiled = compile_sine(open_profiled(1), program);
    const Space space = space_of(1, (const int64_t[]){ 1000000 });
    give(&space, "");
    expect_traced(&compiled, "device profiler");
    close_all(&compiled, program);
    expect_said("");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(times_are_those_of_the_profile),
        TEST(a_failing_profiler_is_told),
        TEST(doubtful_times_are_not_taken),
        TEST(plugins_without_a_profiler),
        TEST(runs_have_the_times_of_the_device),
        TEST(a_failure_leaves_wall_clock),
        TEST(a_trace_says_who_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
