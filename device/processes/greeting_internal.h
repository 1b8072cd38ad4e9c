/*
 * The first words of a connection between two ranks, by which each learns who the other is, and
 * that it has the job's key:
 *
 *     connects                             accepts
 *     hello: rank, count, a random nonce ->
 *                                        <- hello
 *     code of "connects", both hellos    ->
 *                                        <- code of "accepts", both hellos
 *
 * Codes are HMAC-SHA-256 with the key. Who connects shows its own first, so that a stranger who
 * knocks gets none to try keys on; another nonce each time keeps old ones from being used again.
 */
#ifndef CORNU_DEVICE_GREETING_INTERNAL_H
#define CORNU_DEVICE_GREETING_INTERNAL_H

#include <stdint.h>

#include "../hash/hmac_internal.h"
#include "key_internal.h"

typedef struct {
    uint32_t      magic;      /* as this processor orders its bytes */
    uint32_t      protocol;   /* of this and of the frames */
    int32_t       rank, count;
    unsigned char nonce[32];
} CornuHello;

typedef struct {
    const CornuKey *key;
    bool            connects;    /* this side does */
    int             socket;      /* non-blocking; -1: none */
    double          deadline_s;
    CornuHello      own, other;
    unsigned char   code[CORNU_HMAC_SIZE];   /* the other's */
    size_t          got;         /* bytes of the other's hello and code */
} CornuGreeting;

typedef enum {
    CORNU_GREETING_PENDING,   /* more has to come */
    CORNU_GREETING_KNOWN,     /* the other has the key: `other` is what it says */
    CORNU_GREETING_STRANGER   /* it has not, or has left; `why` says what happened */
} CornuGreetingState;

typedef struct { char text[160]; } CornuWhy;

/* Over a socket that is connected; this rank's hello gets a nonce. Stranger, or pending. */
CornuGreetingState cornu__greeting_begin(CornuGreeting *greeting, const CornuKey *key, int socket,
                                         bool connects, int rank, int count, CornuWhy *why);

/* Reads what has come, and answers it; never waits. */
CornuGreetingState cornu__greeting_go_on(CornuGreeting *greeting, CornuWhy *why);

/* CORNU_ERR_PROCESS unless one with the key can be in a group with this rank: its byte order and
 * the number of processes. */
CornuStatus cornu__greeting_check(const CornuGreeting *greeting);

#endif
