/* The connections that are open, and since when each one waits for its client. */
#ifndef CORNU_SERVE_CONNECTIONS_H
#define CORNU_SERVE_CONNECTIONS_H

#include <pthread.h>
#include <stdbool.h>

typedef struct Connection Connection;

typedef struct {
    pthread_mutex_t lock;
    Connection     *first;
    int             count;
    double          last_s;            /* when the last request ended */
} Connections;

void connections_begin(Connections *connections);
void connections_end(Connections *connections);   /* none is left */

/* Both return how many there are. *added may become NULL, when memory runs out; NULL is removed,
 * too. */
int connections_add(Connections *connections, int socket, Connection **added);
int connections_remove(Connections *connections, Connection *connection);

/* A request of the connection has arrived and is computed, or its answer is sent. NULL is
 * ignored. */
void connections_busy(Connections *connections, Connection *connection, bool busy);

/* A request of the connection has ended; NULL: only the time of the last one is noted. */
void connections_rest(Connections *connections, Connection *connection);

/* Shuts down those for which the client has taken longer, to send a request or to take its
 * answer. */
void connections_end_slow(Connections *connections, double seconds);

/* Whether there are none, or no request has ended for so long. */
bool connections_quiet(Connections *connections, double seconds);

#endif
