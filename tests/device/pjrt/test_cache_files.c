/* The files of the cache of compiled programs: no plugin is needed. */
#define _DEFAULT_SOURCE

#include <dirent.h>
#include <fcntl.h>
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
#include <cornu/device/memory_internal.h>
#include <cornu/device/pjrt/cache_files.h>

#include "../../datasets/files.h"

static const char key[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
static const char other[] = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
static const char third[] = "ee112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

static char last_warning[1200];
static int  warnings;

static void hear(void *context, CornuLogLevel level, const char *message)
{
    (void)context;
    if (level > CORNU_LOG_WARNING) return;
    warnings++;
    snprintf(last_warning, sizeof last_warning, "%s", message);
}

static int begin(void **state)
{
    unsetenv("XDG_CACHE_HOME"), unsetenv("HOME");
    if (files_begin(state)) return -1;
    setenv("CORNU_PJRT_CACHE", files_path(folder, "cache"), 1);
    warnings = 0, last_warning[0] = '\0';
    cornu_set_log(CORNU_LOG_DEBUG, hear, NULL);
    return 0;
}

static int end(void **state)
{
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
    return files_end(state);
}

static CornuPjrtFolder opened(void)
{
    CornuPjrtFolder files;
    cornu__pjrt_folder_open(&files);
    if (files.descriptor < 0) fail_msg("%s is not opened: %s", files.path, last_warning);
    return files;
}

static void expect_hit(const CornuPjrtFolder *files, const char *under, const char *text)
{
    size_t size;
    char  *bytes = cornu__pjrt_folder_read(files, under, &size);
    if (!bytes) fail_msg("nothing is under %s", under);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(bytes, text, size);
    cornu__release(bytes);
}

static void expect_miss(const CornuPjrtFolder *files, const char *under)
{
    size_t size;
    assert_null(cornu__pjrt_folder_read(files, under, &size));
}

static void put(const CornuPjrtFolder *files, const char *under, const char *text)
{
    cornu__pjrt_folder_write(files, under, text, strlen(text));
}

static const char *path_of(const char *name)
{
    static char path[FILES_PATH + 80];
    snprintf(path, sizeof path, "%s/cache/%s", folder, name);
    return path;
}

/* ---- Damage ---- */

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct stat     info;
    CornuPjrtFolder files = opened();
    expect_miss(&files, key);
    put(&files, key, "compiled");
    put(&files, other, "other");
    expect_hit(&files, key, "compiled");
    put(&files, key, "again");
    expect_hit(&files, key, "again");
    expect_hit(&files, other, "other");
    assert_int_equal(stat(files.path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    cornu__pjrt_folder_remove(&files, key);
    expect_miss(&files, key);
    cornu__pjrt_folder_close(&files);
    assert_int_equal(warnings, 0);
}

/* Each byte of each part of the file. */
static void a_damaged_file_is_removed(void **state)
{
    (void)state;
    char            text[400], file[1000];
    CornuPjrtFolder files = opened();
    memset(text, 'x', sizeof text - 1), text[sizeof text - 1] = '\0';
    put(&files, key, text);
    const size_t size = files_read(path_of(key), file, sizeof file);
    assert_true(size > strlen(text));
    for (size_t i = 0; i < 2 * size; i += i < size ? size / 64 : size / 16) {
        put(&files, key, text);
        warnings = 0;
        if (i < size) {   /* a bit, then truncated to this length */
            file[i] ^= 1;
            files_write(path_of(key), file, size);
            file[i] ^= 1;
        } else {
            files_write(path_of(key), file, i - size);
        }
        chmod(path_of(key), 0600);
        expect_miss(&files, key);
        assert_int_equal(warnings, 1);
        assert_int_not_equal(access(path_of(key), F_OK), 0);
    }
    files_write(path_of(key), file, size);
    expect_hit(&files, key, text);
    files_write(path_of(other), file, size);
    chmod(path_of(other), 0600);
    expect_miss(&files, other);   /* the wrong key */
    assert_non_null(strstr(last_warning, "is damaged"));
    cornu__pjrt_folder_close(&files);
}

/* ---- Places ---- */

static void places_are_found(void **state)
{
    (void)state;
    CornuPjrtFolder files;
    char            expected[FILES_PATH + 40], long_path[2 * CORNU_PJRT_PATH];
    setenv("CORNU_PJRT_CACHE", "off", 1);
    setenv("HOME", folder, 1);
    cornu__pjrt_folder_open(&files);
    assert_int_equal(files.descriptor, -1);
    expect_miss(&files, key);        /* nothing fails without a folder */
    put(&files, key, "compiled");
    cornu__pjrt_folder_remove(&files, key);
    cornu__pjrt_folder_close(&files);
    assert_int_equal(files_count(folder), 0);

    setenv("CORNU_PJRT_CACHE", "", 1);
    setenv("XDG_CACHE_HOME", "relative", 1);
    files = opened();
    snprintf(expected, sizeof expected, "%s/.cache/cornu/pjrt-compiled", folder);
    assert_string_equal(files.path, expected);
    cornu__pjrt_folder_close(&files);
    setenv("XDG_CACHE_HOME", files_path(folder, "xdg"), 1);
    files = opened();
    snprintf(expected, sizeof expected, "%s/xdg/cornu/pjrt-compiled", folder);
    assert_string_equal(files.path, expected);
    cornu__pjrt_folder_close(&files);

    unsetenv("XDG_CACHE_HOME"), unsetenv("HOME");
    cornu__pjrt_folder_open(&files);
    assert_int_equal(files.descriptor, -1);
    memset(long_path, 'x', sizeof long_path - 1), long_path[sizeof long_path - 1] = '\0';
    setenv("CORNU_PJRT_CACHE", long_path, 1);
    cornu__pjrt_folder_open(&files);
    assert_int_equal(files.descriptor, -1);
    files_write(files_path(folder, "file"), "", 0);
    setenv("CORNU_PJRT_CACHE", files_path(folder, "file/cache"), 1);
    cornu__pjrt_folder_open(&files);
    assert_int_equal(files.descriptor, -1);
    setenv("CORNU_PJRT_CACHE", "/proc/cornu", 1);
    cornu__pjrt_folder_open(&files);
    assert_int_equal(files.descriptor, -1);
    assert_int_equal(warnings, 0);
}

/* A folder that goes away, or is full: root may write where modes forbid it. */
static void a_folder_that_cannot_be_written_is_no_error(void **state)
{
    (void)state;
    CornuPjrtFolder files = opened();
    if (geteuid() == 0) assert_int_equal(rmdir(files.path), 0);
    else assert_int_equal(chmod(files.path, 0500), 0);
    put(&files, key, "compiled");
    expect_miss(&files, key);
    assert_int_equal(warnings, 0);
    cornu__pjrt_folder_close(&files);
    chmod(files_path(folder, "cache"), 0700);
}

static void what_others_may_write_is_not_trusted(void **state)
{
    (void)state;
    CornuPjrtFolder files = opened();
    put(&files, key, "compiled");
    chmod(path_of(key), 0620);
    expect_miss(&files, key);
    assert_non_null(strstr(last_warning, "other users"));
    put(&files, key, "compiled");
    if (geteuid() == 0) {
        assert_int_equal(chown(path_of(key), 1, 1), 0);
        expect_miss(&files, key);
        assert_non_null(strstr(last_warning, "another user"));
        put(&files, key, "compiled");
    }
    files_write(files_path(folder, "elsewhere"), "", 0);
    assert_int_equal(symlink("../elsewhere", path_of(other)), 0);
    expect_miss(&files, other);
    put(&files, other, "other");   /* replaces the link */
    expect_hit(&files, other, "other");
    cornu__pjrt_folder_close(&files);
    for (int i = 0; i < 2; i++) {
        if (i == 0) chmod(path_of(""), 0702);
        else if (geteuid() != 0 || chown(path_of(""), 1, 1) != 0) break;
        warnings = 0;
        cornu__pjrt_folder_open(&files);
        assert_int_equal(files.descriptor, -1);
        assert_int_equal(warnings, 1);
        chmod(path_of(""), 0755);   /* others may read it */
    }
    if (geteuid() == 0) (void)!chown(path_of(""), 0, 0);
    files = opened();
    expect_hit(&files, key, "compiled");
    cornu__pjrt_folder_close(&files);
}

/* ---- Size ---- */

static void make_older(const char *under, int seconds)
{
    const struct timespec times[2] = { { time(NULL) - seconds, 0 }, { time(NULL) - seconds, 0 } };
    assert_int_equal(utimensat(AT_FDCWD, path_of(under), times, 0), 0);
}

static void the_least_recently_used_are_removed(void **state)
{
    (void)state;
    char            text[1001];
    CornuPjrtFolder files = opened();
    memset(text, 'x', 1000), text[1000] = '\0';
    files.most_bytes = 2500;
    put(&files, key, text);
    put(&files, other, text);
    make_older(key, 200), make_older(other, 100);
    expect_hit(&files, key, text);    /* it is now the newer one */
    put(&files, third, text);
    expect_miss(&files, other);
    expect_hit(&files, key, text);
    expect_hit(&files, third, text);
    files_write(path_of("not-a-key"), text, 1000);
    files.most_bytes = 900;
    put(&files, other, text);         /* too large for any */
    assert_int_equal(files_count(files.path), 3);
    files.most_bytes = 1500;
    put(&files, other, text);
    assert_int_equal(files_count(files.path), 2);
    expect_hit(&files, other, text);
    cornu__pjrt_folder_close(&files);
    assert_int_equal(warnings, 0);
}

/* ---- Processes ---- */

enum { MANY = 1 << 20, WRITERS = 3 };

static void write_for_ever(char *many)
{
    for (;;) {
        CornuPjrtFolder files;
        cornu__pjrt_folder_open(&files);
        cornu__pjrt_folder_write(&files, key, many, MANY);
        cornu__pjrt_folder_close(&files);
    }
}

static int count_leftovers(void)
{
    DIR *directory = opendir(path_of(""));
    int  count = 0;
    for (const struct dirent *entry; (entry = readdir(directory)); )
        count += strncmp(entry->d_name, ".new-", 5) == 0;
    closedir(directory);
    return count;
}

/* Several write the same file and are killed, while it is read. */
static void writers_may_be_killed(void **state)
{
    (void)state;
    CornuPjrtFolder files = opened();
    char           *many = malloc(MANY);
    int             hits = 0;
    memset(many, 'm', MANY);
    for (int round = 0; round < 8; round++) {
        pid_t writers[WRITERS];
        for (int i = 0; i < WRITERS; i++) {
            writers[i] = fork();
            if (writers[i] == 0) write_for_ever(many);
            assert_true(writers[i] > 0);
        }
        for (int i = 0; i < 20; i++) {
            size_t size;
            char  *bytes = cornu__pjrt_folder_read(&files, key, &size);
            hits += bytes != NULL;
            if (bytes) assert_memory_equal(bytes, many, MANY);
            cornu__release(bytes);
            nanosleep(&(struct timespec){ 0, 1000000L * round }, NULL);
        }
        for (int i = 0; i < WRITERS; i++) {
            kill(writers[i], SIGKILL);
            waitpid(writers[i], NULL, 0);
        }
    }
    assert_true(hits > 0);
    assert_int_equal(warnings, 0);
    files_write(path_of(".new-1-0"), "left", 4);
    put(&files, other, "other");
    assert_int_equal(count_leftovers(), 0);
    expect_hit(&files, other, "other");
    free(many);
    cornu__pjrt_folder_close(&files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_read, begin, end),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_removed, begin, end),
        cmocka_unit_test_setup_teardown(places_are_found, begin, end),
        cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_written_is_no_error, begin, end),
        cmocka_unit_test_setup_teardown(what_others_may_write_is_not_trusted, begin, end),
        cmocka_unit_test_setup_teardown(the_least_recently_used_are_removed, begin, end),
        cmocka_unit_test_setup_teardown(writers_may_be_killed, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
