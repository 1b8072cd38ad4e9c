#include "http.h"

#include "library.h"

#ifndef CORNU_MICROHTTPD

Http *http_create(const Api *api) { return (void)api, NULL; }
void  http_check(Http *http) { (void)http; }
void  http_finish(Http *http) { (void)http; }

#else

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../clock.h"
#include "connections.h"
#include "listen.h"
#include "unpack.h"

enum {
    BODIES = 32,                       /* how many bodies of the largest size are held at once */
    DISCARDED = 64,                    /* as many MiB of a body that is too large are read, so that
                                          its sender sees the answer; more ends the connection */
    QUIET_S = 1,                       /* of connections without a request, at the end */
    KEPT = 64,                         /* descriptors that connections leave to models */
    STACK = 512 << 10,                 /* bytes for the thread of a connection */
};

typedef enum { ARRIVING, TOO_LARGE, NO_ROOM } Stage;

/* Of the thread of its connection; `computed` is also the batcher's. */
typedef struct {
    ApiRequest             api;
    Http                  *http;
    struct MHD_Connection *connection;
    Connection            *noted;      /* of http->connections */
    char                  *body;
    size_t                 size, space, discarded;
    size_t                 counted;    /* of http->bytes, until the request ends */
    Stage                  stage;
    bool                   computed;
    pthread_mutex_t        lock;
    pthread_cond_t         changed;
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
                                http_library.get_connection_info(connection,
                                    MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
                                (Connection **)kept);
    else
        count = connections_remove(&http->connections, *kept);
    metrics_set(http->api->metrics, METRIC_CONNECTIONS, count);
}

/* Of those that go on, but too slowly; libmicrohttpd closes what is silent for --timeout. */
void http_check(Http *http)
{
    connections_end_slow(&http->connections, 3 * http->api->settings->timeout_s);
}

/* ---- Answers ---- */

static unsigned timeout_of(const Settings *settings)
{
    return (unsigned)(settings->timeout_s + 0.999);
}

static void end_request(void *context, struct MHD_Connection *connection, void **kept,
                        enum MHD_RequestTerminationCode code)
{
    Http    *http = context;
    Request *request = *kept;
    (void)connection, (void)code;
    if (!request) return;
    connections_rest(&http->connections, request->noted);
    atomic_fetch_sub(&http->bytes, (long long)request->counted);
    free(request->body);
    api_free(&request->api);
    pthread_cond_destroy(&request->changed);
    pthread_mutex_destroy(&request->lock);
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
        http_library.create_response_from_buffer(body->length, body->bytes, MHD_RESPMEM_MUST_FREE);
    if (!response) return MHD_NO;
    *body = (Text){ .bytes = NULL };   /* the response frees it */
    http_library.add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (atomic_load(&request->http->ending) || reply->code == CODE_TOO_LARGE)
        http_library.add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    const enum MHD_Result result = http_library.queue_response(request->connection,
                                                      (unsigned)code_http(reply->code), response);
    http_library.destroy_response(response);
    return result;
}

static enum MHD_Result refuse(Request *request, const Problem *problem)
{
    api_refuse(request->http->api, &request->api, problem);
    return answer(request);
}

static enum MHD_Result refuse_body(Request *request)
{
    const double most = request->http->api->settings->max_body_mib;
    Problem      problem;
    if (request->stage == TOO_LARGE)
        problem_set(&problem, CODE_TOO_LARGE, "The body of the request is too large, expected at "
                    "most %g MiB (--max-body)", most);
    else
        problem_set(&problem, CODE_UNAVAILABLE, "No room for the body of the request beside those "
                    "of others, which may take %g MiB together (%d times --max-body)",
                    BODIES * most, BODIES);
    return refuse(request, &problem);
}

/* ---- Bodies ---- */

/* So much more of the body is to be held. */
static bool reserve(void *context, size_t more)
{
    Request     *request = context;
    Http        *http = request->http;
    const double most = http->api->settings->max_body_mib * 1048576;
    const long long all = atomic_fetch_add(&http->bytes, (long long)more) + (long long)more;
    if ((double)all <= BODIES * (most + 4096)) {
        request->counted += more;
        return true;
    }
    atomic_fetch_sub(&http->bytes, (long long)more);
    return false;
}

static bool make_room(Request *request, size_t size)
{
    size_t space = request->space ? 2 * request->space : 4096;
    if (request->size + size <= request->space) return true;
    while (space < request->size + size) space *= 2;
    char *body = reserve(request, space - request->space) ? realloc(request->body, space) : NULL;
    if (!body) return false;
    request->body = body;
    request->space = space;
    return true;
}

/* Keeps a part of the body. MHD_NO closes the connection. */
static enum MHD_Result receive(Request *request, const char *bytes, size_t size)
{
    const Settings *settings = request->http->api->settings;
    const double    most = settings->max_body_mib * 1048576;
    if (clock_seconds() - request->api.begun_s > settings->timeout_s) return MHD_NO;
    if (request->stage == ARRIVING) {
        if ((double)request->size + (double)size > most) request->stage = TOO_LARGE;
        else if (!make_room(request, size)) request->stage = NO_ROOM;
    }
    if (request->stage == ARRIVING) {
        memcpy(request->body + request->size, bytes, size);
        request->size += size;
        return MHD_YES;
    }
    request->discarded += size;
    return (double)request->discarded <= DISCARDED * 1048576.0 + 4 * most ? MHD_YES : MHD_NO;
}

/* A body that came as gzip, in place of what came. */
static bool unpack_body(Request *request, Problem *problem)
{
    char  *unpacked;
    size_t length;
    if (!unpack_is_gzip(http_library.lookup_connection_value(request->connection, MHD_HEADER_KIND,
                                                    MHD_HTTP_HEADER_CONTENT_ENCODING), problem))
        return !problem->code;
    const double most = request->http->api->settings->max_body_mib * 1048576;
    const bool   good = unpack(request->body, request->size, (size_t)most, reserve, request,
                               &unpacked, &length, problem);
    free(request->body);
    request->body = unpacked;
    request->size = length;
    return good;
}

/* ---- Requests ---- */

/* Called by a thread of the batcher. */
static void finish_job(Job *job)
{
    Request *request = (Request *)(void *)((char *)job - offsetof(Request, api) -
                                           offsetof(ApiRequest, job));
    pthread_mutex_lock(&request->lock);
    request->computed = true;
    pthread_cond_signal(&request->changed);
    pthread_mutex_unlock(&request->lock);
}

/* Arrays are made of the body, which is given back; its bytes stay counted, for them. */
static void compute(Request *request, const char *http_method, const char *path)
{
    const Api *api = request->http->api;
    Problem    problem = { .code = CODE_OK };
    bool       waits = false;
    if (request->size && !unpack_body(request, &problem)) api_refuse(api, &request->api, &problem);
    else waits = api_begin(api, &request->api, http_method, path, request->body, request->size);
    free(request->body);
    request->body = NULL;
    if (!waits) return;
    request->api.job.done = finish_job;
    if (!batcher_submit(api->batcher, &request->api.job)) {
        problem_set(&problem, CODE_UNAVAILABLE, "The batch scheduling queue to which this task was "
                    "submitted is full");
        api_refuse(api, &request->api, &problem);
        return;
    }
    pthread_mutex_lock(&request->lock);
    while (!request->computed) pthread_cond_wait(&request->changed, &request->lock);
    pthread_mutex_unlock(&request->lock);
    api_finish(api, &request->api);
}

/* The client's time does not run meanwhile. A client that has shut down its sending side is
 * answered, too: nothing is read until then. */
static enum MHD_Result process(Request *request, const char *http_method, const char *path)
{
    Http *http = request->http;
    connections_busy(&http->connections, request->noted, true);
    http_library.set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
    compute(request, http_method, path);
    http_library.set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                              timeout_of(http->api->settings));
    connections_busy(&http->connections, request->noted, false);
    return answer(request);
}

/* A client that sends Expect: 100-continue waits before it sends a body that is too large. */
static enum MHD_Result begin_request(Http *http, struct MHD_Connection *connection, void **kept)
{
    const char *length = http_library.lookup_connection_value(connection, MHD_HEADER_KIND,
                                                     MHD_HTTP_HEADER_CONTENT_LENGTH);
    Request    *request = calloc(1, sizeof *request);
    if (!(*kept = request)) return MHD_NO;
    const union MHD_ConnectionInfo *info =
        http_library.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    request->http = http;
    request->connection = connection;
    request->noted = info ? info->socket_context : NULL;
    request->api.begun_s = clock_seconds();
    pthread_mutex_init(&request->lock, NULL);
    pthread_cond_init(&request->changed, NULL);
    atomic_fetch_add(&http->requests, 1);
    if (!length || strtod(length, NULL) <= http->api->settings->max_body_mib * 1048576)
        return MHD_YES;
    request->stage = TOO_LARGE;
    return http_library.lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT)
        ? refuse_body(request) : MHD_YES;
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
    return request->stage == ARRIVING ? process(request, method, url) : refuse_body(request);
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
    fputs("cornu serve: ", stderr);
    vfprintf(stderr, format, arguments);
}

/* ---- The daemon ---- */

/* As many as descriptors suffice for: without one to read folders, models could not be looked
 * after. The limit is raised as far as this process may. */
static unsigned most_connections(const Settings *settings)
{
    const rlim_t  wanted = (rlim_t)settings->connections + KEPT;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= wanted)
        return (unsigned)settings->connections;
    files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur >= wanted) return (unsigned)settings->connections;
    const unsigned most = files.rlim_cur > KEPT + 1 ? (unsigned)files.rlim_cur - KEPT : 1;
    fprintf(stderr, "cornu serve: serving at most %u connections at once, not %lld, with %llu "
            "descriptors (ulimit -n)\n", most, (long long)settings->connections,
            (unsigned long long)files.rlim_cur);
    return most;
}

/* By a thread for each connection, which reads a request, makes arrays of it, and waits for its
 * predictions: so a large one keeps no other waiting. By poll: with epoll, version 0.9.75 often
 * misses that a client leaves in the middle of a request, and keeps the connection until the time
 * is over. */
Http *http_create(const Api *api)
{
    const Settings *settings = api->settings;
    Http           *http = calloc(1, sizeof *http);
    if (!http) return NULL;
    http->api = api;
    connections_begin(&http->connections);
    if ((http->listener = listen_on(settings)) >= 0)
        http->daemon = http_library.start_daemon(
            MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC |
                MHD_USE_ERROR_LOG,
            0, NULL, NULL, handle, http,
            MHD_OPTION_EXTERNAL_LOGGER, log_message, http,
            MHD_OPTION_LISTEN_SOCKET, http->listener,
            MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK,
            MHD_OPTION_CONNECTION_LIMIT, most_connections(settings),
            MHD_OPTION_CONNECTION_TIMEOUT, timeout_of(settings),
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
        fputs("cornu serve: libmicrohttpd cannot start\n", stderr);
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
    http_library.quiesce_daemon(http->daemon);
    shutdown(http->listener, SHUT_RDWR);
    await(http, all_answered);
    batcher_end(http->api->batcher);   /* no request waits any more when the daemon stops */
    http_library.stop_daemon(http->daemon);
    close(http->listener);
    connections_end(&http->connections);
    free(http);
}

#endif
