/* Compiled programs that are read from the cache: when, and that they do as those just compiled.
 *
 * tests/run: in check
 */
#define _DEFAULT_SOURCE

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <cornu/device/log.h>
#include <cornu/device/pjrt/cache.h>

#include "../../datasets/files.h"
#include "../../expect.h"
#include "../programs.h"
#include "opened.h"

/* What the log said since the last trial began. */
static struct { int read, wrote, damaged, refused, kept_not; } heard;

static void hear(void *context, CornuLogLevel level, const char *message)
{
    (void)context, (void)level;
    heard.read += strstr(message, "read a compiled program") != NULL;
    heard.wrote += strstr(message, "pjrt: wrote") != NULL;
    heard.damaged += strstr(message, "compiled again") != NULL;
    heard.refused += strstr(message, "refuses") != NULL;
    heard.kept_not += strstr(message, "not kept") != NULL;
}

/* w becomes w + tanh(w x), in place; the results are exp(w x), of `rows` rows, and its sum. */
static CornuProgram *make_program(int rows)
{
    CornuProgram *p = cornu_program_create();
    CornuValue    w = input(p, cornu_type(CORNU_F32, rows, 16));
    CornuValue    x = input(p, cornu_type(CORNU_F32, rows, 16));
    CornuValue    product = op2(p, CORNU_OP_MULTIPLY, w, x), e = op1(p, CORNU_OP_EXP, product);
    output(p, op2(p, CORNU_OP_ADD, w, op1(p, CORNU_OP_TANH, product)), 0);
    output(p, e, -1);
    output(p, reduce(p, CORNU_OP_REDUCE_SUM, e, 3), -1);
    return p;
}

enum { MOST = 3 * 64 * 16 + 4 };

/* Three runs of the program on a new device. */
static void try(int shards, int rows, double results[MOST])
{
    CornuDevice *device = pjrt_open(shards);
    memset(&heard, 0, sizeof heard);
    CornuProgram *p = make_program(rows);
    Compiled      compiled = compile(device, p);
    int64_t       count, at = 0;
    memset(results, 0, MOST * sizeof *results);
    set_inputs(&compiled, 7);
    for (int i = 0; i < 3; i++) run(&compiled);
    for (int i = 0; i < 3; i++) {
        double *got = i < 2 ? get_output(&compiled, i + 1, &count)
                            : get_input(&compiled, 0, &count);
        assert_true(at + count <= MOST);
        memcpy(results + at, got, (size_t)count * sizeof *got);
        at += count;
        free(got);
    }
    release(&compiled);
    cornu_program_free(p);
    cornu_device_close(device);
}

static double expected[MOST], got[MOST];

static int begin(void **state)
{
    if (files_begin(state)) return -1;
    setenv("CORNU_PJRT_CACHE", files_path(folder, "cache"), 1);
    cornu_set_log(CORNU_LOG_DEBUG, hear, NULL);
    return 0;
}

static int end(void **state)
{
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
    unsetenv("CORNU_PJRT_CACHE");
    return files_end(state);
}

/* The path of the only file in the cache. */
static const char *only_file(void)
{
    static char path[2 * FILES_PATH];
    DIR        *directory = opendir(files_path(folder, "cache"));
    int         count = 0;
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)); ) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/cache/%s", folder, entry->d_name);
        count++;
    }
    closedir(directory);
    assert_int_equal(count, 1);
    return path;
}

static void expect_same(void) { assert_memory_equal(got, expected, sizeof got); }

/* ---- Hits ---- */

static void a_second_run_reads_the_same_program(void **state)
{
    for (int shards = 1; shards <= 2 && shards <= pjrt_most_shards(); shards++) {
        if (shards == 2) end(state), begin(state);
        try(shards, 8, expected);
        assert_int_equal(heard.read, 0);
        assert_int_equal(heard.wrote, 1);
        try(shards, 8, got);
        assert_int_equal(heard.read, 1);
        assert_int_equal(heard.wrote, 0);
        expect_same();
        setenv("CORNU_PJRT_CACHE", "off", 1);
        try(shards, 8, got);
        assert_int_equal(heard.read + heard.wrote, 0);
        expect_same();
    }
}

/* The program, the replicas, and what XLA reads from the environment. */
static void another_program_is_compiled(void **state)
{
    (void)state;
    try(1, 8, expected);
    for (int i = 0; i < 3; i++) {
        if (i == 2) setenv("LIBTPU_INIT_ARGS", "--for=another", 1);
        try(i == 1 ? 2 : 1, i == 0 ? 16 : 8, got);
        assert_int_equal(heard.read, 0);
        assert_int_equal(heard.wrote, 1);
    }
    unsetenv("LIBTPU_INIT_ARGS");
    assert_int_equal(files_count(files_path(folder, "cache")), 4);
    try(1, 8, got);
    assert_int_equal(heard.read, 1);
    expect_same();
}

/* ---- Donation ---- */

typedef struct { PjrtHead head; PjrtBuffer *buffer; bool deleted; /* out */ } IsDeleted;
static const PjrtFunctionId buffer_is_deleted = (PjrtFunctionId)68;   /* only needed here */

static bool is_deleted(const CornuPjrtDevice *device, PjrtBuffer *buffer)
{
    IsDeleted call = PJRT_ARGUMENTS(IsDeleted, .buffer = buffer);
    expect_ok(cornu__pjrt_call(device->plugin, buffer_is_deleted, &call));
    return call.deleted;
}

/* As executable.c does, with the plugin's own program in hand. */
static void a_program_that_was_read_donates(void **state)
{
    (void)state;
    try(1, 8, expected);
    CornuDevice     *base = pjrt_open(1);
    CornuPjrtDevice *device = cornu__pjrt_of(base);
    CornuProgram    *p = make_program(8);
    CornuModule      module = { .text = NULL };
    CornuPjrtOptions options;
    CornuPjrtCache   cache;
    const CornuType  type = cornu_type(CORNU_F32, 8, 16);
    expect_ok(cornu__module_emit(&module, p, device->target, NULL));
    cornu__pjrt_options(&options, device);
    const PjrtProgram program = PJRT_ARGUMENTS(PjrtProgram, .code = module.text,
        .code_size = module.size, .format = "mlir", .format_size = 4);
    cornu__pjrt_cache_open(&cache, device, &program, &options);
    PjrtLoaded *loaded = cornu__pjrt_cache_load(&cache);
    assert_non_null(loaded);

    CornuBuffer *buffers[2];
    PjrtBuffer  *in[2], *out[3], *const *arguments[1] = { in }, **outputs[1] = { out };
    PjrtEvent   *done[1];
    for (int i = 0; i < 2; i++) {
        buffers[i] = cornu_buffer_create(base, type);
        assert_non_null(buffers[i]);
        expect_ok(cornu__pjrt_upload((CornuPjrtBuffer *)buffers[i], type, false));
        in[i] = ((CornuPjrtBuffer *)buffers[i])->on[0];
    }
    PjrtExecuteOptions run_options = PJRT_ARGUMENTS(PjrtExecuteOptions, .kept = NULL);
    PjrtLoadedExecute  call = PJRT_ARGUMENTS(PjrtLoadedExecute, .loaded = loaded,
        .options = &run_options, .arguments = arguments, .device_count = 1, .argument_count = 2,
        .outputs = outputs, .done = done);
    assert_false(is_deleted(device, in[0]));
    expect_ok(cornu__pjrt_call(device->plugin, PJRT_LOADED_EXECUTE, &call));
    expect_ok(cornu__pjrt_await(device->plugin, done[0]));
    assert_true(is_deleted(device, in[0]));     /* the variable */
    assert_false(is_deleted(device, in[1]));
    for (int i = 0; i < 3; i++) cornu__pjrt_destroy(device, out[i]);

    PjrtLoadedDestroy destroy = PJRT_ARGUMENTS(PjrtLoadedDestroy, .loaded = loaded);
    expect_ok(cornu__pjrt_call(device->plugin, PJRT_LOADED_DESTROY, &destroy));
    for (int i = 0; i < 2; i++) cornu_buffer_free(buffers[i]);
    cornu__pjrt_cache_close(&cache);
    cornu__module_free(&module);
    cornu_program_free(p);
    cornu_device_close(base);
}

/* ---- Damage ---- */

static void a_damaged_program_is_compiled_again(void **state)
{
    (void)state;
    try(1, 8, expected);
    static char  file[1 << 20];
    const size_t size = files_read(only_file(), file, sizeof file);
    for (size_t i = 0; i < 17; i++) {
        const size_t at = size * i / 16;
        if (i < 16) file[at] ^= 64;
        files_write(only_file(), file, i < 16 ? size : size / 2);
        if (i < 16) file[at] ^= 64;
        try(1, 8, got);
        assert_int_equal(heard.damaged, 1);
        assert_int_equal(heard.read, 0);
        assert_int_equal(heard.wrote, 1);
        expect_same();
    }
    try(1, 8, got);
    assert_int_equal(heard.read, 1);
}

/* Of another version, as it were: whole, under the right key, but not what the plugin expects. */
static void a_program_that_the_plugin_refuses_is_compiled_again(void **state)
{
    (void)state;
    try(1, 8, expected);
    CornuPjrtFolder cache;
    cornu__pjrt_folder_open(&cache);
    cornu__pjrt_folder_write(&cache, strrchr(only_file(), '/') + 1, "not a program", 13);
    cornu__pjrt_folder_close(&cache);
    try(1, 8, got);
    assert_int_equal(heard.refused, 1);
    assert_int_equal(heard.wrote, 1);
    expect_same();
    try(1, 8, got);
    assert_int_equal(heard.read, 1);
    expect_same();
}

static void without_a_folder_programs_are_compiled(void **state)
{
    (void)state;
    setenv("CORNU_PJRT_CACHE", "off", 1);
    try(1, 8, expected);
    setenv("CORNU_PJRT_CACHE", "/proc/cornu", 1);
    try(1, 8, got);
    assert_int_equal(heard.kept_not, 1);
    assert_int_equal(heard.wrote, 0);
    expect_same();
}

/* ---- Processes ---- */

static pid_t start(const char *results)
{
    const pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_cache", results, (char *)NULL);
        _exit(127);
    }
    assert_true(child > 0);
    return child;
}

/* The child: tries once, in a process that has not loaded a plugin before. */
static int try_once(const char *path)
{
    try(1, 8, got);
    FILE *file = fopen(path, "wb");
    return !file || fwrite(got, sizeof got, 1, file) != 1 || fclose(file) != 0;
}

static void expect_child(pid_t child, const char *path)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(files_read(path, got, sizeof got), sizeof got);
    expect_same();
}

static void two_processes_may_compile_at_once(void **state)
{
    (void)state;
    setenv("CORNU_PJRT_CACHE", "off", 1);
    try(1, 8, expected);
    setenv("CORNU_PJRT_CACHE", files_path(folder, "cache"), 1);
    char paths[2][FILES_PATH + 16];
    for (int i = 0; i < 2; i++)
        snprintf(paths[i], sizeof paths[i], "%s/result-%d", folder, i);
    const pid_t a = start(paths[0]), b = start(paths[1]);
    expect_child(a, paths[0]);
    expect_child(b, paths[1]);
    only_file();
    try(1, 8, got);
    assert_int_equal(heard.read, 1);
    expect_same();
}

static void a_killed_process_leaves_a_usable_cache(void **state)
{
    (void)state;
    setenv("CORNU_PJRT_CACHE", "off", 1);
    try(1, 8, expected);
    setenv("CORNU_PJRT_CACHE", files_path(folder, "cache"), 1);
    for (int i = 1; i <= 8; i++) {   /* a run takes about 0.5 s when idle */
        const pid_t child = start(files_path(folder, "result"));
        nanosleep(&(struct timespec){ 0, 100000000L * i }, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        try(1, 8, got);
        assert_int_equal(heard.damaged, 0);
        assert_int_equal(heard.read + heard.wrote, 1);
        expect_same();
        assert_int_equal(unlink(only_file()), 0);
    }
}

int main(int count, char **arguments)
{
    if (count > 1) return try_once(arguments[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_second_run_reads_the_same_program, begin, end),
        cmocka_unit_test_setup_teardown(another_program_is_compiled, begin, end),
        cmocka_unit_test_setup_teardown(a_program_that_was_read_donates, begin, end),
        cmocka_unit_test_setup_teardown(a_damaged_program_is_compiled_again, begin, end),
        cmocka_unit_test_setup_teardown(a_program_that_the_plugin_refuses_is_compiled_again, begin,
                                        end),
        cmocka_unit_test_setup_teardown(without_a_folder_programs_are_compiled, begin, end),
        cmocka_unit_test_setup_teardown(two_processes_may_compile_at_once, begin, end),
        cmocka_unit_test_setup_teardown(a_killed_process_leaves_a_usable_cache, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
