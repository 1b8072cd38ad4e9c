#include "streams_internal.h"

#include <stdio.h>
#include <string.h>

#include "../system/clock_internal.h"
#include "../memory_internal.h"

enum { NONE = -1 };

/* A rank that ended may have followed another, which is what the others should hear of: so long
 * they listen to each other before they name it; two alone only until what it sent has come. */
#define GRACE_S     0.5
#define GRACE_TWO_S 0.1

enum { TELLING_S = 1 };

CornuStatus cornu__streams_create(CornuStreams *streams, int rank, int size)
{
    streams->transport.rank = rank;
    streams->transport.size = size;
    streams->teller = NONE;
    streams->notice = cornu__frame_make(CORNU_FRAME_WAITING, NULL, 0);
    streams->peers = cornu__allocate((size_t)size, sizeof *streams->peers);
    if (!streams->peers) return CORNU_ERR_MEMORY;
    for (int i = 0; i < size; i++) streams->peers[i].notified = sizeof(CornuFrame);
    return CORNU_OK;
}

void cornu__streams_clear(CornuStreams *streams) { cornu__release(streams->peers); }

/* A frame of messages for a later exchange waits until that begins. */
static bool is_early(const CornuFlow *in)
{
    return !in->started && in->framed == sizeof in->frame &&
           in->frame.kind == CORNU_FRAME_MESSAGES;
}

bool cornu__streams_want_write(const CornuStreams *streams, int rank)
{
    const CornuPeer *peer = &streams->peers[rank];
    return rank != streams->transport.rank && !peer->broken &&
           (peer->out.busy || peer->notified < sizeof(CornuFrame));
}

bool cornu__streams_want_read(const CornuStreams *streams, int rank)
{
    const CornuPeer *peer = &streams->peers[rank];
    return rank != streams->transport.rank && !peer->ended && !streams->telling &&
           !is_early(&peer->in);
}

/* The next message with this rank from the i-th on; count: none. */
static int next_message(const CornuMessage *messages, int count, int i, int rank)
{
    while (i < count && messages[i].rank != rank) i++;
    return i;
}

/* ---- Sending ---- */

/* Whether all of it has been sent. */
static bool write_all(CornuStreams *streams, int rank, const void *from, size_t bytes,
                      size_t *moved)
{
    CornuPeer *peer = &streams->peers[rank];
    while (*moved < bytes) {
        const ssize_t n = streams->class->write(streams, rank, (const char *)from + *moved,
                                                bytes - *moved);
        if (n <= 0) {
            peer->can_write = false;
            peer->broken |= n < 0;
            return false;
        }
        *moved += (size_t)n;
        if (peer->out.started) peer->heard_s = cornu__seconds();   /* a notice always has room */
    }
    return true;
}

/* A notice that is due, then what can be sent of the exchange's messages. */
static void write_due(CornuStreams *streams, int rank)
{
    const CornuExchange *exchange = streams->exchange;
    CornuPeer           *peer = &streams->peers[rank];
    CornuFlow           *out = &peer->out;
    if (!out->started && !write_all(streams, rank, &streams->notice, sizeof(CornuFrame),
                                    &peer->notified))
        return;
    if (!out->busy) return;
    streams->progress_s = cornu__seconds();
    out->started = true;
    if (!write_all(streams, rank, &out->frame, sizeof out->frame, &out->framed)) return;
    for (;;) {
        out->message = next_message(exchange->sends, exchange->send_count, out->message,
                                    rank - exchange->first);
        if (out->message == exchange->send_count) break;
        const CornuMessage *message = &exchange->sends[out->message];
        if (!write_all(streams, rank, message->data, message->bytes, &out->moved)) return;
        out->moved = 0;
        out->message++;
    }
    out->busy = out->started = false;
}

static void push(CornuStreams *streams, int rank)
{
    write_due(streams, rank);
    if (streams->class->flush) streams->class->flush(streams, rank);
}

/* ---- Receiving ---- */

static bool read_all(CornuStreams *streams, int rank, void *to, size_t bytes, size_t *moved)
{
    CornuPeer *peer = &streams->peers[rank];
    while (*moved < bytes) {
        const ssize_t n = streams->class->read(streams, rank, (char *)to + *moved, bytes - *moved);
        if (n <= 0) {
            peer->can_read = false;
            peer->ended |= n < 0;
            if (peer->ended && streams->teller == rank) streams->teller = NONE;
            return false;
        }
        *moved += (size_t)n;
        peer->heard_s = cornu__seconds();
    }
    return true;
}

/* Failures are told one at a time: the first one counts. */
static CornuStatus hear_failure(CornuStreams *streams, int rank)
{
    CornuFlow   *in = &streams->peers[rank].in;
    const size_t most = sizeof streams->failure - 1;
    const size_t bytes = in->frame.bytes < most ? in->frame.bytes : most;
    if (streams->teller != rank) {
        if (streams->teller != NONE) {
            streams->peers[rank].can_read = false;
            return CORNU_OK;
        }
        streams->teller = rank;
        streams->told = 0;
    }
    if (!read_all(streams, rank, streams->failure, bytes, &streams->told)) return CORNU_OK;
    streams->failure[bytes] = '\0';
    return cornu__fail(CORNU_ERR_PROCESS, "%s", streams->failure);
}

/* Reads a frame and handles what comes before its messages: *ready if those come next. */
static CornuStatus read_frame(CornuStreams *streams, int rank, bool *ready)
{
    CornuFlow *in = &streams->peers[rank].in;
    for (;; in->framed = 0) {
        CornuFrame *frame = &in->frame;
        if (!read_all(streams, rank, frame, sizeof *frame, &in->framed)) return CORNU_OK;
        CORNU__TRY(cornu__frame_check(frame, rank));
        if (frame->kind == CORNU_FRAME_FAILURE) return hear_failure(streams, rank);
        if (frame->kind == CORNU_FRAME_MESSAGES) break;
    }
    const CornuExchange *exchange = streams->exchange;
    if (!exchange || (!in->busy && cornu__frame_is_later(&in->frame, exchange))) return CORNU_OK;
    *ready = true;
    return cornu__frame_expect(&in->frame, exchange, rank, streams->transport.rank);
}

static CornuStatus pull(CornuStreams *streams, int rank)
{
    const CornuExchange *exchange = streams->exchange;
    CornuFlow           *in = &streams->peers[rank].in;
    if (!in->started) CORNU__TRY(read_frame(streams, rank, &in->started));
    if (!in->started) {
        streams->peers[rank].can_read = false;
        return CORNU_OK;
    }
    streams->progress_s = cornu__seconds();
    for (;;) {
        in->message = next_message(exchange->receives, exchange->receive_count, in->message,
                                   rank - exchange->first);
        if (in->message == exchange->receive_count) break;
        const CornuMessage *message = &exchange->receives[in->message];
        if (!read_all(streams, rank, message->data, message->bytes, &in->moved)) return CORNU_OK;
        in->moved = 0;
        in->message++;
    }
    in->busy = in->started = false;
    in->framed = 0;
    return CORNU_OK;
}

/* ---- Waiting ---- */

/* When the exchange began, when to say that this rank waits, when to name one that has ended. */
typedef struct { double begin_s, timeout_s, look_s, notice_s, grace_s; } Patience;

/* Hears failures, and says that this rank waits, where messages have streams of their own. */
static CornuStatus use_control(CornuStreams *control)
{
    control->class->wait(control, 0);
    for (int rank = 0; rank < control->transport.size; rank++) {
        const CornuPeer *peer = &control->peers[rank];
        if (rank == control->transport.rank) continue;
        if (peer->can_write && cornu__streams_want_write(control, rank)) push(control, rank);
        if (peer->can_read) CORNU__TRY(pull(control, rank));
    }
    return CORNU_OK;
}

/* Fails if a rank that the exchange waits for has ended or is silent. */
static CornuStatus check_peers(CornuStreams *streams, Patience *patience, double now)
{
    const CornuStreams *control = streams->control;
    const int           size = streams->transport.size;
    int                 waiting = NONE, silent = NONE, gone = NONE;
    double              longest = patience->timeout_s;
    char                what[80];
    for (int rank = 0; rank < size; rank++) {
        const CornuPeer *peer = &streams->peers[rank], *other = &control->peers[rank];
        if (!peer->in.busy && !peer->out.busy) continue;
        waiting = rank;
        if (gone == NONE && ((peer->in.busy && other->ended) ||
                             (peer->out.busy && (other->ended || other->broken))))
            gone = rank;
        double heard = peer->heard_s > other->heard_s ? peer->heard_s : other->heard_s;
        if (heard < patience->begin_s) heard = patience->begin_s;
        if (now - heard < longest) continue;
        longest = now - heard;
        silent = rank;
    }
    if (gone == NONE) patience->grace_s = 0;
    else if (patience->grace_s == 0) patience->grace_s = now + (size > 2 ? GRACE_S : GRACE_TWO_S);
    else if (now >= patience->grace_s)
        return cornu__frame_fail(streams->exchange, gone, "has ended");
    if (gone != NONE) return CORNU_OK;
    if (silent != NONE) {
        snprintf(what, sizeof what, "has not answered for %g s", patience->timeout_s);
        return cornu__frame_fail(streams->exchange, silent, what);
    }
    if (waiting == NONE || now - streams->progress_s < CORNU_LONGEST_WAIT * patience->timeout_s)
        return CORNU_OK;
    snprintf(what, sizeof what, "answers, but has moved nothing for %g s",
             CORNU_LONGEST_WAIT * patience->timeout_s);
    return cornu__frame_fail(streams->exchange, waiting, what);
}

static void make_notices_due(CornuStreams *control)
{
    for (int i = 0; i < control->transport.size; i++)
        if (control->peers[i].notified == sizeof(CornuFrame)) control->peers[i].notified = 0;
}

void cornu__streams_notify(CornuTransport *transport)
{
    CornuStreams *control = ((CornuStreams *)transport)->control;
    make_notices_due(control);
    for (int rank = 0; rank < transport->size; rank++)
        if (cornu__streams_want_write(control, rank)) push(control, rank);
}

static CornuStatus look_around(CornuStreams *streams, Patience *patience)
{
    CornuStreams *control = streams->control;
    const double  now = cornu__seconds();
    if (atomic_load(streams->transport.stop))
        return cornu__fail(CORNU_ERR_INTERRUPTED, "stopped in exchange %lld (%s)",
                           (long long)streams->exchange->number, streams->exchange->what);
    if (now < patience->look_s) return CORNU_OK;
    /* A rank that was stopped itself, as all are when a job is suspended, has not listened. */
    if (now - patience->look_s > patience->timeout_s / CORNU_NOTICES)
        patience->begin_s = streams->progress_s = now;
    patience->look_s = now + 1e-3 * CORNU_SLICE_MS;
    if (now >= patience->notice_s) {
        patience->notice_s = now + patience->timeout_s / CORNU_NOTICES;
        make_notices_due(control);
    }
    if (control != streams) CORNU__TRY(use_control(control));
    return check_peers(streams, patience, now);
}

static void begin_flow(CornuStreams *streams, const CornuMessage *message, bool out)
{
    CornuPeer *peer = &streams->peers[streams->exchange->first + message->rank];
    CornuFlow *flow = out ? &peer->out : &peer->in;
    if (!flow->busy) {
        flow->busy = true;
        flow->message = 0;
        flow->moved = 0;
        if (out) {
            flow->frame = cornu__frame_make(CORNU_FRAME_MESSAGES, streams->exchange, 0);
            flow->framed = 0;
        }
    }
    if (out) flow->frame.bytes += message->bytes;
}

CornuStatus cornu__streams_exchange(CornuTransport *transport, const CornuExchange *exchange,
                                    double timeout_s)
{
    CornuStreams *streams = (CornuStreams *)transport;
    const double  now = cornu__seconds();
    Patience      patience = { .begin_s = now, .timeout_s = timeout_s,
                               .look_s = now + 1e-3 * CORNU_SLICE_MS,
                               .notice_s = now + timeout_s / CORNU_NOTICES };
    streams->exchange = exchange;
    streams->progress_s = now;
    for (int i = 0; i < exchange->send_count; i++) begin_flow(streams, &exchange->sends[i], true);
    for (int i = 0; i < exchange->receive_count; i++)
        begin_flow(streams, &exchange->receives[i], false);
    for (int i = 0; i < transport->size; i++) {
        streams->peers[i].can_write = true;
        streams->peers[i].can_read = is_early(&streams->peers[i].in);
    }
    for (;;) {
        bool busy = false;
        for (int rank = 0; rank < transport->size; rank++) {
            CornuPeer *peer = &streams->peers[rank];
            if (rank == transport->rank) continue;
            if (peer->can_write && cornu__streams_want_write(streams, rank)) push(streams, rank);
            if (peer->can_read) CORNU__TRY(pull(streams, rank));
            busy |= peer->in.busy || peer->out.busy;
        }
        if (!busy) break;
        streams->class->wait(streams, CORNU_SLICE_MS);
        CORNU__TRY(look_around(streams, &patience));
    }
    streams->exchange = NULL;
    return CORNU_OK;
}

/* ---- Telling ---- */

/* Sends the rest of what has begun, and then the failure: whether all is sent, or never can be. */
static bool tell_rank(CornuStreams *streams, int rank, const char *why, size_t bytes)
{
    CornuPeer *peer = &streams->peers[rank];
    CornuFlow *out = &peer->out;
    if (rank == streams->transport.rank || peer->broken) return true;
    if (out->started && out->frame.kind != CORNU_FRAME_FAILURE) push(streams, rank);
    if (out->started && out->frame.kind != CORNU_FRAME_FAILURE) return peer->broken;
    if (!out->started) {
        if (peer->notified > 0 && !write_all(streams, rank, &streams->notice, sizeof(CornuFrame),
                                             &peer->notified))
            return peer->broken;
        *out = (CornuFlow){ .busy = true, .started = true };
        out->frame = cornu__frame_make(CORNU_FRAME_FAILURE, NULL, bytes);
    }
    out->busy = !write_all(streams, rank, &out->frame, sizeof out->frame, &out->framed) ||
                !write_all(streams, rank, why, bytes, &out->moved);
    return !out->busy || peer->broken;
}

void cornu__streams_tell(CornuTransport *transport, const char *why)
{
    CornuStreams *streams = ((CornuStreams *)transport)->control;
    const double  deadline = cornu__seconds() + TELLING_S;
    const size_t  bytes = strlen(why);
    streams->telling = true;
    for (bool done = false; !done && cornu__seconds() < deadline;) {
        done = true;
        for (int rank = 0; rank < transport->size; rank++)
            done &= tell_rank(streams, rank, why, bytes);
        if (!done) streams->class->wait(streams, CORNU_SLICE_MS);
    }
}
