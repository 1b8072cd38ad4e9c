#include "listen_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../device/processes/key_internal.h"

/* Whether the address is of 127/8 or ::1; *any: whether it stands for all of this machine's. */
static bool is_loopback(const struct sockaddr *address, bool *any)
{
    if (address->sa_family == AF_INET6) {
        const struct in6_addr *six =
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        *any = IN6_IS_ADDR_UNSPECIFIED(six);
        return IN6_IS_ADDR_LOOPBACK(six);
    }
    const uint32_t four =
        ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr);
    *any = four == 0;
    return four >> 24 == 127;
}

/* ---- Listening ---- */

/* CORNU_ERR_ARGUMENT or CORNU_ERR_BUSY with the reason of errno. */
static CornuStatus refuse(const CornuListener *listener, int64_t port)
{
    const bool taken = errno == EADDRINUSE;
    return cornu__fail(taken ? CORNU_ERR_BUSY : CORNU_ERR_ARGUMENT, "dashboard: cannot listen on "
                       "%s port %lld: %s%s", listener->host, (long long)port, strerror(errno),
                       taken ? "; expected another .port, or none for a free one" : "");
}

static CornuStatus bind_to(CornuListener *listener, const struct addrinfo *to, int64_t port)
{
    const int again = 1;
    listener->socket = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->socket >= 0)
        setsockopt(listener->socket, SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
    if (listener->socket >= 0 && !bind(listener->socket, to->ai_addr, to->ai_addrlen) &&
        !listen(listener->socket, SOMAXCONN))
        return CORNU_OK;
    const CornuStatus status = refuse(listener, port);
    cornu__listen_close(listener);
    return status;
}

/* Whoever listens on all addresses is reached by the machine's name. */
static void print_url(CornuListener *listener)
{
    struct sockaddr_storage address;
    socklen_t               length = sizeof address;
    char                    host[CORNU__HOST] = "", port[16] = "";
    bool                    any;
    getsockname(listener->socket, (struct sockaddr *)&address, &length);
    listener->loopback = is_loopback((struct sockaddr *)&address, &any);
    getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    if (any && gethostname(host, sizeof host - 1)) strcpy(host, "localhost");
    const bool brackets = strchr(host, ':');
    snprintf(listener->url, sizeof listener->url, "http://%s%s%s:%s/?token=%s",
             brackets ? "[" : "", host, brackets ? "]" : "", port, listener->token);
}

static CornuStatus make_token(char token[CORNU__TOKEN + 1])
{
    unsigned char bytes[CORNU__TOKEN / 2];
    CORNU__TRY(cornu__random_bytes(bytes, sizeof bytes));
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return CORNU_OK;
}

CornuStatus cornu__listen(CornuListener *listener, const char *address, int64_t port)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo      *found = NULL;
    char                  number[24];
    *listener = (CornuListener){ .socket = -1 };
    if (!address) address = "127.0.0.1";
    if (port < 0 || port > 65535)
        return cornu__fail(CORNU_ERR_ARGUMENT, "dashboard: .port is %lld, expected 1 to 65535, or "
                           "0 for a free one", (long long)port);
    if (!*address || strlen(address) >= CORNU__HOST)
        return cornu__fail(CORNU_ERR_ARGUMENT, "dashboard: .address has %zu characters, expected 1 "
                           "to %d", strlen(address), CORNU__HOST - 1);
    strcpy(listener->host, address);
    CORNU__TRY(make_token(listener->token));
    snprintf(number, sizeof number, "%lld", (long long)port);
    const int failed = getaddrinfo(address, number, &hints, &found);
    if (failed)
        return cornu__fail(CORNU_ERR_ARGUMENT, "dashboard: .address is \"%s\", expected one of "
                           "this machine: %s", address, gai_strerror(failed));
    const CornuStatus status = bind_to(listener, found, port);
    freeaddrinfo(found);
    if (!status) print_url(listener);
    return status;
}

void cornu__listen_close(CornuListener *listener)
{
    if (listener->socket >= 0) close(listener->socket);
    listener->socket = -1;
}

/* ---- Requests ---- */

/* Copies the host without its port and brackets; "" if it is none. */
static void name_of(const char *host, char name[CORNU__HOST])
{
    const bool   brackets = *host == '[';
    const char  *from = host + brackets;
    const size_t length = strcspn(from, brackets ? "]" : ":");
    snprintf(name, CORNU__HOST, "%.*s", length < CORNU__HOST ? (int)length : 0, from);
}

bool cornu__listen_is_host(const CornuListener *listener, const char *host)
{
    char                name[CORNU__HOST];
    struct sockaddr_in  four = { .sin_family = AF_INET };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
    bool                any;
    if (!listener->loopback) return true;
    if (!host) return false;
    name_of(host, name);
    if (!strcasecmp(name, "localhost") || !strcasecmp(name, listener->host)) return true;
    if (inet_pton(AF_INET, name, &four.sin_addr) == 1)
        return is_loopback((struct sockaddr *)&four, &any);
    return inet_pton(AF_INET6, name, &six.sin6_addr) == 1 &&
           is_loopback((struct sockaddr *)&six, &any);
}

bool cornu__listen_is_token(const CornuListener *listener, const char *token)
{
    unsigned char differs = 0;
    if (!token || strlen(token) != CORNU__TOKEN) return false;
    for (int i = 0; i < CORNU__TOKEN; i++)
        differs |= (unsigned char)(token[i] ^ listener->token[i]);
    return differs == 0;
}
