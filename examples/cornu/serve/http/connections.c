#include "connections.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "../../clock.h"

struct Connection {
    int         socket;
    double      since_s;
    bool        busy;
    Connection *before, *after;
};

void connections_begin(Connections *connections)
{
    pthread_mutex_init(&connections->lock, NULL);
}

void connections_end(Connections *connections)
{
    pthread_mutex_destroy(&connections->lock);
}

int connections_add(Connections *connections, int socket, Connection **added)
{
    Connection *one = *added = calloc(1, sizeof *one);
    pthread_mutex_lock(&connections->lock);
    if (one) {
        *one = (Connection){ .socket = socket, .since_s = clock_seconds(),
                             .after = connections->first };
        if (one->after) one->after->before = one;
        connections->first = one;
    }
    const int count = ++connections->count;
    pthread_mutex_unlock(&connections->lock);
    return count;
}

int connections_remove(Connections *connections, Connection *one)
{
    pthread_mutex_lock(&connections->lock);
    if (one) {
        if (one->after) one->after->before = one->before;
        *(one->before ? &one->before->after : &connections->first) = one->after;
    }
    const int count = --connections->count;
    pthread_mutex_unlock(&connections->lock);
    free(one);
    return count;
}

void connections_busy(Connections *connections, Connection *connection, bool busy)
{
    if (!connection) return;
    pthread_mutex_lock(&connections->lock);
    connection->busy = busy;
    connection->since_s = clock_seconds();
    pthread_mutex_unlock(&connections->lock);
}

void connections_rest(Connections *connections, Connection *connection)
{
    pthread_mutex_lock(&connections->lock);
    connections->last_s = clock_seconds();
    if (connection) connection->since_s = connections->last_s;
    pthread_mutex_unlock(&connections->lock);
}

void connections_end_slow(Connections *connections, double seconds)
{
    const double now_s = clock_seconds();
    pthread_mutex_lock(&connections->lock);
    for (const Connection *one = connections->first; one; one = one->after)
        if (!one->busy && now_s - one->since_s > seconds) shutdown(one->socket, SHUT_RDWR);
    pthread_mutex_unlock(&connections->lock);
}

bool connections_quiet(Connections *connections, double seconds)
{
    pthread_mutex_lock(&connections->lock);
    const bool quiet = connections->count == 0 ||
                       clock_seconds() - connections->last_s > seconds;
    pthread_mutex_unlock(&connections->lock);
    return quiet;
}
