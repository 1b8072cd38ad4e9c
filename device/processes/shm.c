#include "shm_internal.h"

#include <stdio.h>
#include <string.h>

#include "../memory_internal.h"
#include "shm_memory_internal.h"
#include "streams_internal.h"

typedef struct {
    CornuStreams   streams;
    CornuShmMemory memory;
    bool           owed[CORNU_SHM_MOST];   /* ranks that are to be woken */
} Shm;

/* ---- Streams ---- */

/* A sleeper says so before it looks a last time; so either it sees what was done before this, or
 * this sees that it sleeps. */
static void wake(const Shm *shm, int rank)
{
    CornuShmBell *bell = cornu__shm_bell(&shm->memory, rank);
    if (!atomic_load(&bell->sleeping)) return;
    atomic_fetch_add(&bell->rung, 1);
    cornu__futex_wake(&bell->rung);
}

/* In pieces, so that the other side copies out what this one has copied in while it copies on. */
static ssize_t shm_write(CornuStreams *streams, int rank, const void *from, size_t bytes)
{
    Shm               *shm = (Shm *)streams;
    const size_t       size = shm->memory.ring_bytes;
    const CornuShmRing ring = cornu__shm_ring(&shm->memory, streams->transport.rank, rank);
    const uint64_t     written = atomic_load_explicit(&ring.ends->written, memory_order_relaxed);
    const uint64_t     read = atomic_load(&ring.ends->read);
    const size_t       at = written % size, room = size - (size_t)(written - read);
    size_t             n = bytes < room ? bytes : room;
    if (n > size - at) n = size - at;
    if (n > size / CORNU_SHM_PIECES) n = size / CORNU_SHM_PIECES;
    memcpy(ring.bytes + at, from, n);
    atomic_store(&ring.ends->written, written + n);
    if (n < size / CORNU_SHM_PIECES) shm->owed[rank] = true;
    else wake(shm, rank);
    return (ssize_t)n;
}

/* The writer sleeps only while the ring is full: as long as that is so, the half that is looked at
 * here is. */
static ssize_t shm_read(CornuStreams *streams, int rank, void *to, size_t bytes)
{
    const Shm         *shm = (const Shm *)streams;
    const size_t       size = shm->memory.ring_bytes;
    const CornuShmRing ring = cornu__shm_ring(&shm->memory, rank, streams->transport.rank);
    const uint64_t     read = atomic_load_explicit(&ring.ends->read, memory_order_relaxed);
    const uint64_t     written = atomic_load(&ring.ends->written);
    const size_t       at = read % size, there = (size_t)(written - read);
    size_t             n = bytes < there ? bytes : there;
    if (n > size - at) n = size - at;
    if (n > size / CORNU_SHM_PIECES) n = size / CORNU_SHM_PIECES;
    memcpy(to, ring.bytes + at, n);
    atomic_store(&ring.ends->read, read + n);
    if (there >= size / 2) wake(shm, rank);
    return (ssize_t)n;
}

static void shm_flush(CornuStreams *streams, int rank)
{
    Shm *shm = (Shm *)streams;
    if (shm->owed[rank]) wake(shm, rank);
    shm->owed[rank] = false;
}

/* Notes which peers can be read and written; returns whether any can. */
static bool look(Shm *shm)
{
    CornuStreams *streams = &shm->streams;
    const int     own = streams->transport.rank;
    bool          any = false;
    for (int rank = 0; rank < streams->transport.size; rank++) {
        if (cornu__streams_want_read(streams, rank)) {
            const CornuShmRing in = cornu__shm_ring(&shm->memory, rank, own);
            const bool there = atomic_load(&in.ends->written) != atomic_load(&in.ends->read);
            streams->peers[rank].can_read = there;
            any |= there;
        }
        if (cornu__streams_want_write(streams, rank)) {
            const CornuShmRing out = cornu__shm_ring(&shm->memory, own, rank);
            const bool room = atomic_load(&out.ends->written) - atomic_load(&out.ends->read) <
                              shm->memory.ring_bytes;
            streams->peers[rank].can_write = room;
            any |= room;
        }
    }
    return any;
}

/* Without a spin: where threads compute on all cores, which is what exchanges overlap, 20 us of it
 * make a small exchange take 50 us in place of 25 (two processes on two busy cores). */
static void shm_wait(CornuStreams *streams, int milliseconds)
{
    Shm          *shm = (Shm *)streams;
    CornuShmBell *bell = cornu__shm_bell(&shm->memory, streams->transport.rank);
    if (look(shm)) return;
    atomic_store(&bell->sleeping, 1);
    const uint32_t rung = atomic_load(&bell->rung);
    if (!look(shm)) cornu__futex_wait(&bell->rung, rung, milliseconds);
    atomic_store(&bell->sleeping, 0);
    look(shm);
}

static void shm_close(CornuTransport *transport)
{
    Shm            *shm = (Shm *)transport;
    cornu__shm_unmap(&shm->memory);
    cornu__streams_clear(&shm->streams);
    cornu__release(shm);
}

static const CornuTransportClass shm_transport = {
    .name = "shm", .exchange = cornu__streams_exchange, .notify = cornu__streams_notify,
    .tell = cornu__streams_tell, .close = shm_close,
};

static const CornuStreamsClass shm_streams = { shm_write, shm_read, shm_wait, shm_flush };

/* ---- Opening ---- */

/* Rank 0's `bytes` bytes to all. */
static CornuStatus share(CornuTransport *control, void *data, size_t bytes, double timeout_s)
{
    CornuMessage  messages[CORNU_SHM_MOST] = { { 0, data, bytes } };
    CornuExchange exchange = { .what = "shared memory", .number = CORNU_EXCHANGE_NAME,
                               .sends = messages, .receives = messages,
                               .receive_count = control->rank > 0 };
    for (int i = 1; control->rank == 0 && i < control->size; i++)
        messages[exchange.send_count++] = (CornuMessage){ i, data, bytes };
    return control->class->exchange(control, &exchange, timeout_s);
}

/* Why the first rank that has a reason fails; "" if none has. */
typedef struct { char text[160]; } Reason;

static CornuStatus settle(CornuTransport *control, Reason *reason, double timeout_s)
{
    Reason        all[CORNU_SHM_MOST];
    CornuMessage  sends[CORNU_SHM_MOST], receives[CORNU_SHM_MOST];
    CornuExchange exchange = { .what = "mapping memory", .number = CORNU_EXCHANGE_MAP,
                               .sends = sends, .receives = receives };
    all[control->rank] = *reason;
    for (int i = 0; i < control->size; i++) {
        if (i == control->rank) continue;
        sends[exchange.send_count++] = (CornuMessage){ i, reason, sizeof *reason };
        receives[exchange.receive_count++] = (CornuMessage){ i, &all[i], sizeof *all };
    }
    CORNU__TRY(control->class->exchange(control, &exchange, timeout_s));
    for (int i = 0; i < control->size; i++) {
        if (!all[i].text[0]) continue;
        *reason = all[i];
        reason->text[sizeof reason->text - 1] = '\0';
        cornu__fail(CORNU_ERR_PROCESS, "rank %d has no shared memory: %s", i, reason->text);
        break;
    }
    return CORNU_OK;
}

/* Rank 0 makes the memory, and hides it once all have it. */
static CornuStatus map_all(CornuTransport *control, CornuShmMemory *memory, Reason *reason,
                           double timeout_s)
{
    int error = 0;
    if (control->rank == 0) error = cornu__shm_create(memory, control->size);
    CornuStatus status = share(control, &memory->place, sizeof memory->place, timeout_s);
    if (!status && control->rank > 0 && memory->place.process)
        error = cornu__shm_map(memory, control->size);
    if (error) snprintf(reason->text, sizeof reason->text, "%s", strerror(error));
    if (!status) status = settle(control, reason, timeout_s);
    if (control->rank == 0) cornu__shm_hide(memory);
    return status;
}

CornuStatus cornu__shm_open(CornuTransport *control, double timeout_s, CornuTransport **transport)
{
    Reason reason = { "" };
    *transport = NULL;
    if (control->size > CORNU_SHM_MOST) {
        cornu__fail(CORNU_ERR_PROCESS, "%d processes are too many for shared memory, which has "
                    "room for %d", control->size, CORNU_SHM_MOST);
        return CORNU_OK;
    }
    Shm *shm = cornu__allocate(1, sizeof *shm);
    if (!shm || cornu__streams_create(&shm->streams, control->rank, control->size)) {
        cornu__release(shm);
        return CORNU_ERR_MEMORY;
    }
    shm->streams.transport.class = &shm_transport;
    shm->streams.transport.stop = control->stop;
    shm->streams.transport.base = control;
    shm->streams.class = &shm_streams;
    shm->streams.control = (CornuStreams *)control;
    const CornuStatus status = map_all(control, &shm->memory, &reason, timeout_s);
    if (!status && !reason.text[0]) {
        *transport = &shm->streams.transport;
        return CORNU_OK;
    }
    cornu__shm_unmap(&shm->memory);
    cornu__streams_clear(&shm->streams);
    cornu__release(shm);
    return status;
}
