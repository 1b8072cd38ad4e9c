#include "mesh_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../clock_internal.h"
#include "../memory_internal.h"

/* What both sides of a connection say first. */
typedef struct {
    uint32_t magic;      /* as this processor orders its bytes */
    uint32_t protocol;   /* of the frames */
    int32_t  rank, count;
} Hello;

enum { MAGIC = 0x436f726e, REVERSED = 0x6e726f43, PROTOCOL = 1 };
enum { RETRY_MS = 20, LONGEST_RETRY_MS = 250, HELLO_S = 2, CLOSING_S = 2 };

typedef struct { char host[256], port[32]; } Address;

static CornuStatus parse_address(Address *address, const char *text, int rank)
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

static void prepare(int socket)
{
    const int on = 1;
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static struct addrinfo *resolve(const char *host, const char *port, int flags, char *why,
                                size_t size)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags };
    struct addrinfo      *found = NULL;
    const int             failure = getaddrinfo(host, port, &hints, &found);
    if (failure) snprintf(why, size, "%s", gai_strerror(failure));
    return failure ? NULL : found;
}

/* ---- Waiting, up to a deadline ---- */

static int milliseconds_until(double deadline)
{
    const double left = 1e3 * (deadline - cornu__seconds());
    return left <= 0 ? 0 : left < 1e9 ? (int)left + 1 : 1000000000;
}

/* Whether a socket is ready before the deadline. */
static bool wait_for(int socket, short events, double deadline)
{
    struct pollfd watched = { .fd = socket, .events = events };
    for (;;) {
        const int ready = poll(&watched, 1, milliseconds_until(deadline));
        if (ready > 0) return true;
        if (ready == 0 || errno != EINTR) return false;
    }
}

static bool send_hello(int socket, const CornuMesh *mesh)
{
    const Hello hello = { MAGIC, PROTOCOL, mesh->rank, mesh->size };
    return send(socket, &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello;
}

static bool receive_hello(int socket, Hello *hello, double deadline)
{
    size_t got = 0;
    while (got < sizeof *hello && wait_for(socket, POLLIN, deadline)) {
        const ssize_t n = recv(socket, (char *)hello + got, sizeof *hello - got, 0);
        if (n > 0) got += (size_t)n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR)) return false;
    }
    return got == sizeof *hello && (hello->magic == MAGIC || hello->magic == REVERSED);
}

/* Whether one that speaks this protocol can be in the group. */
static CornuStatus check_hello(const CornuMesh *mesh, const Hello *hello, int expected)
{
    char who[40] = "another rank";
    if (expected >= 0) snprintf(who, sizeof who, "rank %d", expected);
    if (hello->magic == REVERSED)
        return cornu__fail(CORNU_ERR_PROCESS, "%s orders bytes otherwise than rank %d: all "
                           "processors must be little-endian, or all big-endian", who, mesh->rank);
    if (hello->protocol != PROTOCOL)
        return cornu__fail(CORNU_ERR_PROCESS, "%s is of another version of Cornu than rank %d: "
                           "its protocol is %u, not %d", who, mesh->rank,
                           (unsigned)hello->protocol, PROTOCOL);
    if (hello->count != mesh->size)
        return cornu__fail(CORNU_ERR_PROCESS, "the number of processes is %d on rank %d and %d on "
                           "rank %d", (int)hello->count, (int)hello->rank, mesh->size, mesh->rank);
    return CORNU_OK;
}

/* ---- Listening ---- */

static CornuStatus listen_at(const char *text, int rank, int *listener)
{
    Address   address;
    char      why[120] = "";
    const int on = 1;
    CORNU__TRY(parse_address(&address, text, rank));
    /* Where its address is another's, as behind a router, it listens at all of its own. */
    for (int everywhere = 0; everywhere < 2; everywhere++) {
        struct addrinfo *found = resolve(everywhere ? NULL : address.host, address.port, AI_PASSIVE,
                                         why, sizeof why);
        for (struct addrinfo *at = found; at; at = at->ai_next) {
            const int fd = socket(at->ai_family, at->ai_socktype, at->ai_protocol);
            if (fd < 0) continue;
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
            if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) {
                freeaddrinfo(found);
                *listener = fd;
                return CORNU_OK;
            }
            snprintf(why, sizeof why, "%s", strerror(errno));
            everywhere += errno == EADDRINUSE;
            close(fd);
        }
        if (found) freeaddrinfo(found);
    }
    return cornu__fail(CORNU_ERR_PROCESS, "rank %d cannot listen at %s: %s", rank, text, why);
}

/* Accepts all higher ranks. */
static CornuStatus accept_all(CornuMesh *mesh, int listener, double timeout_s, double deadline)
{
    prepare(listener);
    for (int missing = mesh->size - 1 - mesh->rank; missing > 0;) {
        if (!wait_for(listener, POLLIN, deadline)) {
            int rank = mesh->rank + 1;
            while (mesh->sockets[rank] >= 0) rank++;
            return cornu__fail(CORNU_ERR_PROCESS, "rank %d has not connected to rank %d within "
                               "%g s%s", rank, mesh->rank, timeout_s,
                               missing > 1 ? ", nor have others" : "");
        }
        const int fd = accept(listener, NULL, NULL);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE)
                return cornu__fail(CORNU_ERR_PROCESS, "rank %d cannot open more sockets; raise "
                                   "ulimit -n above %d", mesh->rank, mesh->size);
            continue;
        }
        prepare(fd);
        Hello        hello;
        const double soon = cornu__seconds() + HELLO_S;
        if (!receive_hello(fd, &hello, soon < deadline ? soon : deadline)) {
            close(fd);
            continue;
        }
        /* Answered in any case, so that the other side can name the difference too. */
        const bool  sent = send_hello(fd, mesh);
        CornuStatus status = check_hello(mesh, &hello, -1);
        if (!status && (hello.rank <= mesh->rank || hello.rank >= mesh->size ||
                        mesh->sockets[hello.rank] >= 0))
            status = cornu__fail(CORNU_ERR_PROCESS, "rank %d was reached by a second rank %d; each "
                                 "process needs a rank of its own", mesh->rank, (int)hello.rank);
        if (status || !sent) close(fd);
        CORNU__TRY(status);
        if (!sent) continue;
        mesh->sockets[hello.rank] = fd;
        missing--;
    }
    return CORNU_OK;
}

/* ---- Connecting ---- */

/* A socket that is connected and has said hello, or -1. */
static int connect_once(const CornuMesh *mesh, const Address *address, double deadline, char *why,
                        size_t size)
{
    struct addrinfo *found = resolve(address->host, address->port, 0, why, size);
    int              fd = -1;
    for (struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
        int       failure = 0;
        socklen_t length = sizeof failure;
        if ((fd = socket(at->ai_family, at->ai_socktype, at->ai_protocol)) < 0) {
            snprintf(why, size, "%s", strerror(errno));
            continue;
        }
        prepare(fd);
        if (connect(fd, at->ai_addr, at->ai_addrlen) != 0) failure = errno;
        if (failure == EINPROGRESS) {
            failure = ETIMEDOUT;
            if (wait_for(fd, POLLOUT, deadline))
                getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &length);
        }
        if (!failure && send_hello(fd, mesh)) break;
        snprintf(why, size, "%s", strerror(failure ? failure : errno));
        close(fd);
        fd = -1;
    }
    if (found) freeaddrinfo(found);
    return fd;
}

static CornuStatus connect_to(CornuMesh *mesh, int rank, const CornuLaunch *launch, double deadline)
{
    Address address;
    char    why[120] = "";
    CORNU__TRY(parse_address(&address, launch->workers[rank], rank));
    for (int pause = RETRY_MS;; pause = pause < LONGEST_RETRY_MS ? 2 * pause : pause) {
        mesh->sockets[rank] = connect_once(mesh, &address, deadline, why, sizeof why);
        if (mesh->sockets[rank] >= 0) return CORNU_OK;
        if (cornu__seconds() + 1e-3 * pause >= deadline)
            return cornu__fail(CORNU_ERR_PROCESS, "rank %d cannot be reached at %s within %g s: %s",
                               rank, launch->workers[rank], launch->timeout_s, why);
        poll(NULL, 0, pause);
    }
}

static CornuStatus read_answer(CornuMesh *mesh, int rank, const CornuLaunch *launch,
                               double deadline)
{
    Hello hello;
    if (!receive_hello(mesh->sockets[rank], &hello, deadline))
        return cornu__fail(CORNU_ERR_PROCESS, "rank %d cannot be reached at %s: no answer", rank,
                           launch->workers[rank]);
    CORNU__TRY(check_hello(mesh, &hello, rank));
    if (hello.rank == rank) return CORNU_OK;
    return cornu__fail(CORNU_ERR_PROCESS, "rank %d answers at %s, the address of rank %d",
                       (int)hello.rank, launch->workers[rank], rank);
}

/* Accepting needs no answer, so no rank waits for one that waits for it. */
static CornuStatus connect_all(CornuMesh *mesh, const CornuLaunch *launch)
{
    const double deadline = cornu__seconds() + launch->timeout_s;
    for (int rank = 0; rank < mesh->rank; rank++)
        CORNU__TRY(connect_to(mesh, rank, launch, deadline));
    CORNU__TRY(accept_all(mesh, launch->listener, launch->timeout_s, deadline));
    for (int rank = 0; rank < mesh->rank; rank++)
        CORNU__TRY(read_answer(mesh, rank, launch, deadline));
    return CORNU_OK;
}

CornuStatus cornu__mesh_open(CornuMesh *mesh, CornuLaunch *launch)
{
    *mesh = (CornuMesh){ .rank = launch->rank, .size = launch->count };
    mesh->sockets = cornu__allocate((size_t)mesh->size, sizeof *mesh->sockets);
    CornuStatus status = mesh->sockets ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int i = 0; !status && i < mesh->size; i++) mesh->sockets[i] = -1;
    if (!status && launch->listener < 0)
        status = listen_at(launch->workers[mesh->rank], mesh->rank, &launch->listener);
    if (!status) status = connect_all(mesh, launch);
    if (launch->listener >= 0) close(launch->listener);
    launch->listener = -1;
    if (status) cornu__mesh_close(mesh);
    return status;
}

/* Whether what was sent is still on its way. What has come is dropped: closing a socket with unread
 * bytes resets the connection, and the other side may wait for room itself. */
static bool is_busy(int socket)
{
    char    dropped[4096];
    int     unacknowledged = 0;
    ssize_t n;
    while ((n = recv(socket, dropped, sizeof dropped, 0)) > 0) {}
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) return false;   /* nobody is there */
    return ioctl(socket, TIOCOUTQ, &unacknowledged) == 0 && unacknowledged > 0;
}

void cornu__mesh_close(CornuMesh *mesh)
{
    const double deadline = cornu__seconds() + CLOSING_S;
    for (bool pending = mesh->sockets; pending && cornu__seconds() < deadline;) {
        pending = false;
        for (int i = 0; i < mesh->size; i++)
            if (mesh->sockets[i] >= 0) pending |= is_busy(mesh->sockets[i]);
        if (pending) poll(NULL, 0, 1);
    }
    for (int i = 0; mesh->sockets && i < mesh->size; i++)
        if (mesh->sockets[i] >= 0) close(mesh->sockets[i]);
    cornu__release(mesh->sockets);
    mesh->sockets = NULL;
}
