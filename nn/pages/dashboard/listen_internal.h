/* Where a dashboard listens, and the secret in its address. */
#ifndef CORNU_NN_PAGES_LISTEN_INTERNAL_H
#define CORNU_NN_PAGES_LISTEN_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "../../../device/status_internal.h"

enum {
    CORNU__TOKEN = 48,       /* characters of a token: 24 random bytes in hexadecimal */
    CORNU__HOST = 256,
    CORNU__URL = 512,
};

typedef struct {
    int  socket;                   /* listens, not blocking; -1: none */
    bool loopback;                 /* this machine alone reaches it */
    char host[CORNU__HOST];        /* as it was given */
    char token[CORNU__TOKEN + 1];
    char url[CORNU__URL];          /* with the token */
} CornuListener;

/* Listens at address, NULL: 127.0.0.1, and port, 0: a free one. CORNU_ERR_ARGUMENT, or
 * CORNU_ERR_BUSY if the port is taken. On failure nothing is to be closed. */
CornuStatus cornu__listen(CornuListener *listener, const char *address, int64_t port);
void        cornu__listen_close(CornuListener *listener);

/* Whether a browser that asks for this host, "localhost:8790", means this server. Where only this
 * machine reaches it, that is a name of loopback or the one given: a name of others that resolves
 * to 127.0.0.1 is theirs (DNS rebinding). */
bool cornu__listen_is_host(const CornuListener *listener, const char *host);

/* Whether it is the token; takes as long wherever they differ. NULL is not. */
bool cornu__listen_is_token(const CornuListener *listener, const char *token);

#endif
