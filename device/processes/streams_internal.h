/*
 * Exchanges over streams: an ordered stream of bytes each way between each two ranks.
 *
 * All messages of an exchange to one rank follow one frame, which says which exchange it is and how
 * many bytes they have together. Frames of two other kinds may stand before or after: one tells a
 * failure, one says that this rank is well and waits itself. Where streams carry messages only, a
 * second set, the control, has these.
 */
#ifndef CORNU_DEVICE_STREAMS_INTERNAL_H
#define CORNU_DEVICE_STREAMS_INTERNAL_H

#include <sys/types.h>

#include "frames_internal.h"
#include "transport_internal.h"

/* What is on its way to another rank, or from it. */
typedef struct {
    bool       busy;        /* the exchange still has messages that way */
    bool       started;     /* their frame has begun to move: no other may stand between */
    CornuFrame frame;
    size_t     framed;      /* bytes of the frame that have moved */
    int        message;     /* the next one of the exchange, and what of it has moved */
    size_t     moved;
} CornuFlow;

typedef struct {
    CornuFlow out, in;
    bool      can_write, can_read;   /* worth a try: wait sets them, a try that fails clears them */
    bool      broken, ended;         /* nothing can be sent any more; nothing will come any more */
    double    heard_s;               /* when it last moved anything, or said that it waits */
    size_t    notified;              /* bytes sent of the notice that this rank waits; all of them
                                        while none is due */
} CornuPeer;

typedef struct CornuStreams CornuStreams;

typedef struct {
    /* At most `bytes`: how many have moved, 0 if none can now, -1 if none ever will. */
    ssize_t (*write)(CornuStreams *streams, int rank, const void *from, size_t bytes);
    ssize_t (*read)(CornuStreams *streams, int rank, void *to, size_t bytes);
    /* Sets can_write and can_read of peers that want it (below). If there are none, waits for one,
     * at most so long. */
    void (*wait)(CornuStreams *streams, int milliseconds);
    /* Called after writes to the rank, to send what is buffered; may be NULL. */
    void (*flush)(CornuStreams *streams, int rank);
} CornuStreamsClass;

struct CornuStreams {
    CornuTransport           transport;
    const CornuStreamsClass *class;
    CornuStreams            *control;     /* itself unless messages have streams of their own */
    CornuPeer               *peers;       /* by rank */
    CornuFrame               notice;      /* that this rank waits */
    const CornuExchange     *exchange;    /* the one in progress */
    double                   progress_s;  /* when bytes of it last moved */
    bool                     telling;     /* of a failure: nothing is read any more */
    int                      teller;      /* who tells this rank of a failure; -1: nobody */
    size_t                   told;        /* bytes of the failure that have come */
    char                     failure[CORNU_MESSAGE_SIZE];
};

/* Transport.class, class and control are the caller's to set. CORNU_ERR_MEMORY. */
CornuStatus cornu__streams_create(CornuStreams *streams, int rank, int size);
void        cornu__streams_clear(CornuStreams *streams);

/* Whether there is something to write to the rank, which wait waits for; and to read. */
bool cornu__streams_want_write(const CornuStreams *streams, int rank);
bool cornu__streams_want_read(const CornuStreams *streams, int rank);

/* For a CornuTransportClass. */
CornuStatus cornu__streams_exchange(CornuTransport *transport, const CornuExchange *exchange,
                                    double timeout_s);
void        cornu__streams_notify(CornuTransport *transport);
void        cornu__streams_tell(CornuTransport *transport, const char *why);

#endif
