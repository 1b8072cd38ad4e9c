#include "tcp_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "../memory_internal.h"
#include "streams_internal.h"

typedef struct {
    CornuStreams   streams;
    CornuMesh      mesh;
    struct pollfd *polled;   /* by rank */
} Tcp;

static ssize_t result_of(ssize_t moved)
{
    if (moved >= 0) return moved;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
}

static ssize_t tcp_write(CornuStreams *streams, int rank, const void *from, size_t bytes)
{
    const Tcp *tcp = (const Tcp *)streams;
    return result_of(send(tcp->mesh.sockets[rank], from, bytes, MSG_NOSIGNAL));
}

static ssize_t tcp_read(CornuStreams *streams, int rank, void *to, size_t bytes)
{
    const Tcp    *tcp = (const Tcp *)streams;
    const ssize_t moved = recv(tcp->mesh.sockets[rank], to, bytes, 0);
    return moved == 0 ? -1 : result_of(moved);
}

static void tcp_wait(CornuStreams *streams, int milliseconds)
{
    Tcp      *tcp = (Tcp *)streams;
    const int size = streams->transport.size;
    for (int i = 0; i < size; i++) {
        const bool in = cornu__streams_want_read(streams, i);
        const bool out = cornu__streams_want_write(streams, i);
        tcp->polled[i] = (struct pollfd){ .fd = in || out ? tcp->mesh.sockets[i] : -1,
                                          .events = (short)((in ? POLLIN : 0) |
                                                            (out ? POLLOUT : 0)) };
    }
    if (poll(tcp->polled, (nfds_t)size, milliseconds) <= 0) return;
    for (int i = 0; i < size; i++) {
        const short events = tcp->polled[i].revents;
        if (events & ~POLLOUT && cornu__streams_want_read(streams, i))
            streams->peers[i].can_read = true;
        if (events & ~POLLIN) streams->peers[i].can_write = true;
    }
}

static void tcp_close(CornuTransport *transport)
{
    Tcp *tcp = (Tcp *)transport;
    cornu__mesh_close(&tcp->mesh);
    cornu__streams_clear(&tcp->streams);
    cornu__release(tcp->polled);
    cornu__release(tcp);
}

static const CornuTransportClass tcp_transport = {
    .name = "tcp", .exchange = cornu__streams_exchange, .notify = cornu__streams_notify,
    .tell = cornu__streams_tell, .close = tcp_close,
};

static const CornuStreamsClass tcp_streams = { tcp_write, tcp_read, tcp_wait, NULL };

CornuTransport *cornu__tcp_open(CornuMesh *mesh)
{
    Tcp *tcp = cornu__allocate(1, sizeof *tcp);
    if (!tcp) {
        cornu__mesh_close(mesh);
        return NULL;
    }
    tcp->mesh = *mesh;
    *mesh = (CornuMesh){ .sockets = NULL };
    CornuTransport *transport = &tcp->streams.transport;
    transport->class = &tcp_transport;
    tcp->streams.class = &tcp_streams;
    tcp->streams.control = &tcp->streams;
    tcp->polled = cornu__allocate((size_t)tcp->mesh.size, sizeof *tcp->polled);
    if (tcp->polled && !cornu__streams_create(&tcp->streams, tcp->mesh.rank, tcp->mesh.size))
        return transport;
    tcp_close(transport);
    return NULL;
}
