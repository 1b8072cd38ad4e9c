#define _DEFAULT_SOURCE    /* getifaddrs */

#include "address_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../system/environment_internal.h"
#include "mesh_internal.h"

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

/* ---- Listening ---- */

/* The first address of an interface that is up and leads elsewhere, of version 4 if there is one;
 * else 127.0.0.1. */
static void find_own(char *host, size_t size)
{
    struct ifaddrs *all = NULL;
    char            text[INET6_ADDRSTRLEN];
    int             best = 0;
    snprintf(host, size, "127.0.0.1");
    if (getifaddrs(&all)) return;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        const int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        const int worth = family == AF_INET ? 2 : family == AF_INET6;
        if (worth <= best || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK)) continue;
        if (family == AF_INET) {
            const struct sockaddr_in *v4 = (const void *)i->ifa_addr;
            inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
            snprintf(host, size, "%s", text);
        } else {
            const struct sockaddr_in6 *v6 = (const void *)i->ifa_addr;
            if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) continue;
            inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
            snprintf(host, size, "[%s]", text);
        }
        best = worth;
    }
    freeifaddrs(all);
}

/* At all addresses, or at this host's own alone. */
static int listen_anywhere(bool one_host, int *port)
{
    union {
        struct sockaddr     any;
        struct sockaddr_in  v4;
        struct sockaddr_in6 v6;
    } at = { .v6 = { .sin6_family = AF_INET6 } };   /* also takes connections of version 4 */
    socklen_t size = sizeof at.v6;
    int       fd = one_host ? -1 : socket(AF_INET6, SOCK_STREAM, 0);
    if (fd < 0) {
        at.v4 = (struct sockaddr_in){ .sin_family = AF_INET };
        at.v4.sin_addr.s_addr = htonl(one_host ? INADDR_LOOPBACK : INADDR_ANY);
        size = sizeof at.v4;
        fd = socket(AF_INET, SOCK_STREAM, 0);
    }
    if (fd < 0) return -1;
    if (bind(fd, &at.any, size) || listen(fd, SOMAXCONN) || getsockname(fd, &at.any, &size)) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    *port = ntohs(at.any.sa_family == AF_INET ? at.v4.sin_port : at.v6.sin6_port);
    return fd;
}

CornuStatus cornu__mesh_listen(CornuLaunch *launch, bool one_host, char *address, size_t size)
{
    char        host[96];
    int         port = 0;
    const char *chosen = cornu__environment("CORNU_ADDRESS");
    launch->listener = listen_anywhere(one_host, &port);
    if (launch->listener < 0)
        return cornu__fail(CORNU_ERR_PROCESS, "rank %d cannot listen: %s", launch->rank,
                           strerror(errno));
    if (one_host) snprintf(host, sizeof host, "127.0.0.1");
    else if (chosen) snprintf(host, sizeof host, "%s", chosen);
    else find_own(host, sizeof host);
    snprintf(address, size, "%s:%d", host, port);
    return CORNU_OK;
}

/* At nothing else: a rank that listened at all its addresses would be open to networks that nobody
 * has named. */
CornuStatus cornu__mesh_listen_at(const char *text, int rank, int *listener)
{
    CornuAddress address;
    char         why[120] = "";
    const int    on = 1;
    CORNU__TRY(cornu__address_parse(&address, text, rank));
    struct addrinfo *found = cornu__address_resolve(&address, true, why, sizeof why);
    int              fd = -1;
    bool             elsewhere = false;
    for (struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, at->ai_socktype, at->ai_protocol);
        if (fd < 0) continue;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) break;
        snprintf(why, sizeof why, "%s", strerror(errno));
        elsewhere = errno == EADDRNOTAVAIL;
        close(fd);
        fd = -1;
    }
    if (found) freeaddrinfo(found);
    *listener = fd;
    if (fd >= 0) return CORNU_OK;
    if (elsewhere)
        return cornu__fail(CORNU_ERR_PROCESS, "rank %d cannot listen at %s, which is not an "
                           "address of this host; where others reach it by one that is not its "
                           "own, its launcher listens for it and gives it CORNU_LISTEN_FD", rank,
                           text);
    return cornu__fail(CORNU_ERR_PROCESS, "rank %d cannot listen at %s: %s", rank, text, why);
}
