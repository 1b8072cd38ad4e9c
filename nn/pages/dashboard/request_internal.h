/* A request to a dashboard's server: whether it is answered, and what it commands. */
#ifndef CORNU_NN_PAGES_REQUEST_INTERNAL_H
#define CORNU_NN_PAGES_REQUEST_INTERNAL_H

#include "board_internal.h"
#include "listen_internal.h"

enum { CORNU__REQUEST_BODY = 1024 };   /* the most bytes of a command */

typedef enum { CORNU__TARGET_PAGE, CORNU__TARGET_EVENTS, CORNU__TARGET_CONTROL } CornuTarget;

/* How it is answered: a status of HTTP and a line. */
typedef struct {
    unsigned    status;            /* 0: not yet */
    const char *why;
    const char *allow;             /* the method that there is, for 405; else NULL */
} CornuVerdict;

/* Headers are NULL where they are missing. They are valid while it is checked. */
typedef struct {
    const char *path, *method, *host, *origin, *type, *length, *authorization;
    const char *token;             /* of the address */
} CornuRequestHead;

typedef struct {
    CornuRequestHead head;
    CornuTarget      target;
    CornuVerdict     verdict;
    char             body[CORNU__REQUEST_BODY];
    size_t           size;         /* of the body so far, kept or not */
} CornuRequest;

/* Judges the head: the verdict's status stays 0 where nothing is wrong with it. */
void cornu__request_check(CornuRequest *request, const CornuListener *listener);

/* Keeps a part of the body. What is too large is read on, so that its sender sees the answer; false
 * if it does not end: the connection is to be closed. */
bool cornu__request_body(CornuRequest *request, const char *bytes, size_t size);

/* Queues the command in the body; sets the verdict. */
void cornu__request_control(CornuRequest *request, CornuBoard *board);

#endif
