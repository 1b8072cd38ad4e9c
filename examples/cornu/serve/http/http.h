/*
 * The server's connections, by libmicrohttpd. Bodies, connections and times are bounded: a request
 * that is too large or too slow is refused, and the bodies of all connections together take at most
 * 32 times --max-body.
 */
#ifndef CORNU_SERVE_HTTP_H
#define CORNU_SERVE_HTTP_H

#include "../api.h"

typedef struct Http Http;

/* Listens; prints the address on stdout. NULL with a message on stderr. `api` must outlive it; its
 * batcher is set afterwards. */
Http *http_create(const Api *api);

/* To be called now and then: ends connections that are too slow. */
void http_check(Http *http);

/* Takes no further connections, lets all requests end that have arrived, closes the others. */
void http_finish(Http *http);

#endif
