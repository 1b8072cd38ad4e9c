#include "mpi_internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../system/clock_internal.h"
#include "../memory_internal.h"
#include "frames_internal.h"

/* Frames and messages between two ranks arrive in order; failures and notices can overtake them. */
enum { TAG_FRAME = 1, TAG_MESSAGE, TAG_CONTROL };

enum { TELLING_S = 1 };   /* as in streams.c */

/* MPI is asked again and again: sleeping in between leaves the core to threads that compute. The
 * longer nothing has moved, the longer: a part of that time. */
enum { EAGER = 20, SLEEPS = 8 };
#define SHORTEST_S 5e-6
#define LONGEST_S  1e-3

#define LAST_WORDS_S 0.3

typedef struct {
    CornuFrame frame;
    char       message[CORNU_MESSAGE_SIZE];   /* of a failure */
} Control;

typedef struct {
    CornuFrame out, in;
    int        awaited;   /* parts of messages that are still to come; -1: the frame is */
    double     heard_s;
} Peer;

/* Requests 0 to size - 1 receive frames, by rank, then as many send them, and as many send notices;
 * the one that would send a notice to this rank receives them. Parts of messages follow. */
typedef struct {
    CornuTransport        transport;
    const CornuMpiPlugin *plugin;
    Peer                 *peers;
    int                   requests, space;
    int                  *ranks;     /* by request, -1 where none is active */
    const CornuExchange  *exchange;
    int                   active;    /* requests that the exchange waits for */
    double                begin_s, progress_s, look_s, notice_s;
    CornuFrame            notice;
    Control               received, sent;
} Mpi;

static CornuStatus mpi_check(const Mpi *mpi, int error)
{
    char why[200];
    if (!error) return CORNU_OK;
    mpi->plugin->explain(error, why, sizeof why);
    return cornu__fail(CORNU_ERR_PROCESS, "rank %d: MPI fails: %s", mpi->transport.rank, why);
}

static int frame_in(int rank) { return rank; }
static int frame_out(const Mpi *mpi, int rank) { return mpi->transport.size + rank; }
static int control_out(const Mpi *mpi, int rank) { return 2 * mpi->transport.size + rank; }
static int first_part(const Mpi *mpi) { return 3 * mpi->transport.size; }

/* ---- Starting ---- */

static CornuStatus reserve(Mpi *mpi, int count)
{
    const int before = mpi->space;
    if (count <= before) return CORNU_OK;
    CORNU__TRY(cornu__reserve(&mpi->ranks, &mpi->space, before, count - before,
                              sizeof *mpi->ranks));
    for (int i = before; i < mpi->space; i++) mpi->ranks[i] = -1;
    return mpi_check(mpi, mpi->plugin->reserve(mpi->space));
}

static int count_parts(const CornuMessage *messages, int count)
{
    int parts = 0;
    for (int i = 0; i < count; i++)
        parts += (int)((messages[i].bytes + CORNU_MPI_PART - 1) / CORNU_MPI_PART);
    return parts;
}

/* The messages with one rank, in parts; how many. */
static CornuStatus start_parts(Mpi *mpi, const CornuMessage *messages, int count, int rank,
                               bool out, int *parts)
{
    *parts = 0;
    for (int i = 0; i < count; i++) {
        if (messages[i].rank != rank - mpi->exchange->first) continue;
        for (size_t at = 0; at < messages[i].bytes; at += CORNU_MPI_PART) {
            const size_t left = messages[i].bytes - at;
            const size_t bytes = left < CORNU_MPI_PART ? left : CORNU_MPI_PART;
            char        *data = (char *)messages[i].data + at;
            const int    request = mpi->requests++;
            const int    error = out ? mpi->plugin->send(request, data, bytes, rank, TAG_MESSAGE)
                                     : mpi->plugin->receive(request, data, bytes, rank,
                                                            TAG_MESSAGE);
            CORNU__TRY(mpi_check(mpi, error));
            mpi->ranks[request] = rank;
            mpi->active++;
            (*parts)++;
        }
    }
    return CORNU_OK;
}

static CornuStatus start(Mpi *mpi)
{
    const CornuExchange *exchange = mpi->exchange;
    const int            own = mpi->transport.rank, size = mpi->transport.size;
    size_t               bytes;
    int                  parts;
    mpi->requests = first_part(mpi);
    mpi->active = 0;
    CORNU__TRY(reserve(mpi, mpi->requests + count_parts(exchange->sends, exchange->send_count) +
                                count_parts(exchange->receives, exchange->receive_count)));
    for (int rank = 0; rank < size; rank++) {
        Peer *peer = &mpi->peers[rank];
        peer->awaited = 0;
        if (rank == own) continue;
        if (cornu__frame_count(exchange->receives, exchange->receive_count,
                               rank - exchange->first, &bytes)) {
            CORNU__TRY(mpi_check(mpi, mpi->plugin->receive(frame_in(rank), &peer->in,
                                                           sizeof peer->in, rank, TAG_FRAME)));
            mpi->ranks[frame_in(rank)] = rank;
            mpi->active++;
            peer->awaited = -1;
        }
        if (!cornu__frame_count(exchange->sends, exchange->send_count, rank - exchange->first,
                                &bytes))
            continue;
        peer->out = cornu__frame_make(CORNU_FRAME_MESSAGES, exchange, bytes);
        CORNU__TRY(mpi_check(mpi, mpi->plugin->send(frame_out(mpi, rank), &peer->out,
                                                    sizeof peer->out, rank, TAG_FRAME)));
        mpi->ranks[frame_out(mpi, rank)] = rank;
        mpi->active++;
        CORNU__TRY(start_parts(mpi, exchange->sends, exchange->send_count, rank, true, &parts));
    }
    return CORNU_OK;
}

/* ---- Waiting ---- */

/* A frame has come: now its messages are received, unless they are others than expected. */
static CornuStatus take_frame(Mpi *mpi, int rank)
{
    Peer                *peer = &mpi->peers[rank];
    const CornuExchange *exchange = mpi->exchange;
    CORNU__TRY(cornu__frame_check(&peer->in, rank));
    CORNU__TRY(cornu__frame_expect(&peer->in, exchange, rank, mpi->transport.rank));
    return start_parts(mpi, exchange->receives, exchange->receive_count, rank, false,
                       &peer->awaited);
}

/* Tests the exchange's requests; *moved if one has ended. */
static CornuStatus test_all(Mpi *mpi, bool *moved)
{
    const int size = mpi->transport.size;
    for (int i = 0; i < mpi->requests; i++) {
        const int rank = mpi->ranks[i];
        int       done = 0;
        if (rank < 0 || (i >= 2 * size && i < first_part(mpi))) continue;
        CORNU__TRY(mpi_check(mpi, mpi->plugin->test(i, &done)));
        if (!done) continue;
        *moved = true;
        mpi->ranks[i] = -1;
        mpi->active--;
        mpi->progress_s = mpi->peers[rank].heard_s = cornu__seconds();
        if (i < size) CORNU__TRY(take_frame(mpi, rank));
    }
    return CORNU_OK;
}

/* Receives what others tell: failures, and that they wait. */
static CornuStatus hear(Mpi *mpi)
{
    const int request = control_out(mpi, mpi->transport.rank);
    for (;;) {
        int rank, done = 0;
        CORNU__TRY(mpi_check(mpi, mpi->plugin->probe(TAG_CONTROL, &rank)));
        if (rank < 0) return CORNU_OK;
        CORNU__TRY(mpi_check(mpi, mpi->plugin->receive(request, &mpi->received,
                                                       sizeof mpi->received, rank, TAG_CONTROL)));
        while (!done) CORNU__TRY(mpi_check(mpi, mpi->plugin->test(request, &done)));
        CORNU__TRY(cornu__frame_check(&mpi->received.frame, rank));
        mpi->peers[rank].heard_s = cornu__seconds();
        mpi->received.message[sizeof mpi->received.message - 1] = '\0';
        if (mpi->received.frame.kind == CORNU_FRAME_FAILURE)
            return cornu__fail(CORNU_ERR_PROCESS, "%s", mpi->received.message);
    }
}

/* Sends it to all that want it and have got the one before; how many have not got theirs yet. */
static CornuStatus send_control(Mpi *mpi, const void *control, size_t bytes, bool *wanted,
                                int *left)
{
    *left = 0;
    for (int rank = 0; rank < mpi->transport.size; rank++) {
        const int request = control_out(mpi, rank);
        int       done = 0;
        if (rank == mpi->transport.rank) continue;
        if (mpi->ranks[request] >= 0) {
            CORNU__TRY(mpi_check(mpi, mpi->plugin->test(request, &done)));
            if (done) mpi->ranks[request] = -1;
        }
        if (mpi->ranks[request] < 0 && wanted[rank]) {
            CORNU__TRY(mpi_check(mpi, mpi->plugin->send(request, control, bytes, rank,
                                                        TAG_CONTROL)));
            mpi->ranks[request] = rank;
            wanted[rank] = false;
        }
        *left += wanted[rank] || mpi->ranks[request] >= 0;
    }
    return CORNU_OK;
}

static CornuStatus say_waiting(Mpi *mpi)
{
    bool wanted[CORNU_MAX_PROCESSES];
    int  left;
    memset(wanted, true, sizeof wanted);
    mpi->notice = cornu__frame_make(CORNU_FRAME_WAITING, NULL, 0);
    return send_control(mpi, &mpi->notice, sizeof mpi->notice, wanted, &left);
}

/* Fails if a rank that the exchange waits for is silent. Of ranks that end, the launcher hears. */
static CornuStatus check_peers(const Mpi *mpi, double now, double timeout_s)
{
    int    waiting = -1, silent = -1;
    double longest = timeout_s;
    char   what[80];
    for (int i = 0; i < mpi->requests; i++) {
        const int rank = mpi->ranks[i];
        if (rank < 0 || (i >= 2 * mpi->transport.size && i < first_part(mpi))) continue;
        const double heard_s = mpi->peers[rank].heard_s;
        const double since = now - (heard_s > mpi->begin_s ? heard_s : mpi->begin_s);
        waiting = rank;
        if (since < longest) continue;
        longest = since;
        silent = rank;
    }
    if (silent >= 0) snprintf(what, sizeof what, "has not answered for %g s", timeout_s);
    else snprintf(what, sizeof what, "answers, but has moved nothing for %g s",
                  CORNU_LONGEST_WAIT * timeout_s);
    if (silent >= 0) return cornu__frame_fail(mpi->exchange, silent, what);
    if (waiting < 0 || now - mpi->progress_s < CORNU_LONGEST_WAIT * timeout_s) return CORNU_OK;
    return cornu__frame_fail(mpi->exchange, waiting, what);
}

static CornuStatus look_around(Mpi *mpi, double now, double timeout_s)
{
    if (atomic_load(mpi->transport.stop))
        return cornu__fail(CORNU_ERR_INTERRUPTED, "stopped in exchange %lld (%s)",
                           (long long)mpi->exchange->number, mpi->exchange->what);
    if (now < mpi->look_s) return CORNU_OK;
    mpi->look_s = now + 1e-3 * CORNU_SLICE_MS;
    CORNU__TRY(hear(mpi));
    if (now >= mpi->notice_s) {
        mpi->notice_s = now + timeout_s / CORNU_NOTICES;
        CORNU__TRY(say_waiting(mpi));
    }
    return check_peers(mpi, now, timeout_s);
}

static double bounded(double seconds)
{
    return seconds < SHORTEST_S ? SHORTEST_S : seconds > LONGEST_S ? LONGEST_S : seconds;
}

static void pause_for(double seconds)
{
    nanosleep(&(struct timespec){ .tv_nsec = (long)(1e9 * seconds) }, NULL);
}

static CornuStatus finish(Mpi *mpi, double timeout_s)
{
    for (int idle = 0; mpi->active > 0; idle++) {
        bool moved = false;
        CORNU__TRY(test_all(mpi, &moved));
        const double now = cornu__seconds();
        CORNU__TRY(look_around(mpi, now, timeout_s));
        if (moved) idle = 0;
        else if (idle > EAGER) pause_for(bounded((now - mpi->progress_s) / SLEEPS));
    }
    return CORNU_OK;
}

static CornuStatus mpi_exchange(CornuTransport *transport, const CornuExchange *exchange,
                                double timeout_s)
{
    Mpi *mpi = (Mpi *)transport;
    mpi->exchange = exchange;
    mpi->begin_s = mpi->progress_s = cornu__seconds();
    mpi->look_s = mpi->begin_s + 1e-3 * CORNU_SLICE_MS;
    mpi->notice_s = mpi->begin_s + timeout_s / CORNU_NOTICES;
    CornuStatus status = start(mpi);
    if (!status) status = finish(mpi, timeout_s);
    return status;
}

static void mpi_notify(CornuTransport *transport)
{
    Mpi         *mpi = (Mpi *)transport;
    CornuFailure before;
    cornu__error_keep(&before);
    say_waiting(mpi);
    cornu__error_restore(&before);   /* what fails now fails in the next exchange, too */
}

/* ---- Ending ---- */

static void mpi_tell(CornuTransport *transport, const char *why)
{
    Mpi         *mpi = (Mpi *)transport;
    const double deadline = cornu__seconds() + TELLING_S;
    bool         wanted[CORNU_MAX_PROCESSES];
    int          left = 1;
    memset(wanted, true, sizeof wanted);
    mpi->sent.frame = cornu__frame_make(CORNU_FRAME_FAILURE, NULL, strlen(why));
    snprintf(mpi->sent.message, sizeof mpi->sent.message, "%s", why);
    while (left > 0 && cornu__seconds() < deadline) {
        if (send_control(mpi, &mpi->sent, sizeof mpi->sent, wanted, &left)) break;
        if (left > 0) pause_for(1e-4);
    }
    for (int i = 0; i < mpi->requests; i++)
        if (mpi->ranks[i] >= 0 && i >= first_part(mpi)) mpi->plugin->cancel(i);
}

/* After a failure MPI's own end would wait for ranks that do not come; and its launcher kills all
 * as soon as one ends otherwise, so they get time to say why. */
static void mpi_close(CornuTransport *transport)
{
    Mpi *mpi = (Mpi *)transport;
    if (transport->failed) pause_for(LAST_WORDS_S);
    else mpi->plugin->close();
    cornu__release(mpi->peers);
    cornu__release(mpi->ranks);
    cornu__release(mpi);
}

static const CornuTransportClass mpi_transport = {
    .name = "mpi", .exchange = mpi_exchange, .notify = mpi_notify, .tell = mpi_tell,
    .close = mpi_close,
};

/* Another MPI's plugin would see as many groups of one. */
static CornuStatus compare_groups(const CornuMpiLauncher *launcher, int rank, int size,
                                  const char *library)
{
    if (rank == launcher->rank && size == launcher->count) return CORNU_OK;
    return cornu__fail(CORNU_ERR_PROCESS, "rank %d of %d by %s is rank %d of %d by %s: the "
                       "program and its launcher need the same MPI", launcher->rank,
                       launcher->count, launcher->name, rank, size, library);
}

CornuTransport *cornu__mpi_open(const CornuMpiLauncher *launcher, const _Atomic bool *stop)
{
    const CornuMpiPlugin *plugin;
    char                  library[80] = "";
    int                   rank = 0, size = 0;
    if (cornu__mpi_load(launcher, &plugin)) return NULL;
    Mpi *mpi = cornu__allocate(1, sizeof *mpi);
    if (!mpi) return NULL;
    mpi->plugin = plugin;
    mpi->transport = (CornuTransport){ .class = &mpi_transport, .rank = launcher->rank,
                                       .stop = stop, .failed = true };
    if (mpi_check(mpi, plugin->open(&rank, &size, library, sizeof library)) ||
        compare_groups(launcher, rank, size, library))
        goto fail;
    mpi->transport.size = size;
    snprintf(mpi->transport.description, sizeof mpi->transport.description, "%s", library);
    mpi->peers = cornu__allocate((size_t)size, sizeof *mpi->peers);
    if (!mpi->peers || reserve(mpi, first_part(mpi))) goto fail;
    mpi->transport.failed = false;
    return &mpi->transport;

fail:
    mpi_close(&mpi->transport);
    return NULL;
}
