/* Where a file is: what a user writes, and what is asked for. */
#ifndef CORNU_DATASETS_ADDRESS_INTERNAL_H
#define CORNU_DATASETS_ADDRESS_INTERNAL_H

#include <pthread.h>

#include "remote_internal.h"

typedef enum { CORNU__WEB, CORNU__GS, CORNU__S3 } CornuStore;

/* An address, which does not change, and how it is signed, under a lock. */
typedef struct {
    CornuStore      store;
    char           *given;      /* owned: gs://BUCKET/OBJECT, ... */
    char           *url;        /* owned: https://... */
    pthread_mutex_t lock;
    char           *header;     /* owned: of requests; NULL: none */
    char           *signed_url; /* owned: in place of url; NULL: none */
    double          since;      /* cornu__seconds, when it was signed */
} CornuAddress;

/* Close it in any case. CORNU_ERR_ARGUMENT, CORNU_ERR_MEMORY. */
CornuStatus cornu__address_open(CornuAddress *address, const char *given);
void        cornu__address_close(CornuAddress *address);

/* Splits gs://BUCKET/NAME; the bucket, owned by the caller. NULL if there is none. */
char *cornu__address_bucket(const char *given, const char **name);

/* The address of a bucket's server that lists the names that begin with `prefix`, from `token` on,
 * unless it is NULL; owned by the caller. NULL with CORNU_ERR_MEMORY. */
char *cornu__address_list(CornuStore store, const char *bucket, const char *prefix,
                          const char *token);

/* The header and address of a request now, as the caller's copies; NULL where there is none. */
CornuStatus cornu__address_now(CornuAddress *address, char **url, char **header);

/* After a request was refused that was sent at `sent`: signs the next ones, unless that is done
 * since. CORNU_ERR_FILE if they cannot be signed, saying what would help. */
CornuStatus cornu__address_sign(CornuAddress *address, double sent);

#endif
