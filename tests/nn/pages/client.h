/* A small client of HTTP for tests of dashboards. It shares no code with the library. */
#ifndef CORNU_TESTS_CLIENT_H
#define CORNU_TESTS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

enum { CLIENT_TEXT = 1 << 20 };

/* A connection to 127.0.0.1 at the port of a URL, waiting at most 20 s for what it reads. */
int client_connect(const char *url);

/* The token of a URL. */
const char *client_token(const char *url);

/* Sends the request as it is and reads until the server closes or the answer has come; returns the
 * status, 0 without one. *answer, of CLIENT_TEXT bytes, or NULL for none, gets all of it. */
int client_ask(const char *url, const char *request, char *answer);

/* POST /control with the token: the status. */
int client_command(const char *url, const char *json);

/* The stream of events: a socket from which client_hears reads until `part` has come. False, with
 * what came in text, of CLIENT_TEXT bytes, if it does not come. */
int  client_listen(const char *url);
bool client_hears(int socket, const char *part, char *text);

/* Whether the server closes the connection within so many seconds; what comes is read. */
bool client_is_dropped(int socket, int seconds);

#endif
