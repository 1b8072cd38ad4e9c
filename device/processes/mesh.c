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

#include "../system/clock_internal.h"
#include "../log_internal.h"
#include "../memory_internal.h"
#include "address_internal.h"
#include "greeting_internal.h"

enum {
    RETRY_MS = 20, LONGEST_RETRY_MS = 250,
    VISITORS = 128,       /* that are not known yet */
    ACCEPTED = 32,        /* at once, before those that wait are heard */
    LOGGED = 20,          /* strangers */
};
#define GREETING_S 5.0
enum { CLOSING_S = 2 };

/* Towards a lower rank, again and again until it is known. */
typedef struct {
    CornuAddress  address;
    int           tries;         /* of its ways, in this round */
    double        next_s, pause_s;
    bool          connecting;
    CornuGreeting greeting;
    bool          answered;      /* once, by somebody who then left */
    CornuWhy      why;           /* the last try has failed, or the last that was answered */
} Attempt;

typedef struct {
    CornuMesh         *mesh;
    const CornuLaunch *launch;
    double             deadline_s;
    int                missing;  /* higher ranks, which connect to this one */
    Attempt           *attempts; /* one for each lower rank */
    CornuGreeting     *visitors; /* in the order in which they came */
    int                visitor_count, dropped;
    struct pollfd     *polled;   /* the listener, lower ranks, visitors */
    CornuWhy           stranger; /* the last one that was dropped: who it was, and why */
} Opening;

static void prepare(int socket)
{
    const int on = 1;
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* ---- Higher ranks, and strangers ---- */

/* Closes the connection of visitor i, and remembers what it was. */
static void drop(Opening *opening, int i, const char *why)
{
    CornuGreeting *visitor = &opening->visitors[i];
    char           from[80];
    cornu__address_of_peer(visitor->socket, from, sizeof from);
    snprintf(opening->stranger.text, sizeof opening->stranger.text, "%s: %.60s", from, why);
    if (++opening->dropped <= LOGGED)
        cornu__log(CORNU_LOG_WARNING, "rank %d dropped a connection from %s: %s%s",
                   opening->mesh->rank, from, why,
                   opening->dropped == LOGGED ? "; further ones are not logged" : "");
    close(visitor->socket);
    memmove(visitor, visitor + 1,
            (size_t)(--opening->visitor_count - i) * sizeof *visitor);
}

/* Whether nothing can come from a connection any more. */
static bool is_gone(int socket)
{
    char          byte;
    const ssize_t n = recv(socket, &byte, 1, MSG_PEEK);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Visitor i has the key. One that comes again after its first connection broke takes its place. */
static CornuStatus admit(Opening *opening, int i)
{
    CornuMesh          *mesh = opening->mesh;
    const CornuGreeting visitor = opening->visitors[i];
    const int           rank = visitor.other.rank;
    memmove(&opening->visitors[i], &opening->visitors[i + 1],
            (size_t)(--opening->visitor_count - i) * sizeof *opening->visitors);
    CornuStatus status = cornu__greeting_check(&visitor);
    const bool  known = !status && rank > mesh->rank && rank < mesh->size;
    if (known && mesh->sockets[rank] >= 0 && is_gone(mesh->sockets[rank])) {
        close(mesh->sockets[rank]);
        mesh->sockets[rank] = -1;
        opening->missing++;
    }
    if (!status && (!known || mesh->sockets[rank] >= 0))
        status = cornu__fail(CORNU_ERR_PROCESS, "rank %d was reached by a second rank %d; each "
                             "process needs a rank of its own", mesh->rank, rank);
    if (status) {
        close(visitor.socket);
        return status;
    }
    mesh->sockets[rank] = visitor.socket;
    opening->missing--;
    return CORNU_OK;
}

/* Of visitors that say nothing the first one leaves room for another, else the first of all. */
static void drop_visitor(Opening *opening)
{
    int i = 0;
    while (i < opening->visitor_count && opening->visitors[i].got > 0) i++;
    drop(opening, i < opening->visitor_count ? i : 0, "it said nothing, and others came");
}

static CornuStatus accept_some(Opening *opening)
{
    CornuMesh *mesh = opening->mesh;
    CornuWhy   why;
    for (int i = 0; i < ACCEPTED; i++) {
        const int fd = accept(opening->launch->listener, NULL, NULL);
        if (fd < 0) {
            if (errno != EMFILE && errno != ENFILE) break;
            if (opening->visitor_count == 0)
                return cornu__fail(CORNU_ERR_PROCESS, "rank %d cannot open more sockets; raise "
                                   "ulimit -n above %d", mesh->rank, mesh->size);
            drop_visitor(opening);
            continue;
        }
        prepare(fd);
        if (opening->visitor_count == VISITORS) drop_visitor(opening);
        CornuGreeting *visitor = &opening->visitors[opening->visitor_count++];
        visitor->deadline_s = cornu__seconds() + GREETING_S;
        if (cornu__greeting_begin(visitor, &opening->launch->key, fd, false, mesh->rank,
                                  mesh->size, &why) == CORNU_GREETING_STRANGER)
            drop(opening, opening->visitor_count - 1, why.text);
    }
    return CORNU_OK;
}

/* polled[i] is of visitor i. */
static CornuStatus hear_visitors(Opening *opening, const struct pollfd *polled, double now)
{
    CornuWhy why;
    for (int i = opening->visitor_count - 1; i >= 0; i--) {
        CornuGreeting     *visitor = &opening->visitors[i];
        CornuGreetingState state = CORNU_GREETING_PENDING;
        if (polled[i].revents) state = cornu__greeting_go_on(visitor, &why);
        if (state == CORNU_GREETING_KNOWN) CORNU__TRY(admit(opening, i));
        else if (state == CORNU_GREETING_STRANGER) drop(opening, i, why.text);
        else if (now >= visitor->deadline_s) drop(opening, i, "it has not said who it is in time");
    }
    return CORNU_OK;
}

/* ---- Lower ranks ---- */

/* The next way, at once if there is another, else all of them again after a pause. */
static void try_later(Attempt *attempt, bool more)
{
    if (attempt->greeting.socket >= 0) close(attempt->greeting.socket);
    attempt->greeting.socket = -1;
    attempt->connecting = false;
    attempt->tries = more ? attempt->tries + 1 : 0;
    attempt->next_s = cornu__seconds() + (more ? 0 : attempt->pause_s);
    if (!more && attempt->pause_s < 1e-3 * LONGEST_RETRY_MS) attempt->pause_s *= 2;
}

static void greet(Opening *opening, int rank)
{
    Attempt *attempt = &opening->attempts[rank];
    attempt->connecting = false;
    if (cornu__greeting_begin(&attempt->greeting, &opening->launch->key, attempt->greeting.socket,
                              true, opening->mesh->rank, opening->mesh->size, &attempt->why))
        try_later(attempt, false);
}

static void begin_to_connect(Opening *opening, int rank)
{
    Attempt         *attempt = &opening->attempts[rank];
    CornuWhy        *why = &attempt->why;
    struct addrinfo *found = cornu__address_resolve(&attempt->address, false, why->text,
                                                    sizeof why->text);
    struct addrinfo *way = found;
    for (int i = 0; i < attempt->tries && way; i++) way = way->ai_next;
    const int fd = way ? socket(way->ai_family, way->ai_socktype, way->ai_protocol) : -1;
    attempt->greeting.socket = fd;
    int failure = 0;
    if (fd >= 0) {
        prepare(fd);
        failure = connect(fd, way->ai_addr, way->ai_addrlen) ? errno : 0;
    } else if (way) {
        failure = errno;
    }
    if (failure == EINPROGRESS) attempt->connecting = true;
    else if (failure && !attempt->answered)
        snprintf(why->text, sizeof why->text, "%s", strerror(failure));
    if (!way || (failure && failure != EINPROGRESS)) try_later(attempt, way && way->ai_next);
    if (found) freeaddrinfo(found);
    if (way && !failure) greet(opening, rank);
}

/* A connection has been made, or not. */
static void end_to_connect(Opening *opening, int rank)
{
    Attempt  *attempt = &opening->attempts[rank];
    int       failure = 0;
    socklen_t length = sizeof failure;
    getsockopt(attempt->greeting.socket, SOL_SOCKET, SO_ERROR, &failure, &length);
    if (!failure) {
        greet(opening, rank);
        return;
    }
    /* A rank that is gone since says less than what it did before. */
    if (!attempt->answered)
        snprintf(attempt->why.text, sizeof attempt->why.text, "%s", strerror(failure));
    /* Whether there is another way is seen when it is looked for. */
    try_later(attempt, true);
}

static CornuStatus hear_rank(Opening *opening, int rank)
{
    Attempt                 *attempt = &opening->attempts[rank];
    const CornuGreetingState state = cornu__greeting_go_on(&attempt->greeting, &attempt->why);
    if (state == CORNU_GREETING_STRANGER) {
        attempt->answered = true;
        try_later(attempt, false);
    }
    if (state != CORNU_GREETING_KNOWN) return CORNU_OK;
    CORNU__TRY(cornu__greeting_check(&attempt->greeting));
    if (attempt->greeting.other.rank != rank)
        return cornu__fail(CORNU_ERR_PROCESS, "rank %d answers at %s, the address of rank %d",
                           (int)attempt->greeting.other.rank, opening->launch->workers[rank], rank);
    opening->mesh->sockets[rank] = attempt->greeting.socket;
    attempt->greeting.socket = -1;
    return CORNU_OK;
}

static CornuStatus go_on_with_lower(Opening *opening, const struct pollfd *polled, double now)
{
    for (int rank = 0; rank < opening->mesh->rank; rank++) {
        Attempt *attempt = &opening->attempts[rank];
        if (opening->mesh->sockets[rank] >= 0) continue;
        if (attempt->greeting.socket < 0) {
            if (now >= attempt->next_s) begin_to_connect(opening, rank);
        } else if (polled[rank].revents) {
            if (attempt->connecting) end_to_connect(opening, rank);
            else CORNU__TRY(hear_rank(opening, rank));
        }
    }
    return CORNU_OK;
}

/* ---- All of them ---- */

/* The lowest rank that is not connected; the mesh's size: all are. */
static int find_missing(const CornuMesh *mesh)
{
    int rank = 0;
    while (rank < mesh->size && (rank == mesh->rank || mesh->sockets[rank] >= 0)) rank++;
    return rank;
}

static CornuStatus give_up(const Opening *opening)
{
    const CornuMesh   *mesh = opening->mesh;
    const CornuLaunch *launch = opening->launch;
    const int          rank = find_missing(mesh);
    if (rank < mesh->rank)
        return cornu__fail(CORNU_ERR_PROCESS, "rank %d cannot be reached at %s within %g s: %s",
                           rank, launch->workers[rank], launch->timeout_s,
                           *opening->attempts[rank].why.text ? opening->attempts[rank].why.text
                                                             : "no answer");
    return cornu__fail(CORNU_ERR_PROCESS, "rank %d has not connected to rank %d within %g s%s%s%s",
                       rank, mesh->rank, launch->timeout_s,
                       opening->missing > 1 ? ", nor have others" : "",
                       opening->dropped ? "; a connection was dropped, from " : "",
                       opening->stranger.text);
}

/* What the loop waits for; the milliseconds until something is due besides. */
static int list_sockets(Opening *opening, double now)
{
    const CornuMesh *mesh = opening->mesh;
    double           until_s = opening->deadline_s;
    opening->polled[0] = (struct pollfd){ .fd = opening->missing ? opening->launch->listener : -1,
                                          .events = POLLIN };
    for (int rank = 0; rank < mesh->rank; rank++) {
        const Attempt *attempt = &opening->attempts[rank];
        const int      fd = attempt->greeting.socket;
        opening->polled[1 + rank] = (struct pollfd){
            .fd = fd, .events = attempt->connecting ? POLLOUT : POLLIN };
        if (fd < 0 && mesh->sockets[rank] < 0 && attempt->next_s < until_s)
            until_s = attempt->next_s;
    }
    for (int i = 0; i < opening->visitor_count; i++) {
        const CornuGreeting *visitor = &opening->visitors[i];
        opening->polled[1 + mesh->rank + i] = (struct pollfd){ .fd = visitor->socket,
                                                               .events = POLLIN };
        if (visitor->deadline_s < until_s) until_s = visitor->deadline_s;
    }
    const double left = 1e3 * (until_s - now);
    return left <= 0 ? 0 : left < 1e6 ? (int)left + 1 : 1000000;
}

static CornuStatus meet_all(Opening *opening)
{
    const int lower = opening->mesh->rank;
    if (opening->missing) prepare(opening->launch->listener);
    while (find_missing(opening->mesh) < opening->mesh->size) {
        const double now = cornu__seconds();
        if (now >= opening->deadline_s) return give_up(opening);
        const int pause = list_sockets(opening, now);
        if (poll(opening->polled, (nfds_t)(1 + lower + opening->visitor_count), pause) < 0) {
            if (errno == EINTR) continue;
            return cornu__fail(CORNU_ERR_PROCESS, "rank %d cannot wait for others: %s", lower,
                               strerror(errno));
        }
        const double then = cornu__seconds();
        CORNU__TRY(hear_visitors(opening, opening->polled + 1 + lower, then));
        CORNU__TRY(go_on_with_lower(opening, opening->polled + 1, then));
        if (opening->polled[0].revents) CORNU__TRY(accept_some(opening));
    }
    return CORNU_OK;
}

static CornuStatus connect_all(CornuMesh *mesh, const CornuLaunch *launch)
{
    Opening opening = { .mesh = mesh, .launch = launch, .missing = mesh->size - 1 - mesh->rank,
                        .deadline_s = cornu__seconds() + launch->timeout_s };
    opening.attempts = cornu__allocate((size_t)mesh->rank, sizeof *opening.attempts);
    opening.visitors = cornu__allocate(VISITORS, sizeof *opening.visitors);
    opening.polled = cornu__allocate(1 + (size_t)mesh->rank + VISITORS, sizeof *opening.polled);
    CornuStatus status = opening.attempts && opening.visitors && opening.polled ? CORNU_OK
                                                                                : CORNU_ERR_MEMORY;
    for (int rank = 0; opening.attempts && rank < mesh->rank; rank++) {
        Attempt *attempt = &opening.attempts[rank];
        attempt->greeting.socket = -1;
        attempt->pause_s = 1e-3 * RETRY_MS;
        if (!status) status = cornu__address_parse(&attempt->address, launch->workers[rank], rank);
    }
    if (!status) status = meet_all(&opening);
    for (int rank = 0; opening.attempts && rank < mesh->rank; rank++)
        if (opening.attempts[rank].greeting.socket >= 0)
            close(opening.attempts[rank].greeting.socket);
    for (int i = 0; i < opening.visitor_count; i++) close(opening.visitors[i].socket);
    cornu__release(opening.attempts);
    cornu__release(opening.visitors);
    cornu__release(opening.polled);
    return status;
}

CornuStatus cornu__mesh_open(CornuMesh *mesh, CornuLaunch *launch)
{
    *mesh = (CornuMesh){ .rank = launch->rank, .size = launch->count };
    mesh->sockets = cornu__allocate((size_t)mesh->size, sizeof *mesh->sockets);
    CornuStatus status = mesh->sockets ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int i = 0; !status && i < mesh->size; i++) mesh->sockets[i] = -1;
    if (!status && launch->listener < 0)
        status = cornu__mesh_listen_at(launch->workers[mesh->rank], mesh->rank,
                                       &launch->listener);
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
