/* What precedes the messages of an exchange to one rank: which exchange it is, and how many bytes
 * they have together. */
#ifndef CORNU_DEVICE_FRAMES_INTERNAL_H
#define CORNU_DEVICE_FRAMES_INTERNAL_H

#include "processes_internal.h"

typedef enum {
    CORNU_FRAME_MESSAGES,   /* `bytes` of them follow */
    CORNU_FRAME_FAILURE,    /* the group's failure: its message follows, of `bytes` */
    CORNU_FRAME_WAITING     /* this rank is well, and waits itself */
} CornuFrameKind;

/* Both sides order bytes alike. */
typedef struct {
    uint32_t magic, kind;
    uint64_t number, bytes;
    uint64_t of_part;       /* as the exchange's */
    char     what[104];     /* truncated if need be */
} CornuFrame;

/* The header of a message of this kind; `exchange` NULL: one that belongs to no exchange. */
CornuFrame cornu__frame_make(CornuFrameKind kind, const CornuExchange *exchange, size_t bytes);

/* Whether the frame is for an exchange after this one. */
bool cornu__frame_is_later(const CornuFrame *frame, const CornuExchange *exchange);

/* CORNU_ERR_PROCESS for one that is not of this version of Cornu. Ends its string. */
CornuStatus cornu__frame_check(CornuFrame *frame, int from);

/* CORNU_ERR_PROCESS unless messages from a rank are those that the exchange expects on rank
 * `to`. */
CornuStatus cornu__frame_expect(const CornuFrame *frame, const CornuExchange *exchange, int from,
                                int to);

/* "rank 2 WHAT, in exchange 7 (all_reduce)". */
CornuStatus cornu__frame_fail(const CornuExchange *exchange, int rank, const char *what);

/* How many messages are with a rank; *bytes are those of all of them. */
int cornu__frame_count(const CornuMessage *messages, int count, int rank, size_t *bytes);

#endif
