/* One request for bytes of a file, sent by curl. */
#ifndef CORNU_DATASETS_TRANSFER_INTERNAL_H
#define CORNU_DATASETS_TRANSFER_INTERNAL_H

#include <stdatomic.h>

#include "address_internal.h"

enum { CORNU__VALIDATOR = 256 };

typedef struct {
    CornuAddress *address;
    const char   *url;           /* instead of the address's own, with its header; NULL: that */
    int64_t       first, last;   /* the range; first -1: without one */
    const char   *if_range;      /* an ETag that must be the file's, NULL: any */
    atomic_bool  *stop;          /* NULL: it is not stopped */
} CornuRequest;

/* What the header of the answer says. */
typedef struct {
    int     code;                          /* 200, 206, ...; 0: there was none */
    int64_t first, last, total;            /* of Content-Range, total -1: not said */
    int64_t length;                        /* of the body, -1: not said */
    char    validator[CORNU__VALIDATOR];   /* ETag, or else Last-Modified; "" without */
    bool    is_etag;                       /* a strong one, for if_range */
    int     retry_after;                   /* seconds */
} CornuAnswer;

/* Takes bytes of a body from its byte `at` on, perhaps none; *enough ends the transfer. */
typedef CornuStatus CornuTake(void *context, const CornuAnswer *answer, int64_t at,
                              const unsigned char *bytes, size_t size, bool *enough);

/*
 * Sends a request and gives the body to `take` if the answer has code 200 or 206; bodies of others
 * are not read. CORNU_OK with any code. CORNU_ERR_FILE, with *again, if the connection fails or
 * ends before the body does, CORNU_ERR_INTERRUPTED if it was stopped, CORNU_ERR_UNSUPPORTED without
 * curl.
 */
CornuStatus cornu__transfer(const CornuRequest *request, CornuAnswer *answer, CornuTake *take,
                            void *context, bool *again);

/* The same, again and again as the patience allows: after failures that may pass, and once with
 * credentials where they are asked for. `take` may move request->first on to what the next try asks
 * for. CORNU_ERR_FILE for any code but 200, 206 and 416. */
CornuStatus cornu__transfer_patiently(CornuRequest *request, CornuAnswer *answer, CornuTake *take,
                                      void *context);

#endif
