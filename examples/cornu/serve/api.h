/* Requests of the REST interface, from method, path and body to an answer; knows nothing of HTTP's
 * connections. */
#ifndef CORNU_SERVE_API_H
#define CORNU_SERVE_API_H

#include "models/batcher.h"
#include "models/library.h"
#include "metrics.h"
#include "route.h"

typedef struct {
    const Settings *settings;
    Library        *library;
    Batcher        *batcher;
    Metrics        *metrics;
} Api;

/* All zeros before api_begin. */
typedef struct {
    Route  route;
    Reply  reply;
    Job    job;
    double begun_s;
} ApiRequest;

/* Answers the request, or leaves request->job to be submitted (true): api_finish then answers it.
 * Both are thread-safe, each request being one thread's at a time. */
bool api_begin(const Api *api, ApiRequest *request, const char *http_method, const char *path,
               const char *body, size_t size);
void api_finish(const Api *api, ApiRequest *request);

/* Answers a request with a problem, instead of or after api_begin. */
void api_refuse(const Api *api, ApiRequest *request, const Problem *problem);

void api_free(ApiRequest *request);

#endif
