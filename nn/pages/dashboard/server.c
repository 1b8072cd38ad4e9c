#include "server_internal.h"

#include "http_library_internal.h"

#ifndef CORNU_MICROHTTPD

CornuStatus cornu__server_start(CornuServer **server, const CornuListener *listener,
                                CornuBoard *board)
{
    (void)server, (void)listener, (void)board;
    return cornu__http_load();
}

void cornu__server_end(CornuServer *server) { (void)server; }

#else

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../../../device/memory_internal.h"
#include "../../../device/system/clock_internal.h"
#include "../page_internal.h"
#include "request_internal.h"

enum {
    CONNECTIONS = 64,
    READERS = 32,                  /* of events */
    MEMORY = 16 << 10,             /* bytes of a connection for its request's head and its answer */
    TICK_MS = 100,                 /* from one look at the board to the next */
    SILENT_S = 10,                 /* that a client takes or sends nothing */
    QUIET_S = 5,                   /* without an event, after which a reader gets an empty line */
    REQUEST_S = 20,                /* of a whole request and its answer */
    LAST_S = 5,                    /* at most, for the last events, */
    LAST_MS = 2 * TICK_MS,         /* and to take connections that have been made */
};

/* A connection, from libmicrohttpd's first word of it to its last. */
typedef struct Client {
    int            socket;
    double         since_s;        /* when its last request ended */
    bool           reads;          /* events, which takes as long as it takes */
    struct Client *before, *after;
} Client;

/* Of events: what it has of the board. */
typedef struct Reader {
    CornuServer           *server;
    struct MHD_Connection *connection;
    Client                *client;
    bool                   suspended, has_points;
    double                 sent_s; /* when it got something last */
    int64_t                report, version, line;
    CornuEvent            *sending;
    size_t                 sent;   /* bytes of it */
    struct Reader         *before, *after;
} Reader;

struct CornuServer {
    const CornuListener *listener;
    CornuBoard          *board;
    struct MHD_Daemon   *daemon;
    struct MHD_Response *page;
    pthread_t            thread;
    Client              *clients;
    Reader              *readers;
    int                  reader_count;
    /* The newest that readers get. */
    CornuBoardNews       news;
    CornuEvent          *report, *progress;
    int64_t              report_number, progress_version;
};

/* ---- Answers ---- */

static struct MHD_Response *with_headers(struct MHD_Response *response, const char *type)
{
    const char *const headers[][2] = {
        { "Content-Type", type }, { "Cache-Control", "no-store" },
        { "X-Content-Type-Options", "nosniff" }, { "Referrer-Policy", "no-referrer" },
        { "X-Frame-Options", "DENY" }, { "Cross-Origin-Resource-Policy", "same-origin" },
    };
    for (size_t i = 0; response && i < sizeof headers / sizeof *headers; i++)
        cornu__http.add_response_header(response, headers[i][0], headers[i][1]);
    return response;
}

/* One line of text. */
static enum MHD_Result answer(struct MHD_Connection *connection, const CornuVerdict *verdict)
{
    char                 text[200];
    const int            length = snprintf(text, sizeof text, "%s\n", verdict->why);
    struct MHD_Response *response = with_headers(
        cornu__http.create_response_from_buffer((size_t)length, text, MHD_RESPMEM_MUST_COPY),
        "text/plain; charset=utf-8");
    if (!response) return MHD_NO;
    if (verdict->allow) cornu__http.add_response_header(response, "Allow", verdict->allow);
    if (verdict->status == MHD_HTTP_SERVICE_UNAVAILABLE)
        cornu__http.add_response_header(response, "Retry-After", "2");
    const enum MHD_Result result =
        cornu__http.queue_response(connection, verdict->status, response);
    cornu__http.destroy_response(response);
    return result;
}

/* ---- Readers of events ---- */

/* The next event for the reader; NULL: it has all. */
static CornuEvent *next_event(Reader *reader)
{
    CornuServer *server = reader->server;
    CornuEvent  *line;
    if (!reader->has_points) {
        reader->has_points = true;
        return cornu__board_points_event(server->board);
    }
    if (reader->report < server->report_number) {
        reader->report = server->report_number;
        return cornu__event_hold(server->report);
    }
    if ((line = cornu__board_line_event(server->board, &reader->line))) return line;
    if (reader->version == server->progress_version) return NULL;
    reader->version = server->progress_version;
    return cornu__event_hold(server->progress);
}

static bool has_news(const Reader *reader)
{
    const CornuServer *server = reader->server;
    return reader->report < server->report_number || reader->line < server->news.last_line ||
           reader->version != server->progress_version;
}

static bool is_quiet(const Reader *reader)
{
    return cornu__seconds() - reader->sent_s > QUIET_S;
}

/* Called by libmicrohttpd when there is space for `most` bytes. An empty line is no event: whoever
 * is gone is found by it, and not counted as a reader any more. */
static ssize_t read_events(void *context, uint64_t at, char *to, size_t most)
{
    Reader *reader = context;
    (void)at;
    if (!reader->sending && !(reader->sending = next_event(reader))) {
        if (reader->server->news.ending) return MHD_CONTENT_READER_END_OF_STREAM;
        if (is_quiet(reader)) {
            reader->sent_s = cornu__seconds();
            *to = '\n';
            return 1;
        }
        reader->suspended = true;
        cornu__http.suspend_connection(reader->connection);
        return 0;
    }
    const size_t left = reader->sending->size - reader->sent, size = left < most ? left : most;
    memcpy(to, reader->sending->bytes + reader->sent, size);
    reader->sent += size;
    reader->sent_s = cornu__seconds();
    if (size == left) {
        cornu__event_drop(reader->sending);
        reader->sending = NULL;
        reader->sent = 0;
    }
    return (ssize_t)size;
}

static void free_reader(void *context)
{
    Reader *reader = context;
    if (reader->after) reader->after->before = reader->before;
    *(reader->before ? &reader->before->after : &reader->server->readers) = reader->after;
    reader->server->reader_count--;
    cornu__event_drop(reader->sending);
    cornu__release(reader);
}

static enum MHD_Result begin_reading(CornuServer *server, struct MHD_Connection *connection,
                                     Client *client)
{
    if (server->reader_count >= READERS)
        return answer(connection, &(CornuVerdict){ MHD_HTTP_SERVICE_UNAVAILABLE,
                                                   "too many browsers read this page", NULL });
    Reader *reader = cornu__allocate(1, sizeof *reader);
    if (!reader) return MHD_NO;
    *reader = (Reader){ .server = server, .connection = connection, .client = client,
                        .version = -1, .sent_s = cornu__seconds(), .after = server->readers };
    if (reader->after) reader->after->before = reader;
    server->readers = reader;
    server->reader_count++;
    struct MHD_Response *response = cornu__http.create_response_from_callback(
        MHD_SIZE_UNKNOWN, MEMORY / 4, read_events, reader, free_reader);
    if (!response) {
        free_reader(reader);
        return MHD_NO;
    }
    if (client) client->reads = true;
    with_headers(response, "text/event-stream");
    const enum MHD_Result result = cornu__http.queue_response(connection, MHD_HTTP_OK, response);
    cornu__http.destroy_response(response);   /* with its last reference the reader goes */
    return result;
}

/* ---- Requests ---- */

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
    return cornu__http.lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static Client *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        cornu__http.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* Of the head: what is wrong is answered when the body has come, so that its sender reads the
 * answer; at once if it waits for leave to send it. */
static enum MHD_Result begin_request(const CornuServer *server, struct MHD_Connection *connection,
                                     const char *path, const char *method, void **kept)
{
    CornuRequest *request = cornu__allocate(1, sizeof *request);
    if (!(*kept = request)) return MHD_NO;
    request->head = (CornuRequestHead){
        .path = path, .method = method, .host = header_of(connection, MHD_HTTP_HEADER_HOST),
        .origin = header_of(connection, MHD_HTTP_HEADER_ORIGIN),
        .type = header_of(connection, MHD_HTTP_HEADER_CONTENT_TYPE),
        .length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH),
        .authorization = header_of(connection, MHD_HTTP_HEADER_AUTHORIZATION),
        .token = cornu__http.lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token"),
    };
    cornu__request_check(request, server->listener);
    return request->verdict.status && header_of(connection, MHD_HTTP_HEADER_EXPECT)
               ? answer(connection, &request->verdict) : MHD_YES;
}

static enum MHD_Result finish_request(CornuServer *server, struct MHD_Connection *connection,
                                      CornuRequest *request)
{
    if (!request->verdict.status) switch (request->target) {
    case CORNU__TARGET_PAGE:
        return cornu__http.queue_response(connection, MHD_HTTP_OK, server->page);
    case CORNU__TARGET_EVENTS:
        return begin_reading(server, connection, client_of(connection));
    case CORNU__TARGET_CONTROL:
        cornu__request_control(request, server->board);
    }
    return answer(connection, &request->verdict);
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *body,
                              size_t *size, void **kept)
{
    CornuRequest *request = *kept;
    (void)version;
    if (!request) return begin_request(context, connection, path, method, kept);
    if (*size == 0) return finish_request(context, connection, request);
    const bool goes_on = cornu__request_body(request, body, *size);
    *size = 0;
    return goes_on ? MHD_YES : MHD_NO;
}

static void end_request(void *context, struct MHD_Connection *connection, void **kept,
                        enum MHD_RequestTerminationCode code)
{
    Client *client = client_of(connection);
    (void)context, (void)code;
    if (client) client->since_s = cornu__seconds();
    if (client) client->reads = false;
    cornu__release(*kept);
    *kept = NULL;
}

/* ---- Connections ---- */

static void note_client(void *context, struct MHD_Connection *connection, void **kept,
                        enum MHD_ConnectionNotificationCode code)
{
    CornuServer *server = context;
    Client      *client = *kept;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        if (!(*kept = client = cornu__allocate(1, sizeof *client))) return;
        *client = (Client){ .socket = cornu__http.get_connection_info(connection,
                                MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
                            .since_s = cornu__seconds(), .after = server->clients };
        if (client->after) client->after->before = client;
        server->clients = client;
    } else if (client) {
        if (client->after) client->after->before = client->before;
        *(client->before ? &client->before->after : &server->clients) = client->after;
        cornu__release(client);
    }
}

/* Those that go on, but too slowly; libmicrohttpd closes what is silent. */
static void end_slow(const CornuServer *server)
{
    const double now_s = cornu__seconds();
    for (const Client *client = server->clients; client; client = client->after)
        if (!client->reads && now_s - client->since_s > REQUEST_S)
            shutdown(client->socket, SHUT_RDWR);
}

/* ---- The thread ---- */

/* Makes the events of what has changed, and wakes the readers that have not got them. */
static void spread_news(CornuServer *server)
{
    CornuEvent *report = cornu__board_take_report(server->board);
    server->news = cornu__board_news(server->board);
    if (report) {
        cornu__event_drop(server->report);
        server->report = report;
        server->report_number++;
    }
    if (server->readers && server->progress_version != server->news.version) {
        CornuEvent *progress = cornu__board_progress_event(server->board);
        if (progress) {
            cornu__event_drop(server->progress);
            server->progress = progress;
            server->progress_version = server->news.version;
        }
    }
    for (Reader *reader = server->readers; reader; reader = reader->after)
        if (reader->suspended && (has_news(reader) || is_quiet(reader) || server->news.ending)) {
            reader->suspended = false;
            cornu__http.resume_connection(reader->connection);
        }
}

static void *serve(void *context)
{
    CornuServer *server = context;
    double       ending_s = 0.0;
    for (;;) {
        spread_news(server);
        end_slow(server);
        const double now_s = cornu__seconds();
        if (server->news.ending && ending_s == 0.0) ending_s = now_s;
        if (server->news.ending && now_s - ending_s > (server->readers ? LAST_S : 1e-3 * LAST_MS))
            break;
        if (cornu__http.run_wait(server->daemon, TICK_MS) != MHD_YES) poll(NULL, 0, TICK_MS);
    }
    return NULL;
}

/* No signal is this thread's: handlers run where the program expects them, and SIGPIPE nowhere. */
static CornuStatus start_thread(CornuServer *server)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&server->thread, NULL, serve, server);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? cornu__fail(CORNU_ERR_BUSY, "dashboard: no thread for the server: %s",
                                strerror(failed))
                  : CORNU_OK;
}

/* The page is without data, which come as an event. */
static CornuStatus make_page(CornuServer *server)
{
    static const char *const scripts[] = { "graph.js", "report.js", "dashboard.js", NULL };
    size_t                   size;
    json_t *none = json_object();
    char   *page = none ? cornu__page_text(scripts, none, &size) : NULL;
    json_decref(none);
    if (!page) return cornu__fail(CORNU_ERR_MEMORY, "dashboard: no memory for the page");
    server->page = with_headers(
        cornu__http.create_response_from_buffer(size, page, MHD_RESPMEM_MUST_FREE),
        "text/html; charset=utf-8");
    if (server->page) return CORNU_OK;
    free(page);
    return cornu__fail(CORNU_ERR_MEMORY, "dashboard: no memory for the page");
}

static CornuStatus start_daemon(CornuServer *server)
{
    server->daemon = cornu__http.start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, server,
        MHD_OPTION_LISTEN_SOCKET, server->listener->socket,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENT_S,
        MHD_OPTION_NOTIFY_CONNECTION, note_client, server,
        MHD_OPTION_NOTIFY_COMPLETED, end_request, server,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_END);
    return server->daemon ? CORNU_OK : cornu__fail(CORNU_ERR_BUSY, "dashboard: libmicrohttpd "
                                                   "cannot start");
}

/* What is there of it: the daemon may lack. libmicrohttpd keeps the listener open. */
static void release(CornuServer *server)
{
    for (Reader *reader = server->readers; reader; reader = reader->after)
        if (reader->suspended) cornu__http.resume_connection(reader->connection);
    if (server->daemon) cornu__http.stop_daemon(server->daemon);
    if (server->page) cornu__http.destroy_response(server->page);
    cornu__event_drop(server->report);
    cornu__event_drop(server->progress);
    cornu__release(server);
}

CornuStatus cornu__server_start(CornuServer **server, const CornuListener *listener,
                                CornuBoard *board)
{
    *server = NULL;
    CORNU__TRY(cornu__http_load());
    CornuServer *made = cornu__allocate(1, sizeof *made);
    if (!made) return CORNU_ERR_MEMORY;
    made->listener = listener;
    made->board = board;
    made->progress_version = -1;
    CornuStatus status = make_page(made);
    if (!status) status = start_daemon(made);
    if (!status) status = start_thread(made);
    if (status) release(made);
    else *server = made;
    return status;
}

void cornu__server_end(CornuServer *server)
{
    if (!server) return;
    pthread_mutex_lock(&server->board->lock);
    server->board->ending = true;
    pthread_mutex_unlock(&server->board->lock);
    pthread_join(server->thread, NULL);
    release(server);
}

#endif
