/*
 * Finding files, in the documented order of places, and downloading them from a server that behaves
 * or misbehaves; timeouts take seconds.
 *
 * tests/run: alone
 */
#define _DEFAULT_SOURCE    /* flock */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../datasets/fetching/download_internal.h"
#include "../../../datasets/fetching/find.h"
#include "../../../device/log.h"
#include "../../../device/hash/sha256_internal.h"
#include "../files.h"
#include "../../skip.h"

static const char *const no_addresses[] = { "http://127.0.0.1:1/", NULL };

/* Two files: "abc" and a million times "a". */
static const CornuDataFile small_files[] = {
    { "abc.bin", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "many.bin", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
};

static const CornuDataSource small = {
    .folder = "small", .addresses = no_addresses, .files = small_files, .count = 2,
    .otherwise = ".data = \"synthetic\" does without the files",
};

enum { MANY = 1000000 };
static char many[MANY], others[MANY];

/* ---- A server: /BEHAVIOUR/small/NAME ---- */

static int server, port;

static void send_all(int client, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(client, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0) return;
        bytes += sent;
        size -= (size_t)sent;
    }
}

static void answer(int client)
{
    char request[2048], behaviour[32], name[32], header[128];
    ssize_t got = recv(client, request, sizeof request - 1, 0);
    if (got <= 0) return;
    request[got] = '\0';
    if (sscanf(request, "GET /%31[^/]/small/%31[^ ]", behaviour, name) != 2) return;
    bool        abc = strcmp(name, "abc.bin") == 0;
    const char *body = abc ? "abc" : many;
    size_t      size = abc ? 3 : MANY;
    if (strcmp(behaviour, "absent") == 0) {
        static const char refusal[] = "HTTP/1.0 404 Not Found\r\nContent-Length: 4\r\n\r\nnope";
        send_all(client, refusal, strlen(refusal));
        return;
    }
    bool endless = strcmp(behaviour, "endless") == 0 && !abc;
    snprintf(header, sizeof header, "HTTP/1.0 200 OK\r\nContent-Length: %zu\r\n\r\n",
             endless ? 100 * size : size);
    send_all(client, header, strlen(header));
    if (strcmp(behaviour, "wrong") == 0 && !abc) body = others;
    if (strcmp(behaviour, "stalled") == 0 && !abc) {
        char byte;
        send_all(client, body, size / 2);
        recv(client, &byte, 1, 0); /* until the client gives up */
    } else if (strcmp(behaviour, "short") == 0) {
        send_all(client, body, size - 1);
    } else {
        for (int i = 0; i < (endless ? 100 : 1); i++) send_all(client, body, size);
    }
}

static void *serve(void *unused)
{
    (void)unused;
    for (;;) {
        int client = accept(server, NULL, NULL);
        if (client < 0) return NULL;
        answer(client);
        shutdown(client, SHUT_WR);
        close(client);
    }
}

static pthread_t server_thread;

static bool start_server(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t          size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server = socket(AF_INET, SOCK_STREAM, 0);
    if (server < 0 || bind(server, (struct sockaddr *)&address, size) != 0 ||
        listen(server, 8) != 0 || getsockname(server, (struct sockaddr *)&address, &size) != 0)
        return false;
    port = ntohs(address.sin_port);
    /* Without a network the loopback may be down, too. */
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(probe, (struct sockaddr *)&address, size) != 0) return false;
    close(probe);
    return pthread_create(&server_thread, NULL, serve, NULL) == 0;
}

static bool serving;

static bool can_download(void)
{
    return serving && system("command -v curl wget >/dev/null 2>&1") == 0;
}

/* ---- A home directory for each test ---- */

static char before[FILES_PATH], path_before[4096];

static int enter(void **state)
{
    files_begin(state);
    files_path(folder, "home/x");
    setenv("HOME", files_path(folder, "home"), 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("CORNU_DATA");
    unsetenv("CORNU_DATA_URL");
    return chdir(folder);
}

static int leave(void **state)
{
    setenv("PATH", path_before, 1);
    if (chdir(before) != 0) return -1;
    return files_end(state);
}

static void serve_from(const char *behaviour)
{
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s/", port, behaviour);
    setenv("CORNU_DATA_URL", url, 1);
}

static void put_files(const char *under)
{
    char name[128];
    snprintf(name, sizeof name, "%s/small/abc.bin", under);
    files_write(files_path(folder, name), "abc", 3);
    snprintf(name, sizeof name, "%s/small/many.bin", under);
    files_write(files_path(folder, name), many, MANY);
}

static void expect_found(const CornuDataSearch *search, const char *expected)
{
    char found[CORNU_PATH_SIZE];
    if (cornu_data_find(&small, search, found) != CORNU_OK) fail_msg("%s", cornu_error_message());
    assert_string_equal(found, expected);
}

static void expect_failure(const CornuDataSearch *search, CornuStatus status, const char *text)
{
    char found[CORNU_PATH_SIZE];
    assert_int_equal(cornu_data_find(&small, search, found), status);
    if (!strstr(cornu_error_message(), text))
        fail_msg("\"%s\" does not contain \"%s\"", cornu_error_message(), text);
}

/* The log, where what a file is known by goes. */
static char logged[1024];

static void keep_log(void *context, CornuLogLevel level, const char *message)
{
    (void)context, (void)level;
    const size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%s\n", message);
}

/* The message, beside what the log has. */
static void expect_two_short_lines(const char *in_log)
{
    const char *message = cornu_error_message(), *second = strchr(message, '\n');
    assert_non_null(second);
    assert_null(strchr(second + 1, '\n'));
    assert_true(second - message <= 160 && strlen(second) <= 120);
    if (!strstr(logged, in_log)) fail_msg("\"%s\" is not in the log: %s", in_log, logged);
}

/* ---- Tests ---- */

static void test_a_named_directory_must_have_them(void **state)
{
    (void)state;
    CornuDataSearch search = { .data = "elsewhere/" };
    put_files("data"); /* must be ignored */
    expect_failure(&search, CORNU_ERR_DATA, "elsewhere/small/abc.bin is missing; .data must name");
    expect_two_short_lines("ba7816bf");
    assert_non_null(strstr(cornu_error_message(), "http://127.0.0.1:1/abc.bin"));
    assert_non_null(strstr(cornu_error_message(), ".data = \"synthetic\""));
    put_files("elsewhere");
    expect_found(&search, "elsewhere/small");
    setenv("CORNU_DATA", "nowhere", 1);
    expect_found(&search, "elsewhere/small");
    expect_failure(NULL, CORNU_ERR_DATA, "nowhere/small/abc.bin is missing; CORNU_DATA");
    setenv("CORNU_DATA", files_path(folder, "elsewhere"), 1);
    expect_found(NULL, files_path(folder, "elsewhere/small"));
    setenv("CORNU_DATA", "", 1);
    expect_found(NULL, "./data/small");
}

static void test_data_then_cache(void **state)
{
    (void)state;
    put_files("home/.cache/cornu");
    expect_found(NULL, files_path(folder, "home/.cache/cornu/small"));
    put_files("cache/cornu");
    setenv("XDG_CACHE_HOME", "cache", 1); /* relative: ignored */
    expect_found(NULL, files_path(folder, "home/.cache/cornu/small"));
    setenv("XDG_CACHE_HOME", files_path(folder, "cache"), 1);
    expect_found(NULL, files_path(folder, "cache/cornu/small"));
    put_files("data");
    expect_found(NULL, "./data/small");
    /* Some of the files are not enough. */
    unlink(files_path(folder, "data/small/many.bin"));
    expect_found(NULL, files_path(folder, "cache/cornu/small"));
}

static bool note_progress(void *context, const CornuDataFile *file, int64_t received)
{
    int64_t *last = context;
    if (file != &small_files[1]) return true;
    assert_true(received >= *last && received <= file->bytes);
    *last = received;
    return true;
}

static void expect_download(const char *folder)
{
    int64_t         last = 0;
    CornuDataSearch search = { .progress = note_progress, .context = &last };
    serve_from("complete");
    expect_found(&search, folder);
    assert_int_equal(last, MANY);
    assert_int_equal(files_count(folder), 2);
    char sum[CORNU__SHA256_TEXT], file[2 * CORNU_PATH_SIZE];
    snprintf(file, sizeof file, "%s/many.bin", folder);
    assert_int_equal(cornu__sha256_file(file, sum), CORNU_OK);
    assert_string_equal(sum, small_files[1].sha256);
    setenv("CORNU_DATA_URL", "http://127.0.0.1:1/", 1); /* no longer needed */
    expect_found(NULL, folder);
}

static void test_a_complete_download(void **state)
{
    (void)state;
    if (!can_download()) SKIP_FOR(SKIP_CURL);
    expect_download(files_path(folder, "home/.cache/cornu/small"));
}

static void test_a_download_without_a_home(void **state)
{
    (void)state;
    if (!can_download()) SKIP_FOR(SKIP_CURL);
    setenv("HOME", "", 1);
    expect_download("./data/small");
}

/* Sets PATH to a folder with only these programs. */
static bool only_program(const char *name)
{
    char command[2 * FILES_PATH];
    files_path(folder, "bin/x");
    snprintf(command, sizeof command, "p=$(command -v %s) && ln -sf \"$p\" '%s/bin/'", name,
             folder);
    bool found = name[0] == '\0' || system(command) == 0;
    setenv("PATH", files_path(folder, "bin"), 1);
    return found;
}

/* An emulator may fail to start a program without reporting it. */
static bool missing_programs_are_reported(void)
{
    char *const nothing[] = { "no-such-program", NULL };
    pid_t       child;
    const int   error = posix_spawnp(&child, nothing[0], NULL, NULL, nothing, NULL);
    if (error == 0) waitpid(child, NULL, 0);
    return error == ENOENT;
}

static void test_a_download_by_wget(void **state)
{
    (void)state;
    if (!can_download() || !missing_programs_are_reported() || !only_program("wget"))
        SKIP_FOR("curl and wget: apt-get install curl wget");
    expect_download(files_path(folder, "home/.cache/cornu/small"));
    unlink(files_path(folder, "home/.cache/cornu/small/abc.bin"));
    serve_from("absent");
    expect_failure(NULL, CORNU_ERR_DATA, "404");
}

static void test_neither_curl_nor_wget(void **state)
{
    (void)state;
    if (!missing_programs_are_reported())
        SKIP_FOR("posix_spawn: a C library that reports missing programs");
    only_program("");
    serve_from("complete");
    expect_failure(NULL, CORNU_ERR_DATA, "neither curl nor wget is installed");
}

/* Temporary files of killed processes are removed; those still being written, and other files with
 * similar names, stay. */
static void test_leftovers(void **state)
{
    static const char *const stay[] = { ".abc.bin.cornu-Locked", ".abc.bin.cornu-long123",
                                        ".abc.bin.cornu-", "abc.bin.backup", ".abc.bin.saved1" };
    enum { STAY = sizeof stay / sizeof *stay };
    char cache[FILES_PATH];
    (void)state;
    if (!can_download()) SKIP_FOR(SKIP_CURL);
    snprintf(cache, sizeof cache, "%s", files_path(folder, "home/.cache/cornu/small/"));
    cache[strlen(cache) - 1] = '\0';
    files_write(files_path(cache, ".abc.bin.cornu-a1B2c3"), "ab", 2);
    files_write(files_path(cache, ".many.bin.cornu-XyZ123"), many, 1000);
    for (int i = 0; i < STAY; i++) files_write(files_path(cache, stay[i]), "x", 1);
    const int locked = open(files_path(cache, stay[0]), O_RDONLY);
    assert_int_equal(flock(locked, LOCK_EX | LOCK_NB), 0);
    serve_from("complete");
    expect_found(NULL, cache);
    for (int i = 0; i < STAY; i++)
        assert_int_equal(access(files_path(cache, stay[i]), F_OK), 0);
    assert_int_equal(files_count(cache), 2 + STAY);
    close(locked);
}

/* Bad responses are reported and leave no files. */
static void test_bad_answers(void **state)
{
    (void)state;
    if (!can_download()) SKIP_FOR(SKIP_CURL);
    static const struct { const char *behaviour, *text; } cases[] = {
        { "absent", "404" },
        { "wrong", "wrong checksum: SHA-256 is " },
        { "short", "" },
        { "endless", "" },
    };
    const char *cache = files_path(folder, "home/.cache/cornu/small");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        serve_from(cases[i].behaviour);
        expect_failure(NULL, CORNU_ERR_DATA, cases[i].text);
        assert_non_null(strstr(cornu_error_message(), ".data = \"synthetic\""));
        assert_non_null(strstr(cornu_error_message(), cases[i].behaviour));
        /* abc.bin arrives intact if only the large file is bad. */
        bool spoils_all = strcmp(cases[i].behaviour, "absent") == 0 ||
                          strcmp(cases[i].behaviour, "short") == 0;
        assert_int_equal(files_count(cache), spoils_all ? 0 : 1);
        unlink(files_path(folder, "home/.cache/cornu/small/abc.bin"));
    }
}

static void test_no_connection(void **state)
{
    (void)state;
    if (!can_download()) SKIP_FOR(SKIP_CURL);
    expect_failure(NULL, CORNU_ERR_DATA, "its download failed: ");
    assert_non_null(strstr(cornu_error_message(), "neither in ./data/small nor in the cache"));
    assert_non_null(strstr(cornu_error_message(), "http://127.0.0.1:1/abc.bin has it"));
    expect_two_short_lines(small_files[0].sha256);
    assert_int_equal(files_count(files_path(folder, "home/.cache/cornu/small")), 0);
}

static void test_a_stalled_download(void **state)
{
    (void)state;
    if (!can_download()) SKIP_FOR(SKIP_CURL);
    const CornuDataSearch       search = { .data = NULL };
    const CornuDownloadPatience patience = { .connect = 1, .stall = 2 };
    const char *to = files_path(folder, "a/b/c");
    char        url[96];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/stalled/small/many.bin", port);
    time_t begin = time(NULL);
    assert_int_equal(cornu__download(url, to, &small_files[1], &search, patience),
                     CORNU_ERR_DATA);
    assert_string_equal(cornu_error_message(),
                        "received nothing for 2 seconds after 500000 of 1000000 bytes");
    assert_true(time(NULL) - begin < 8);
    assert_int_equal(files_count(to), 0);
}

static bool stop_midway(void *context, const CornuDataFile *file, int64_t received)
{
    (void)context, (void)file;
    return received < MANY / 2;
}

static void test_progress_can_stop_it(void **state)
{
    (void)state;
    if (!can_download()) SKIP_FOR(SKIP_CURL);
    CornuDataSearch search = { .progress = stop_midway };
    serve_from("stalled");
    expect_failure(&search, CORNU_ERR_INTERRUPTED, "stopped on request");
    assert_int_equal(files_count(files_path(folder, "home/.cache/cornu/small")), 1); /* abc.bin */
}

static void test_a_cache_that_cannot_be_written(void **state)
{
    (void)state;
    setenv("XDG_CACHE_HOME", "/dev/null", 1);
    expect_failure(NULL, CORNU_ERR_FILE, "/dev/null");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_named_directory_must_have_them, enter, leave),
        cmocka_unit_test_setup_teardown(test_data_then_cache, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_complete_download, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_download_without_a_home, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_download_by_wget, enter, leave),
        cmocka_unit_test_setup_teardown(test_neither_curl_nor_wget, enter, leave),
        cmocka_unit_test_setup_teardown(test_leftovers, enter, leave),
        cmocka_unit_test_setup_teardown(test_bad_answers, enter, leave),
        cmocka_unit_test_setup_teardown(test_no_connection, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_stalled_download, enter, leave),
        cmocka_unit_test_setup_teardown(test_progress_can_stop_it, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_cache_that_cannot_be_written, enter, leave),
    };
    memset(many, 'a', sizeof many);
    memset(others, 'b', sizeof others);
    const char *path = getenv("PATH");
    snprintf(path_before, sizeof path_before, "%s", path ? path : "");
    setenv("no_proxy", "127.0.0.1", 1);
    if (!getcwd(before, sizeof before)) return 1;
    serving = start_server();
    cornu_set_log(CORNU_LOG_INFO, keep_log, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
    if (serving) {
        shutdown(server, SHUT_RDWR); /* ends accept */
        pthread_join(server_thread, NULL);
    }
    close(server);
    return failures;
}
