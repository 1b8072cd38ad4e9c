/* Parts of files in the cache: used again, bounded, damaged, removed by others, shared by threads
 * and processes, fetched ahead. */
#define _DEFAULT_SOURCE    /* setenv */

#include <glob.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../expect.h"
#include "../files.h"
#include "served.h"
#include "server.h"

static void the_cache_is_used_again(void **state)
{
    (void)state;
    NEED_CURL();
    served_expect_whole("ranges");
    server_forget_log();
    served_expect_whole("ranges");
    assert_string_equal(server_log(), "GET /ranges/a bytes=0-0\n");
    server_forget_log();
    served_expect_whole("undated");        /* it may be another one now */
    served_expect_whole("undated");
    assert_true(server_requests() > 4);
}

/* What is in the cache is checked once by each who opens it. */
static void a_damaged_cache(void **state)
{
    (void)state;
    NEED_CURL();
    char command[FILES_PATH + 200];
    served_expect_whole("ranges");
    for (int how = 0; how < 2; how++) {
        snprintf(command, sizeof command, how ? "truncate -s 5000 %s/*/00000001"
                 : "printf x | dd of=$(echo %s/*/00000001) bs=1 seek=77 conv=notrunc 2>/dev/null",
                 getenv("CORNU_CACHE"));
        assert_int_equal(system(command), 0);
        server_forget_log();
        served_expect_whole("ranges");
        assert_int_equal(server_requests(), 2);
        assert_non_null(strstr(server_log(), "bytes=1048576-2097151"));
    }
    /* What a killed program left is fetched anew. */
    snprintf(command, sizeof command, "cd %s/* && mv 00000001 00000001.new",
             getenv("CORNU_CACHE"));
    assert_int_equal(system(command), 0);
    served_expect_whole("ranges");
}

/* What stands in the cache's way is named, and a link in it leads nowhere. */
static void a_cache_that_cannot_be_mended(void **state)
{
    (void)state;
    NEED_CURL();
    char          command[2 * FILES_PATH + 200];
    unsigned char got[10];
    CornuInput    input = served_open(server_url("ranges", "a"));
    snprintf(command, sizeof command, "cd %s/* && mkdir 00000001 && echo kept > ../kept && "
             "ln -s ../kept 00000002.new && ln -s /absent/a 00000000.new", getenv("CORNU_CACHE"));
    assert_int_equal(system(command), 0);
    expect_error(cornu__input_read(&input, SERVED_PART, got, 10), CORNU_ERR_FILE,
                 "cannot be mended");
    expect_error(cornu__input_read(&input, 2 * SERVED_PART, got, 10), CORNU_ERR_FILE,
                 "cannot be written");
    expect_error(cornu__input_read(&input, 0, got, 10), CORNU_ERR_FILE, "cannot be written");
    cornu__input_close(&input);
    snprintf(command, sizeof command, "grep -q kept %s/kept", getenv("CORNU_CACHE"));
    assert_int_equal(system(command), 0);
}

static int64_t bytes_in_cache(void)
{
    char    command[FILES_PATH + 100];
    long    size = -1;
    snprintf(command, sizeof command, "find %s -type f -printf '%%s\\n' | awk '{ s += $1 } END "
             "{ print s + 0 }'", getenv("CORNU_CACHE"));
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%ld", &size), 1);
    pclose(pipe);
    return size;
}

static void the_cache_is_bounded(void **state)
{
    (void)state;
    NEED_CURL();
    setenv("CORNU_CACHE_SIZE", "4M", 1);   /* parts of 64 KB */
    mkdir(getenv("CORNU_CACHE"), 0777);
    files_write(files_path(getenv("CORNU_CACHE"), "mine/00000001"), served_bytes, 2000000);
    served_expect_whole("ranges");
    served_expect_whole("dated");
    /* Others' files in the folder are theirs; a part has 12 bytes more. */
    const int64_t used = bytes_in_cache() - 2000000;
    assert_true(used > 3 << 20 && used <= (4 << 20) + 8 * (65536 + 12));
    CornuInput input;
    setenv("CORNU_CACHE_SIZE", "1M", 1);
    expect_error(cornu__input_open_any(&input, server_url("whole", "a")), CORNU_ERR_UNSUPPORTED,
                 "its server sends it as a whole, 3000001 bytes, more than half of the cache's "
                 "1048576; raise CORNU_CACHE_SIZE");
    setenv("CORNU_CACHE_SIZE", "lots", 1);
    expect_error(cornu__input_open_any(&input, server_url("ranges", "a")), CORNU_ERR_ARGUMENT,
                 "CORNU_CACHE_SIZE is \"lots\", expected at least 1M, as 500M or 20G");
    setenv("CORNU_CACHE_SIZE", "64M", 1);
    setenv("CORNU_CACHE", "/proc/nowhere", 1);
    expect_error(cornu__input_open_any(&input, server_url("ranges", "a")), CORNU_ERR_FILE,
                 "/proc/nowhere");
}

/* ---- Several at a time ---- */

static void *read_all_of_it(void *argument)
{
    const CornuInput *input = argument;
    unsigned char     got[5000];
    uint32_t          word = (uint32_t)(uintptr_t)&got;
    for (int i = 0; i < 300; i++) {
        word = word * 1664525 + 1013904223;
        const int64_t at = word % (SERVED_SIZE - sizeof got);
        if (cornu__input_read(input, at, got, sizeof got) ||
            memcmp(got, served_bytes + at, sizeof got))
            return argument;
    }
    return NULL;
}

/* Each part is fetched once, by whoever needs it first. */
static void several_threads(void **state)
{
    (void)state;
    NEED_CURL();
    pthread_t threads[6];
    for (int i = 0; i < 2; i++) {
        server_forget_log();
        CornuInput input = served_open(server_url(i ? "whole" : "ranges", "a"));
        for (int t = 0; t < 6; t++) pthread_create(&threads[t], NULL, read_all_of_it, &input);
        for (int t = 0; t < 6; t++) {
            void *failed;
            pthread_join(threads[t], &failed);
            assert_null(failed);
        }
        cornu__input_close(&input);
        assert_true(server_requests() <= (i ? 2 : 4));
    }
}

/* Whether a pass and, after it, bytes at any place are those of the file. */
static bool reads_right(const char *address, uint32_t word)
{
    CornuInput input;
    bool       right = cornu__input_open_any(&input, address) == CORNU_OK;
    unsigned char *got = malloc(SERVED_SIZE);
    for (int64_t at = 0; right && at < SERVED_SIZE; at += 70000) {
        const size_t size = at + 70000 < SERVED_SIZE ? 70000 : (size_t)(SERVED_SIZE - at);
        right = !cornu__input_read(&input, at, got, size) && !memcmp(got, served_bytes + at, size);
    }
    for (int i = 0; right && i < 30; i++) {
        word = word * 1664525 + 1013904223;
        const int64_t at = word % (SERVED_SIZE - 5000);
        right = !cornu__input_read(&input, at, got, 5000) && !memcmp(got, served_bytes + at, 5000);
    }
    if (!right) print_message("# %s\n", cornu_error_message());
    free(got);
    cornu__input_close(&input);
    return right;
}

/* A third of the file is in the cache at a time: each removes what the others have fetched, and
 * still none asks more than once for a part that it comes to. */
static void several_processes_in_a_small_cache(void **state)
{
    (void)state;
    NEED_CURL();
#if defined(__SANITIZE_THREAD__)   /* which allows no thread after a fork of several */
    SKIP_FOR(SKIP_SANITIZER);
#endif
    enum { READERS = 3, SMALL = 1 << 14, PARTS = (SERVED_SIZE + SMALL - 1) / SMALL };
    pid_t readers[READERS];
    setenv("CORNU_CACHE_SIZE", "1M", 1);
    const char *address = server_url("ranges", "a");
    fflush(stdout);
    for (int i = 0; i < READERS; i++)
        if ((readers[i] = fork()) == 0) _exit(!reads_right(address, (uint32_t)i));
    for (int i = 0; i < READERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(readers[i], &status, 0), readers[i]);
        assert_int_equal(status, 0);
    }
    assert_true(server_requests() <= READERS * (1 + PARTS + 2 * 30));
    assert_true(bytes_in_cache() <= (1 << 20) + READERS * 5 * (SMALL + 12));
}

static atomic_bool removing;

static void *remove_parts(void *unused)
{
    char path[FILES_PATH + 100];
    (void)unused;
    while (atomic_load(&removing)) {
        glob_t found;
        snprintf(path, sizeof path, "%s/*/0000000?", getenv("CORNU_CACHE"));
        if (glob(path, 0, NULL, &found) == 0) {
            for (size_t i = 0; i < found.gl_pathc; i++) unlink(found.gl_pathv[i]);
            globfree(&found);
        }
        usleep(100);
    }
    return NULL;
}

/* Who fetches a part has it, also if it is gone from the cache at once. */
static void parts_that_are_removed(void **state)
{
    (void)state;
    NEED_CURL();
    pthread_t thread;
    atomic_store(&removing, true);
    assert_int_equal(pthread_create(&thread, NULL, remove_parts, NULL), 0);
    const bool right = reads_right(server_url("ranges", "a"), 7);
    atomic_store(&removing, false);
    pthread_join(thread, NULL);
    assert_true(right);
}

/* Reads over the end of a part are not reads in order. */
static void places_that_are_none_ahead(void **state)
{
    (void)state;
    NEED_CURL();
    setenv("CORNU_CACHE_SIZE", "4M", 1);   /* parts of 64 KB */
    CornuInput input = served_open(server_url("ranges", "a"));
    for (int64_t part = 30; part > 20; part -= 3) served_expect(&input, (part << 16) - 1, 2);
    usleep(50000);
    assert_int_equal(server_requests(), 1 + 8);
    cornu__input_close(&input);
}

/* Bytes that follow come before they are asked for; closing does not wait for them. */
static void parts_ahead(void **state)
{
    (void)state;
    NEED_CURL();
    CornuInput input = served_open(server_url("ranges", "a"));
    served_expect(&input, 0, 100);
    for (int i = 0; i < 100 && server_requests() < 3; i++) usleep(20000);
    assert_non_null(strstr(server_log(), "bytes=1048576-3000000"));
    cornu__input_close(&input);
    server_forget_log();
    input = served_open(server_url("stalled", "a"));
    cornu__input_close(&input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_cache_is_used_again, served_enter),
        cmocka_unit_test_setup(a_damaged_cache, served_enter),
        cmocka_unit_test_setup(a_cache_that_cannot_be_mended, served_enter),
        cmocka_unit_test_setup(the_cache_is_bounded, served_enter),
        cmocka_unit_test_setup(several_threads, served_enter),
        cmocka_unit_test_setup(several_processes_in_a_small_cache, served_enter),
        cmocka_unit_test_setup(parts_that_are_removed, served_enter),
        cmocka_unit_test_setup(places_that_are_none_ahead, served_enter),
        cmocka_unit_test_setup(parts_ahead, served_enter),
    };
    return cmocka_run_group_tests(tests, served_begin, served_end);
}
