#include "address_internal.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

CornuStatus cornu__address_parse(CornuAddress *address, const char *text, int rank)
{
    const char *colon = strrchr(text, ':');
    size_t      length = colon ? (size_t)(colon - text) : 0;
    const char *host = text;
    if (length >= 2 && *host == '[' && host[length - 1] == ']') {
        host++;
        length -= 2;
    }
    if (length == 0 || length >= sizeof address->host || !colon[1] ||
        strlen(colon + 1) >= sizeof address->port)
        return cornu__fail(CORNU_ERR_ARGUMENT, "the address of rank %d is \"%s\", expected "
                           "host:port", rank, text);
    snprintf(address->host, sizeof address->host, "%.*s", (int)length, host);
    snprintf(address->port, sizeof address->port, "%s", colon + 1);
    return CORNU_OK;
}

struct addrinfo *cornu__address_resolve(const CornuAddress *address, bool to_listen, char *why,
                                        size_t size)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                                    .ai_flags = to_listen ? AI_PASSIVE : 0 };
    struct addrinfo      *found = NULL;
    const int             failure = getaddrinfo(address->host, address->port, &hints, &found);
    if (failure) snprintf(why, size, "%s", gai_strerror(failure));
    return failure ? NULL : found;
}

void cornu__address_of_peer(int socket, char *text, size_t size)
{
    struct sockaddr_storage peer;
    socklen_t               length = sizeof peer;
    char                    host[64], port[16];
    snprintf(text, size, "an unknown address");
    if (getpeername(socket, (struct sockaddr *)&peer, &length) == 0 &&
        getnameinfo((struct sockaddr *)&peer, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(text, size, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}
