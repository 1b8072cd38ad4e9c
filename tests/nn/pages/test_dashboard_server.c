/* The server of a dashboard by itself: whom it answers, and what a client cannot do to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../nn/pages/dashboard/http_library_internal.h"
#include "../../../nn/pages/dashboard/server_internal.h"
#include "../../expect.h"
#include "../../skip.h"
#include "client.h"

typedef struct {
    CornuListener listener;
    CornuBoard    board;
    CornuServer  *server;
    char          text[CLIENT_TEXT];
} Served;

static int begin(void **state)
{
    Served *served = calloc(1, sizeof *served);
    *state = served;
    if (cornu__http_load()) return 0;
    cornu__board_init(&served->board);
    expect_ok(cornu__listen(&served->listener, NULL, 0));
    served->board.progress.saves = true;
    expect_ok(cornu__server_start(&served->server, &served->listener, &served->board));
    return 0;
}

static int end(void **state)
{
    Served *served = *state;
    if (served->server) {
        cornu__server_end(served->server);
        cornu__listen_close(&served->listener);
        cornu__board_clear(&served->board);
    }
    free(served);
    return 0;
}

static Served *need(void **state)
{
    Served *served = *state;
    if (!served->server) SKIP_FOR("libmicrohttpd: make deps-serve");
    return served;
}

/* ---- Who is answered ---- */

/* The request's lines, "TOKEN" in them being the token. */
static int ask(Served *served, const char *lines)
{
    char        request[2000] = "";
    const char *at = strstr(lines, "TOKEN");
    snprintf(request, sizeof request, "%.*s%s%s", at ? (int)(at - lines) : (int)strlen(lines),
             lines, at ? served->listener.token : "", at ? at + strlen("TOKEN") : "");
    return client_ask(served->listener.url, request, served->text);
}

#define HOST "Host: localhost\r\n"
#define AUTHORIZED "Authorization: Bearer TOKEN\r\n"
#define JSON "Content-Type: application/json\r\n"

static void those_with_the_token_are_answered(void **state)
{
    Served *served = need(state);
    assert_int_equal(ask(served, "GET /?token=TOKEN HTTP/1.1\r\n" HOST "\r\n"), 200);
    assert_non_null(strstr(served->text, "new EventSource"));
    assert_non_null(strstr(served->text, "X-Frame-Options: DENY"));
    assert_null(strstr(served->text, served->listener.token));
    assert_int_equal(ask(served, "GET / HTTP/1.1\r\n" HOST AUTHORIZED "\r\n"), 200);
    assert_int_equal(ask(served, "GET /?token=TOKEN HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"), 200);
    assert_int_equal(ask(served, "GET /?token=TOKEN HTTP/1.1\r\nHost: 127.3.2.1\r\n\r\n"), 200);
    assert_int_equal(ask(served, "POST /control HTTP/1.1\r\n" HOST AUTHORIZED JSON
                         "Origin: http://localhost\r\nContent-Length: 18\r\n\r\n"
                         "{\"action\":\"pause\"}"), 202);
    assert_int_equal(cornu__board_take(&served->board).kind, CORNU__COMMAND_PAUSE);
}

static void strangers_are_refused(void **state)
{
    static const struct { int status; const char *lines; } cases[] = {
        { 403, "GET / HTTP/1.1\r\n" HOST "\r\n" },
        { 403, "GET /?token= HTTP/1.1\r\n" HOST "\r\n" },
        { 403, "GET /?token=070f2088aa239b0272dc67c20ba5985914dbefd659ddd2cb HTTP/1.1\r\n" HOST
               "\r\n" },
        { 403, "GET /?token=TOKENx HTTP/1.1\r\n" HOST "\r\n" },
        { 403, "GET /events HTTP/1.1\r\n" HOST "\r\n" },
        { 403, "GET /?token=TOKEN HTTP/1.1\r\nHost: rebound.example\r\n\r\n" },
        { 403, "GET /?token=TOKEN HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n" },
        { 403, "GET /?token=TOKEN HTTP/1.0\r\n\r\n" },
        { 404, "GET /other?token=TOKEN HTTP/1.1\r\n" HOST "\r\n" },
        { 404, "GET /../etc/passwd?token=TOKEN HTTP/1.1\r\n" HOST "\r\n" },
        { 404, "GET /%2e%2e/etc/passwd?token=TOKEN HTTP/1.1\r\n" HOST "\r\n" },
        { 404, "GET //?token=TOKEN HTTP/1.1\r\n" HOST "\r\n" },
        { 405, "DELETE /?token=TOKEN HTTP/1.1\r\n" HOST "\r\n" },
        { 405, "GET /control HTTP/1.1\r\n" HOST AUTHORIZED "\r\n" },
        { 405, "OPTIONS /control HTTP/1.1\r\n" HOST AUTHORIZED "\r\n" },
        { 405, "POST /events HTTP/1.1\r\n" HOST AUTHORIZED "Content-Length: 0\r\n\r\n" },
        /* A command's token comes in a header alone, from a page of this server. */
        { 403, "POST /control?token=TOKEN HTTP/1.1\r\n" HOST JSON
               "Content-Length: 18\r\n\r\n{\"action\":\"pause\"}" },
        { 403, "POST /control HTTP/1.1\r\n" HOST AUTHORIZED JSON "Origin: http://evil.example\r\n"
               "Content-Length: 18\r\n\r\n{\"action\":\"pause\"}" },
        { 403, "POST /control HTTP/1.1\r\n" HOST AUTHORIZED JSON "Origin: null\r\n"
               "Content-Length: 18\r\n\r\n{\"action\":\"pause\"}" },
        { 415, "POST /control HTTP/1.1\r\n" HOST AUTHORIZED
               "Content-Type: text/plain\r\nContent-Length: 18\r\n\r\n{\"action\":\"pause\"}" },
    };
    Served *served = need(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int got = ask(served, cases[i].lines);
        if (got != cases[i].status)
            fail_msg("%d, not %d: %s", got, cases[i].status, cases[i].lines);
        if (got == 405) assert_non_null(strstr(served->text, "Allow: "));
        assert_null(strstr(served->text, served->listener.token));
    }
    assert_int_equal(cornu__board_take(&served->board).kind, CORNU__COMMAND_NONE);
}

static void commands_are_checked(void **state)
{
    static const struct { int status; const char *json; } cases[] = {
        { 400, "" }, { 400, "pause" }, { 400, "[]" }, { 400, "{}" }, { 400, "{\"action\":1}" },
        { 400, "{\"action\":\"PAUSE\"}" }, { 400, "{\"action\":\"pause\"}x" },
        { 400, "{\"action\":\"pause\",\"action\":\"resume\"}" },
        { 400, "{\"action\":\"learning_rate\"}" },
        { 400, "{\"action\":\"learning_rate\",\"value\":\"0.1\"}" },
        { 400, "{\"action\":\"learning_rate\",\"value\":0}" },
        { 400, "{\"action\":\"learning_rate\",\"value\":-1}" },
        { 400, "{\"action\":\"learning_rate\",\"value\":1e300}" },
        { 409, "{\"action\":\"save\"}" },
    };
    Served     *served = need(state);
    const char *url = served->listener.url;
    pthread_mutex_lock(&served->board.lock);
    served->board.progress.saves = false;
    pthread_mutex_unlock(&served->board.lock);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int got = client_command(url, cases[i].json);
        if (got != cases[i].status) fail_msg("%d, not %d: %s", got, cases[i].status, cases[i].json);
    }
    assert_int_equal(cornu__board_take(&served->board).kind, CORNU__COMMAND_NONE);
    for (int i = 0; i < CORNU__BOARD_COMMANDS; i++)
        assert_int_equal(client_command(url, "{\"action\":\"learning_rate\",\"value\":0.25}"), 202);
    assert_int_equal(client_command(url, "{\"action\":\"resume\"}"), 503);
    for (int i = 0; i < CORNU__BOARD_COMMANDS; i++) {
        const CornuCommand command = cornu__board_take(&served->board);
        assert_int_equal(command.kind, CORNU__COMMAND_LEARNING_RATE);
        assert_true(command.value == 0.25);
    }
    assert_int_equal(cornu__board_take(&served->board).kind, CORNU__COMMAND_NONE);
}

/* A hundred megabytes, with a length and without one: the answer comes, nothing is kept. */
static void large_bodies_are_refused(void **state)
{
    enum { BODY = 100 << 20 };
    Served *served = need(state);
    char   *request = malloc(BODY + 2000);
    assert_non_null(request);
    for (int chunked = 0; chunked < 2; chunked++) {
        const int head = sprintf(request, "POST /control HTTP/1.1\r\n" HOST JSON
                                 "Authorization: Bearer %s\r\n", served->listener.token);
        int       at = head + (chunked ? sprintf(request + head, "Transfer-Encoding: chunked\r\n"
                                                 "\r\n%x\r\n", BODY)
                                       : sprintf(request + head, "Content-Length: %d\r\n\r\n",
                                                 BODY));
        memset(request + at, ' ', BODY);
        strcpy(request + at + BODY, chunked ? "\r\n0\r\n\r\n" : "");
        assert_int_equal(client_ask(served->listener.url, request, served->text), 413);
    }
    free(request);
    assert_int_equal(ask(served, "POST /control HTTP/1.1\r\n" HOST AUTHORIZED JSON
                         "Expect: 100-continue\r\nContent-Length: 104857600\r\n\r\n"), 413);
    assert_null(strstr(served->text, "100 Continue"));
    assert_int_equal(ask(served, "GET /?token=TOKEN HTTP/1.1\r\n" HOST "\r\n"), 200);
}

/* ---- Events ---- */

static void report_of(Served *served, char filler, size_t size)
{
    char *text = malloc(size + 1);
    assert_non_null(text);
    memset(text, filler, size);
    text[0] = text[size - 1] = '"';
    text[size] = '\0';
    expect_ok(cornu__board_report(&served->board, text));
}

static void readers_get_what_is_new(void **state)
{
    Served             *served = need(state);
    const CornuLog      log = { "loss", 0.5 };
    const CornuProgress progress = { .epoch = 2, .epochs = 9, .step = 3, .steps = 7 };
    cornu__board_show(&served->board, &progress, &(CornuLogs){ 1, &log }, 10);
    cornu__board_say(&served->board, "a \"line\" <b>");
    report_of(served, 'r', 20);
    const int early = client_listen(served->listener.url);
    assert_true(client_hears(early, "\"step\":3,\"steps\":7", served->text));
    assert_non_null(strstr(served->text, "Content-Type: text/event-stream"));
    assert_non_null(strstr(served->text, "event: points\ndata: [[10,0.5]]\n\n"));
    assert_non_null(strstr(served->text, "event: report\ndata: \"rrr"));
    assert_non_null(strstr(served->text, "\"text\":\"a \\\"line\\\" <b>\""));
    assert_non_null(strstr(served->text, "\"logs\":{\"loss\":0.5}"));

    cornu__board_say(&served->board, "another");
    assert_true(client_hears(early, "\"number\":2,", served->text));
    assert_null(strstr(served->text, "\"number\":1,"));
    for (int i = 0; i < 3 * CORNU__BOARD_LINES; i++) cornu__board_say(&served->board, "many");
    assert_true(client_hears(early, "\"number\":194,", served->text));
    close(early);
}

static void curves_keep_their_width(void **state)
{
    Served  *served = need(state);
    CornuLog log = { "loss", 1.0 };
    for (int i = 1; i <= 10 * CORNU__BOARD_POINTS; i++)
        cornu__board_show(&served->board, &(CornuProgress){ .epoch = 1 }, &(CornuLogs){ 1, &log },
                          i);
    assert_true(served->board.point_count <= CORNU__BOARD_POINTS);
    assert_int_equal(served->board.points[0].step, 1);
    assert_int_equal(served->board.points[served->board.point_count - 1].step,
                     10 * CORNU__BOARD_POINTS);
    for (int i = 1; i < served->board.point_count; i++)
        assert_true(served->board.points[i].step > served->board.points[i - 1].step);
}

static void there_is_an_end_of_readers(void **state)
{
    enum { READERS = 32 };
    Served *served = need(state);
    int     readers[READERS];
    report_of(served, 'r', 20);
    for (int i = 0; i < READERS; i++) {
        readers[i] = client_listen(served->listener.url);
        assert_true(client_hears(readers[i], "event: report", served->text));
    }
    assert_int_equal(ask(served, "GET /events?token=TOKEN HTTP/1.1\r\n" HOST "\r\n"), 503);
    assert_int_equal(ask(served, "GET /?token=TOKEN HTTP/1.1\r\n" HOST "\r\n"), 200);
    close(readers[0]);
    cornu__board_say(&served->board, "to all");
    for (int i = 1; i < READERS; i++)
        assert_true(client_hears(readers[i], "to all", served->text));
    const int late = client_listen(served->listener.url);
    assert_true(client_hears(late, "to all", served->text));
    close(late);
    for (int i = 1; i < READERS; i++) close(readers[i]);
}

/* All readers have the last events when it ends, and their streams end. */
static void the_last_events_arrive(void **state)
{
    Served   *served = need(state);
    const int reader = client_listen(served->listener.url);
    assert_true(client_hears(reader, "event: progress", served->text));
    report_of(served, 'z', CLIENT_TEXT / 2);
    cornu__board_show(&served->board, &(CornuProgress){ .state = CORNU__BOARD_ENDED }, NULL, 0);
    cornu__server_end(served->server);
    assert_true(client_hears(reader, "\"state\":\"ended\"", served->text));
    assert_non_null(strstr(served->text, "zzzz"));
    assert_true(client_is_dropped(reader, 2));
    close(reader);
    cornu__listen_close(&served->listener);
    cornu__board_clear(&served->board);
    served->server = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(those_with_the_token_are_answered, begin, end),
        cmocka_unit_test_setup_teardown(strangers_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(commands_are_checked, begin, end),
        cmocka_unit_test_setup_teardown(large_bodies_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(readers_get_what_is_new, begin, end),
        cmocka_unit_test_setup_teardown(curves_keep_their_width, begin, end),
        cmocka_unit_test_setup_teardown(there_is_an_end_of_readers, begin, end),
        cmocka_unit_test_setup_teardown(the_last_events_arrive, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
