#define _DEFAULT_SOURCE    /* SO_ATTACH_FILTER */

#include "listen.h"

#include <errno.h>
#include <linux/filter.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int listen_on(const Settings *settings)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo      *found = NULL;
    char                  port[16];
    int                   listener = -1;
    snprintf(port, sizeof port, "%lld", (long long)settings->port);
    const int status = getaddrinfo(settings->address, port, &hints, &found);
    if (status) {
        fprintf(stderr, "cornu serve: --address %s: %s\n", settings->address,
                gai_strerror(status));
        return -1;
    }
    listener = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int again = 1;
    if (listener >= 0)
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
    if (listener < 0 || bind(listener, found->ai_addr, found->ai_addrlen) ||
        listen(listener, SOMAXCONN)) {
        fprintf(stderr, "cornu serve: cannot listen on %s port %s: %s\n", settings->address, port,
                strerror(errno));
        if (listener >= 0) close(listener);
        listener = -1;
    }
    freeaddrinfo(found);
    return listener;
}

void listen_print(int listener)
{
    struct sockaddr_storage address;
    socklen_t               length = sizeof address;
    char                    host[80] = "", port[16] = "";
    getsockname(listener, (struct sockaddr *)&address, &length);
    getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    const bool brackets = strchr(host, ':');
    printf("listening on http://%s%s%s:%s\n", brackets ? "[" : "", host, brackets ? "]" : "", port);
    fflush(stdout);
}

void listen_no_more(int listener)
{
    struct sock_filter       nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    const struct sock_fprog filter = { .len = 1, .filter = &nothing };
    setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

bool listen_empty(int listener)
{
    struct pollfd one = { .fd = listener, .events = POLLIN };
    return poll(&one, 1, 0) == 0;
}
