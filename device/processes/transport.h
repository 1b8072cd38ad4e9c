/*
 * Transports: what moves bytes between processes. They never add.
 *
 * A transport is opened, used and closed by one thread, the group's own (processes.c). To add one:
 * a file with a class, and a row of transports.def.
 */
#ifndef CORNU_DEVICE_TRANSPORT_H
#define CORNU_DEVICE_TRANSPORT_H

#include "processes_internal.h"

typedef struct CornuTransport CornuTransport;

typedef struct {
    const char *name;
    /* Does one exchange: sends and receives all messages. A rank that does not get on for
     * timeout_s, has ended or has told a failure, is CORNU_ERR_PROCESS, whose message begins with
     * "rank N"; so is one that is in another exchange. */
    CornuStatus (*exchange)(CornuTransport *transport, const CornuExchange *exchange,
                            double timeout_s);
    /* Tells all others why this rank has failed, as well as it can within a second. */
    void (*tell)(CornuTransport *transport, const char *why);
    void (*close)(CornuTransport *transport);
} CornuTransportClass;

/* The first field of a transport's own struct. */
struct CornuTransport {
    const CornuTransportClass *class;
    int                        rank, size;
    char                       description[128];
};

#endif
