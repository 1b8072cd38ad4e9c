/* The server of a dashboard and clients that take their time: each is dropped within a bound, and
 * holds up none.
 *
 * tests/run: waits, in check
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../device/system/clock_internal.h"
#include "../../../nn/pages/dashboard/http_library_internal.h"
#include "../../../nn/pages/dashboard/server_internal.h"
#include "../../expect.h"
#include "../../skip.h"
#include "client.h"

enum { CONNECTIONS = 64, SILENT_S = 10, REQUEST_S = 20 };   /* of server.c */

static CornuListener listener;
static CornuBoard    board;
static CornuServer  *server;
static char          text[CLIENT_TEXT];

static int begin(void **state)
{
    (void)state;
    if (cornu__http_load()) return 0;
    cornu__board_init(&board);
    expect_ok(cornu__listen(&listener, NULL, 0));
    expect_ok(cornu__server_start(&server, &listener, &board));
    return 0;
}

static int end(void **state)
{
    (void)state;
    cornu__server_end(server);
    if (server) cornu__listen_close(&listener);
    if (server) cornu__board_clear(&board);
    server = NULL;
    return 0;
}

static void need_http(void)
{
    if (!server) SKIP_FOR("libmicrohttpd: make deps-serve");
}

static int get_page(void)
{
    char request[300];
    snprintf(request, sizeof request, "GET /?token=%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
             listener.token);
    return client_ask(listener.url, request, text);
}

static void report_of(char filler, size_t size)
{
    char *json = malloc(size + 1);
    assert_non_null(json);
    memset(json, filler, size);
    json[0] = json[size - 1] = '"';
    json[size] = '\0';
    expect_ok(cornu__board_report(&board, json));
}

/* Until the end of the report has come, CLIENT_TEXT bytes at a time. */
static void hear_end_of(int reader, char filler)
{
    const char end[] = { filler, filler, filler, '"', '\n', '\0' };
    for (int i = 0; i < 20; i++)
        if (client_hears(reader, end, text)) return;
    fail_msg("the end of report %c has not come", filler);
}

/* One takes nothing while reports of 8 MB come, as fast as another takes them: that one gets the
 * last of them, and the first one is gone. */
static void a_reader_that_stops_is_dropped(void **state)
{
    (void)state;
    need_http();
    const int stopped = client_listen(listener.url), reader = client_listen(listener.url);
    for (char filler = 'a'; filler <= 'f'; filler++) {
        report_of(filler, 8 << 20);
        hear_end_of(reader, filler);
    }
    const double begun_s = cornu__seconds();
    poll(NULL, 0, 1000 * (SILENT_S + 4));
    cornu__board_say(&board, "still here");
    assert_true(client_hears(reader, "still here", text));
    /* What the kernel had is read, and then the end. */
    assert_true(client_is_dropped(stopped, 2));
    assert_true(cornu__seconds() - begun_s < SILENT_S + 10);
    close(stopped);
    close(reader);
}

/* Readers go and come while nothing happens, as in a pause: those that are gone are not counted. */
static void readers_go_in_a_pause(void **state)
{
    enum { READERS = 32 };      /* of server.c */
    (void)state;
    need_http();
    for (int i = 0; i < READERS; i++) {
        const int reader = client_listen(listener.url);
        assert_true(client_hears(reader, "event: progress", text));
        close(reader);
    }
    const double begun_s = cornu__seconds();
    bool         heard = false;
    while (!heard && cornu__seconds() - begun_s < SILENT_S + 5) {
        const int reader = client_listen(listener.url);
        heard = client_hears(reader, "event: progress", text);
        close(reader);
        poll(NULL, 0, 500);
    }
    assert_true(heard);
}

/* A byte a second, of a head that never ends: closed after REQUEST_S, although never silent. */
static void a_request_may_not_take_for_ever(void **state)
{
    (void)state;
    need_http();
    const int    fd = client_connect(listener.url);
    const double begun_s = cornu__seconds();
    bool         gone = false;
    assert_true(send(fd, "GET / HTTP/1.1\r\nX: ", 19, MSG_NOSIGNAL) == 19);
    while (!gone && cornu__seconds() - begun_s < REQUEST_S + 10)
        gone = client_is_dropped(fd, 1) || send(fd, "x", 1, MSG_NOSIGNAL) != 1;
    assert_true(gone);
    assert_true(cornu__seconds() - begun_s > REQUEST_S - 2);
    close(fd);
}

/* As many as it takes, all silent: once they are dropped others are answered. */
static void all_connections_taken(void **state)
{
    (void)state;
    need_http();
    int          taken[CONNECTIONS + 10];
    const double begun_s = cornu__seconds();
    for (int i = 0; i < CONNECTIONS + 10; i++) {
        taken[i] = client_connect(listener.url);
        assert_true(taken[i] >= 0);
    }
    int status = 0;
    while (status != 200 && cornu__seconds() - begun_s < 3 * SILENT_S) status = get_page();
    assert_int_equal(status, 200);
    for (int i = 0; i < CONNECTIONS; i++) assert_true(client_is_dropped(taken[i], 2 * SILENT_S));
    for (int i = 0; i < CONNECTIONS + 10; i++) close(taken[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_reader_that_stops_is_dropped, begin, end),
        cmocka_unit_test_setup_teardown(readers_go_in_a_pause, begin, end),
        cmocka_unit_test_setup_teardown(a_request_may_not_take_for_ever, begin, end),
        cmocka_unit_test_setup_teardown(all_connections_taken, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
