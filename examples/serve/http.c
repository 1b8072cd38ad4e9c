#include "http.h"

#include <stdio.h>

#ifndef CORNU_MICROHTTPD

bool http_available(void)
{
    fputs("cornu_serve: was built without libmicrohttpd; install libmicrohttpd-dev and run make "
          "again\n", stderr);
    return false;
}

Http *http_create(const Api *api) { return (void)api, NULL; }
void  http_check(Http *http) { (void)http; }
void  http_finish(Http *http) { (void)http; }

#else

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "clock.h"
#include "connections.h"
#include "listen.h"

enum {
    BODIES = 32,                       /* how many bodies of the largest size are held at once */
    DISCARDED = 64,                    /* as many MiB of a body that is too large are read, so that
                                          its sender sees the answer; more ends the connection */
    QUIET_S = 1,                       /* of connections without a request, at the end */
};

typedef enum { ARRIVING, TOO_LARGE, WAITING, ANSWERED } Stage;

typedef struct {
    ApiRequest             api;
    Http                  *http;
    struct MHD_Connection *connection;
    Connection            *noted;      /* of http->connections */
    char                  *body;
    size_t                 size, space, discarded;
    atomic_int             stage;
} Request;

struct Http {
    const Api         *api;
    struct MHD_Daemon *daemon;
    int                listener;
    atomic_bool        started, ending;
    atomic_llong       bytes;          /* of all bodies */
    atomic_int         requests;       /* that have begun and not ended */
    Connections        connections;
};

bool http_available(void) { return true; }

/* ---- Connections ---- */

static void note_connection(void *context, struct MHD_Connection *connection, void **kept,
                            enum MHD_ConnectionNotificationCode code)
{
    Http *http = context;
    int   count;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        count = connections_add(&http->connections,
                                MHD_get_connection_info(connection,
                                    MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
                                (Connection **)kept);
    else
        count = connections_remove(&http->connections, *kept);
    metrics_set(http->api->metrics, METRIC_CONNECTIONS, count);
}

/* libmicrohttpd closes what is silent for --timeout; what trickles is closed here. */
void http_check(Http *http)
{
    connections_end_slow(&http->connections, 3 * http->api->settings->timeout_s);
}

/* ---- Requests ---- */

static void end_request(void *context, struct MHD_Connection *connection, void **kept,
                        enum MHD_RequestTerminationCode code)
{
    Http    *http = context;
    Request *request = *kept;
    (void)connection, (void)code;
    if (!request) return;
    connections_rest(&http->connections, request->noted);
    atomic_fetch_sub(&http->bytes, (long long)request->space);
    free(request->body);
    api_free(&request->api);
    free(request);
    *kept = NULL;
    atomic_fetch_sub(&http->requests, 1);
}

static enum MHD_Result answer(Request *request)
{
    Reply      *reply = &request->api.reply;
    Text       *body = &reply->body;
    const char *type = reply->type ? reply->type : "application/json";
    if (body->failed) return MHD_NO;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(body->length, body->bytes, MHD_RESPMEM_MUST_FREE);
    if (!response) return MHD_NO;
    *body = (Text){ .bytes = NULL };   /* the response frees it */
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (atomic_load(&request->http->ending) || reply->code == CODE_TOO_LARGE)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    const enum MHD_Result result = MHD_queue_response(request->connection,
                                                      (unsigned)code_http(reply->code), response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(Request *request, const Problem *problem)
{
    api_refuse(request->http->api, &request->api, problem);
    return answer(request);
}

static enum MHD_Result refuse_large(Request *request)
{
    Problem problem;
    problem_set(&problem, CODE_TOO_LARGE, "The body of the request is too large, expected at most "
                "%g MiB (--max-body)", request->http->api->settings->max_body_mib);
    return refuse(request, &problem);
}

/* Called by a thread of the batcher. */
static void finish_job(Job *job)
{
    Request *request = (Request *)(void *)((char *)job - offsetof(Request, api) -
                                           offsetof(ApiRequest, job));
    api_finish(request->http->api, &request->api);
    struct MHD_Connection *connection = request->connection;
    atomic_store(&request->stage, ANSWERED);
    MHD_resume_connection(connection);
}

static enum MHD_Result process(Request *request, const char *http_method, const char *path)
{
    Http *http = request->http;
    if (!api_begin(http->api, &request->api, http_method, path, request->body, request->size))
        return answer(request);
    request->api.job.done = finish_job;
    atomic_store(&request->stage, WAITING);
    connections_busy(&http->connections, request->noted, true);
    MHD_suspend_connection(request->connection);
    if (batcher_submit(http->api->batcher, &request->api.job)) return MHD_YES;
    Problem problem;
    problem_set(&problem, CODE_UNAVAILABLE, "The batch scheduling queue to which this task was "
                "submitted is full");
    api_refuse(http->api, &request->api, &problem);
    atomic_store(&request->stage, ANSWERED);
    MHD_resume_connection(request->connection);
    return MHD_YES;
}

/* Keeps a part of the body. MHD_NO closes the connection. */
static enum MHD_Result receive(Request *request, const char *bytes, size_t size)
{
    Http           *http = request->http;
    const Settings *settings = http->api->settings;
    const double    most = settings->max_body_mib * 1048576;
    if (clock_seconds() - request->api.begun_s > settings->timeout_s) return MHD_NO;
    if (atomic_load(&request->stage) == TOO_LARGE ||
        (double)request->size + (double)size > most) {
        atomic_store(&request->stage, TOO_LARGE);
        request->discarded += size;
        return (double)request->discarded <= DISCARDED * 1048576.0 + 4 * most ? MHD_YES : MHD_NO;
    }
    if (request->size + size > request->space) {
        size_t space = request->space ? 2 * request->space : 4096;
        while (space < request->size + size) space *= 2;
        const long long more = (long long)(space - request->space);
        const long long all = atomic_fetch_add(&http->bytes, more) + more;
        char           *body = NULL;
        if ((double)all <= BODIES * (most + 4096)) body = realloc(request->body, space);
        if (!body) {
            atomic_fetch_sub(&http->bytes, more);
            return MHD_NO;
        }
        request->body = body;
        request->space = space;
    }
    memcpy(request->body + request->size, bytes, size);
    request->size += size;
    return MHD_YES;
}

/* A client that sends Expect: 100-continue waits before it sends a body that is too large. */
static enum MHD_Result begin_request(Http *http, struct MHD_Connection *connection, void **kept)
{
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                     MHD_HTTP_HEADER_CONTENT_LENGTH);
    Request    *request = calloc(1, sizeof *request);
    if (!(*kept = request)) return MHD_NO;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    request->http = http;
    request->connection = connection;
    request->noted = info ? info->socket_context : NULL;
    request->api.begun_s = clock_seconds();
    atomic_init(&request->stage, ARRIVING);
    atomic_fetch_add(&http->requests, 1);
    if (!length || strtod(length, NULL) <= http->api->settings->max_body_mib * 1048576)
        return MHD_YES;
    atomic_store(&request->stage, TOO_LARGE);
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT)
        ? refuse_large(request) : MHD_YES;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **kept)
{
    Request *request = *kept;
    (void)version;
    if (!request) return begin_request(context, connection, kept);
    if (*size > 0) {
        const enum MHD_Result result = receive(request, data, *size);
        *size = 0;
        return result;
    }
    switch (atomic_load(&request->stage)) {
    case TOO_LARGE: return refuse_large(request);
    case ANSWERED:
        connections_busy(&request->http->connections, request->noted, false);
        return answer(request);
    case WAITING:   return MHD_YES;
    default:        return process(request, method, url);
    }
}

/* Paths are decoded part by part, since a name may have a slash. */
static size_t keep_escapes(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context, (void)connection;
    return strlen(text);
}

/* Why the daemon does not start. Later on each client that leaves too early would have a line. */
static void log_message(void *context, const char *format, va_list arguments)
{
    const Http *http = context;
    if (atomic_load(&http->started)) return;
    fputs("cornu_serve: ", stderr);
    vfprintf(stderr, format, arguments);
}

/* ---- The daemon ---- */

/* By poll: with epoll, version 0.9.75 often misses that a client leaves in the middle of a request,
 * and keeps the connection until the time is over. */
Http *http_create(const Api *api)
{
    const Settings *settings = api->settings;
    const long      processors = sysconf(_SC_NPROCESSORS_ONLN);
    Http           *http = calloc(1, sizeof *http);
    if (!http) return NULL;
    http->api = api;
    connections_begin(&http->connections);
    if ((http->listener = listen_on(settings)) >= 0)
        http->daemon = MHD_start_daemon(
            MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME |
                MHD_USE_ERROR_LOG,
            0, NULL, NULL, handle, http,
            MHD_OPTION_EXTERNAL_LOGGER, log_message, http,
            MHD_OPTION_LISTEN_SOCKET, http->listener,
            MHD_OPTION_THREAD_POOL_SIZE, (unsigned)(processors > 4 ? 4 : processors < 2 ? 2
                                                                       : processors),
            MHD_OPTION_CONNECTION_LIMIT, (unsigned)settings->connections,
            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(settings->timeout_s + 0.999),
            MHD_OPTION_NOTIFY_CONNECTION, note_connection, http,
            MHD_OPTION_NOTIFY_COMPLETED, end_request, http,
            MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
            MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
            MHD_OPTION_END);
    if (http->daemon) {
        atomic_store(&http->started, true);
        listen_print(http->listener);
        return http;
    }
    if (http->listener >= 0) {
        fputs("cornu_serve: libmicrohttpd cannot start\n", stderr);
        close(http->listener);
    }
    connections_end(&http->connections);
    free(http);
    return NULL;
}

/* Waits until it is over, at most --timeout. */
static void await(Http *http, bool (*over)(Http *http))
{
    const double until_s = clock_seconds() + http->api->settings->timeout_s;
    while (!over(http) && clock_seconds() < until_s) poll(NULL, 0, 5);
}

static bool none_to_accept(Http *http) { return listen_empty(http->listener); }

/* All requests are answered, and the connections closed or quiet. */
static bool all_answered(Http *http)
{
    return atomic_load(&http->requests) == 0 && connections_quiet(&http->connections, QUIET_S);
}

/* Connections that the kernel has made are still accepted: their requests may have arrived. */
void http_finish(Http *http)
{
    connections_rest(&http->connections, NULL);
    atomic_store(&http->ending, true);
    listen_no_more(http->listener);
    await(http, none_to_accept);
    MHD_quiesce_daemon(http->daemon);
    shutdown(http->listener, SHUT_RDWR);
    await(http, all_answered);
    batcher_end(http->api->batcher);   /* no request waits any more when the daemon stops */
    MHD_stop_daemon(http->daemon);
    close(http->listener);
    connections_end(&http->connections);
    free(http);
}

#endif
