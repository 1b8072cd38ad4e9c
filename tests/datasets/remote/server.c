#define _DEFAULT_SOURCE    /* usleep */

#include "server.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FILES = 8, REQUEST = 4096 };

typedef struct {
    char        name[64];
    const char *bytes;
    size_t      size;
} File;

static File            files[FILES];
static int             file_count, listener = -1, port, requests;
static char            requests_log[SERVER_LOG];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t       accepting;
static atomic_int      answering;

/* ---- What it has, and was asked ---- */

void server_file(const char *name, const void *bytes, size_t size)
{
    pthread_mutex_lock(&lock);
    if (file_count == FILES) abort();
    files[file_count] = (File){ .bytes = bytes, .size = size };
    snprintf(files[file_count++].name, sizeof files->name, "%s", name);
    pthread_mutex_unlock(&lock);
}

void server_forget(void)
{
    pthread_mutex_lock(&lock);
    file_count = 0;
    pthread_mutex_unlock(&lock);
    server_forget_log();
}

/* A copy: a client that ended early leaves its answer running while the files change. */
static bool find(const char *name, File *file)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < file_count; i++)
        if (!strcmp(files[i].name, name)) *file = files[i], found = true;
    pthread_mutex_unlock(&lock);
    return found;
}

static int note(const char *target, const char *range)
{
    pthread_mutex_lock(&lock);
    const size_t used = strlen(requests_log);
    snprintf(requests_log + used, sizeof requests_log - used, "GET %s %s\n", target, range);
    const int number = ++requests;
    pthread_mutex_unlock(&lock);
    return number;
}

const char *server_log(void)
{
    static char until_now[SERVER_LOG];
    pthread_mutex_lock(&lock);
    memcpy(until_now, requests_log, sizeof until_now);
    pthread_mutex_unlock(&lock);
    return until_now;
}

int server_requests(void)
{
    pthread_mutex_lock(&lock);
    const int count = requests;
    pthread_mutex_unlock(&lock);
    return count;
}

void server_forget_log(void)
{
    pthread_mutex_lock(&lock);
    requests = 0;
    requests_log[0] = '\0';
    pthread_mutex_unlock(&lock);
}

int server_port(void) { return port; }

const char *server_url(const char *behaviour, const char *name)
{
    static char urls[4][512];
    static int  next;
    char       *url = urls[next++ % 4];
    snprintf(url, 512, "http://127.0.0.1:%d/%s/%s", port, behaviour, name);
    return url;
}

/* ---- Answers ---- */

typedef struct {
    int         client, number;
    char        text[REQUEST], target[512], behaviour[64], name[256], query[128], range[64];
    long long   first, last;    /* of the range; -1: none */
} Request;

static bool send_all(int client, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t sent = send(client, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

static void say(int client, const char *text) { send_all(client, text, strlen(text)); }

static bool is(const Request *request, const char *behaviour)
{
    return !strcmp(request->behaviour, behaviour);
}

static void refuse(const Request *request, int code)
{
    char header[160];
    snprintf(header, sizeof header, "HTTP/1.1 %d No\r\nContent-Length: 6\r\nContent-Range: "
             "bytes */%d\r\nConnection: close\r\n\r\nsecret", code, code == 416 ? 0 : 1);
    say(request->client, header);
}

static void send_endlessly(int client, const char *bytes, size_t size)
{
    while (send_all(client, bytes, size)) continue;
}

static void wait_for_end(int client)
{
    char byte;
    while (recv(client, &byte, 1, 0) > 0) continue;
}

static void send_body(const Request *request, const char *bytes, size_t size)
{
    const size_t half = size / 2 < 50000 ? size / 2 : 50000;
    if (is(request, "cut")) {
        send_all(request->client, bytes, size < 50001 ? size : 50001);
    } else if (is(request, "stalled") && request->number > 1) {
        send_all(request->client, bytes, half);
        wait_for_end(request->client);
    } else if (is(request, "longer")) {
        send_endlessly(request->client, bytes, size);
    } else if (!is(request, "never") || request->number == 1) {
        send_all(request->client, bytes, size);
    }
}

static void send_file(const Request *request, const File *file)
{
    char       header[512], range[128] = "";
    const bool late = request->number > 2;
    const bool ranged = request->first >= 0 && !is(request, "whole");
    size_t     first = ranged ? (size_t)request->first : 0;
    size_t     last = ranged && (size_t)request->last < file->size ? (size_t)request->last
                                                                  : file->size - 1;
    if (ranged && first >= file->size) {
        refuse(request, 416);
        return;
    }
    if (is(request, "shifted")) first++, last++;
    const size_t total = file->size + (late && is(request, "grown"));
    if (ranged)
        snprintf(range, sizeof range, "Content-Range: bytes %zu-%zu/%zu\r\n", first, last, total);
    const char *etag = is(request, "undated") || is(request, "dated") ? ""
        : late && is(request, "changed") ? "ETag: \"two\"\r\n" : "ETag: \"one\"\r\n";
    snprintf(header, sizeof header, "HTTP/1.1 %s\r\n%s%s%sContent-Length: %zu\r\n"
             "Connection: close\r\n\r\n", ranged ? "206 Partial Content" : "200 OK", range, etag,
             is(request, "dated") ? "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n" : "",
             file->size ? last - first + 1 : 0);
    say(request->client, header);
    if (file->size) send_body(request, file->bytes + first, last - first + 1);
}

/* Whether what an answer needs is there. */
static bool is_allowed(const Request *request)
{
    const bool token = strstr(request->text, "Authorization: Bearer letters\r\n") != NULL;
    const bool query = !strcmp(request->query, "secret=letters");
    if (is(request, "token")) return token;
    if (is(request, "query")) return query;
    return !is(request, "closed") || token || query;
}

static void list(const Request *request, bool json)
{
    const bool second = strstr(request->target, "oken=next") && !strstr(request->target, "circle");
    const char *body = json
        ? second ? "{\"items\": [{\"name\": \"b/x-1\"}, {\"name\": \"b/y\"}]}"
                 : "{\"items\": [{\"name\": \"b/x-2\"}], \"nextPageToken\": \"next\"}"
        : second ? "<ListBucketResult><Contents><Key>b/x-1</Key></Contents><Contents><Key>b/y&amp;"
                   "</Key></Contents></ListBucketResult>"
                 : "<?xml?>\n<ListBucketResult xmlns=\"a\"><NextContinuationToken>next"
                   "</NextContinuationToken><Contents><Key>b/x-2</Key></Contents>"
                   "</ListBucketResult>";
    char header[128];
    snprintf(header, sizeof header, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", strlen(body));
    say(request->client, header);
    say(request->client, body);
}

static void misbehave(const Request *request)
{
    char location[400];
    if (is(request, "moved") || is(request, "circle")) {
        snprintf(location, sizeof location, "HTTP/1.1 302 Found\r\nLocation: /%s/%s\r\n"
                 "Content-Length: 3\r\n\r\nhop", is(request, "moved") ? "ranges" : "circle",
                 request->name);
        say(request->client, location);
    } else if (is(request, "header")) {
        say(request->client, "HTTP/1.1 200 OK\r\n");
        send_endlessly(request->client, "A: b\r\n", 6);
    } else {
        say(request->client, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        send_endlessly(request->client, "endless", 7);
    }
}

static void answer(const Request *request)
{
    File       file = { .bytes = NULL };
    const bool there = find(request->name, &file);
    const int  code = atoi(request->behaviour);
    if (!strncmp(request->target, "/storage/v1/b/bucket/o?", 23)) list(request, true);
    else if (strstr(request->query, "list-type=2")) list(request, false);
    else if (code) refuse(request, code);
    else if (is(request, "flaky") && request->number % 3) refuse(request, 503);
    else if (is(request, "vanished") && request->number > 2) refuse(request, 416);
    else if (!is_allowed(request)) refuse(request, is(request, "token") ? 401 : 403);
    else if (is(request, "moved") || is(request, "circle") || is(request, "header") ||
             is(request, "endless")) misbehave(request);
    else if (there) send_file(request, &file);
    else refuse(request, 404);
}

static void *serve_one(void *argument)
{
    Request request = { .client = (int)(long)argument, .first = -1, .last = -1 };
    size_t  used = 0;
    while (!strstr(request.text, "\r\n\r\n") && used < REQUEST - 1) {
        const ssize_t got = recv(request.client, request.text + used, REQUEST - 1 - used, 0);
        if (got <= 0) break;
        used += (size_t)got;
    }
    if (sscanf(request.text, "GET %511s", request.target) == 1) {
        const char *range = strstr(request.text, "Range: bytes=");
        if (range) sscanf(range, "Range: %63s", request.range);
        if (range) sscanf(range, "Range: bytes=%lld-%lld", &request.first, &request.last);
        request.number = note(request.target, request.range);
        sscanf(request.target, "/%63[^/]/%255[^?]?%127s", request.behaviour, request.name,
               request.query);
        if (!request.name[0]) sscanf(request.target, "/%63[^/]/?%127s", request.behaviour,
                                     request.query);
        answer(&request);
    }
    shutdown(request.client, SHUT_WR);
    close(request.client);
    atomic_fetch_sub(&answering, 1);
    return NULL;
}

static void *serve(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_t  thread;
        const long client = accept(listener, NULL, NULL);
        if (client < 0) return NULL;
        atomic_fetch_add(&answering, 1);
        if (pthread_create(&thread, NULL, serve_one, (void *)client)) abort();
        pthread_detach(thread);
    }
}

bool server_start(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t          size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, 64) != 0 || getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        return false;
    port = ntohs(address.sin_port);
    const int probe = socket(AF_INET, SOCK_STREAM, 0);
    const bool up = connect(probe, (struct sockaddr *)&address, size) == 0;
    close(probe);
    return up && pthread_create(&accepting, NULL, serve, NULL) == 0;
}

void server_stop(void)
{
    shutdown(listener, SHUT_RDWR);   /* ends accept */
    pthread_join(accepting, NULL);
    close(listener);
    while (atomic_load(&answering)) usleep(1000);
}
