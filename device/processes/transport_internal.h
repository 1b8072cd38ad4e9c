/*
 * Transports: what moves bytes between processes. They never add.
 *
 * A transport is opened, used and closed by one thread, the group's own (processes.c). Two kinds
 * exist: streams of bytes between each two ranks (streams_internal.h), over TCP or shared memory,
 * and messages of MPI. README.md says how to add one.
 */
#ifndef CORNU_DEVICE_TRANSPORT_H
#define CORNU_DEVICE_TRANSPORT_H

#include <stdatomic.h>

#include "processes_internal.h"

typedef struct CornuTransport CornuTransport;

typedef struct {
    const char *name;
    /* Does one exchange: sends and receives all messages. A rank that does not get on for
     * timeout_s, has ended or has told a failure, is CORNU_ERR_PROCESS, whose message begins with
     * "rank N"; so is one that is in another exchange. CORNU_ERR_INTERRUPTED soon after *stop. */
    CornuStatus (*exchange)(CornuTransport *transport, const CornuExchange *exchange,
                            double timeout_s);
    /* Between exchanges: says to all others that this rank is well. */
    void (*notify)(CornuTransport *transport);
    /* Tells all others why the group has failed, as well as it can within a second. After an
     * exchange that failed, before its messages are gone. */
    void (*tell)(CornuTransport *transport, const char *why);
    void (*close)(CornuTransport *transport);
} CornuTransportClass;

/* The first field of a transport's own struct. */
struct CornuTransport {
    const CornuTransportClass *class;
    int                        rank, size;
    const _Atomic bool        *stop;             /* set by other threads: exchange returns */
    CornuTransport            *base;             /* by which it was opened: closed after it */
    bool                       failed;           /* the group has */
    char                       description[80];   /* "Open MPI 4.1.4" */
};

/* Numbers of the exchanges in which a group is opened; those of the group itself begin at 1. */
#define CORNU_EXCHANGE_OPEN      ((uint64_t)-4)
#define CORNU_EXCHANGE_ADDRESSES ((uint64_t)-3)
#define CORNU_EXCHANGE_NAME      ((uint64_t)-2)
#define CORNU_EXCHANGE_MAP       ((uint64_t)-1)

enum { CORNU_SLICE_MS = 50 };   /* transports look at *stop so often */

/* A rank says this often in a timeout that it is well, be it waiting or computing, and is not
 * called silent; but whoever gets nothing for CORNU_LONGEST_WAIT timeouts gives up all the same. */
enum { CORNU_NOTICES = 4, CORNU_LONGEST_WAIT = 10 };

#endif
