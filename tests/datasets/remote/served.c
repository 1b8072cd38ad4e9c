#define _DEFAULT_SOURCE    /* setenv */

#include "served.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../../datasets/remote/remote_internal.h"
#include "../../expect.h"
#include "../files.h"
#include "server.h"

unsigned char served_bytes[SERVED_SIZE];
char          served_path[4096];
static bool   serving;

int served_begin(void **state)
{
    files_begin(state);
    uint32_t word = 1;
    for (int i = 0; i < SERVED_SIZE; i++) {
        word = word * 1664525 + 1013904223;
        served_bytes[i] = (unsigned char)(word >> 24);
    }
    cornu__remote_patience = (CornuRemotePatience){ .connect = 5, .stall = 1, .tries = 4,
                                                    .pause = 0.01 };
    setenv("no_proxy", "127.0.0.1", 1);
    snprintf(served_path, sizeof served_path, "%s", getenv("PATH"));
    serving = server_start();
    return 0;
}

int served_end(void **state)
{
    if (serving) server_stop();
    setenv("PATH", served_path, 1);
    return files_end(state);
}

/* A cache of its own for each test. */
int served_enter(void **state)
{
    static int number;
    char       name[32];
    (void)state;
    snprintf(name, sizeof name, "cache%d", number++);
    setenv("CORNU_CACHE", files_path(folder, name), 1);
    setenv("CORNU_CACHE_SIZE", "64M", 1);
    setenv("PATH", served_path, 1);
    unsetenv("STORAGE_EMULATOR_HOST");
    unsetenv("AWS_ENDPOINT_URL");
    server_forget();
    server_file("a", served_bytes, SERVED_SIZE);
    server_file("none", served_bytes, 0);
    return 0;
}

bool served_by_curl(void)
{
    return serving && system("command -v curl >/dev/null 2>&1") == 0;
}
CornuInput served_open(const char *address)
{
    CornuInput input;
    expect_ok(cornu__input_open_any(&input, address));
    return input;
}

void served_expect(const CornuInput *input, int64_t at, size_t size)
{
    unsigned char *got = malloc(size + 1);
    expect_ok(cornu__input_read(input, at, got, size));
    assert_memory_equal(got, served_bytes + at, size);
    free(got);
}

void served_expect_whole(const char *behaviour)
{
    CornuInput input = served_open(server_url(behaviour, "a"));
    assert_int_equal(input.size, SERVED_SIZE);
    for (int64_t at = 0; at < SERVED_SIZE; at += 70000)
        served_expect(&input, at, at + 70000 < SERVED_SIZE ? 70000 : (size_t)(SERVED_SIZE - at));
    served_expect(&input, SERVED_PART - 3, SERVED_PART + 70000);   /* of three parts */
    served_expect(&input, SERVED_SIZE, 0);
    cornu__input_close(&input);
}
