/*
 * Exchanges of bytes between the processes of a group.
 *
 * All ranks start the same exchanges in the same order. A thread of the group's own does them one
 * after the other, so that they overlap what their starter computes until it finishes them. Each
 * carries its number and what it is for; a rank that meets another in a different exchange fails,
 * and names both.
 */
#ifndef CORNU_DEVICE_PROCESSES_INTERNAL_H
#define CORNU_DEVICE_PROCESSES_INTERNAL_H

#include <stddef.h>

#include "../status_internal.h"
#include "processes.h"

/* Bytes for another rank, which are only read, or from it. Messages between two ranks arrive in the
 * order in which they are listed. */
typedef struct {
    int    rank;
    void  *data;
    size_t bytes;
} CornuMessage;

/* The caller's, memory of the messages included, until it is finished. */
typedef struct {
    const char         *what;       /* "all_reduce in adam": the same on all ranks */
    const CornuMessage *sends, *receives;
    int                 send_count, receive_count;
    uint64_t            order;      /* set when it starts, as what follows: of all of this rank */
    uint64_t            number;     /* of those of the whole group, */
    uint32_t            of_part;    /* and of those of a part since then; 0: it is the group's */
    int                 first;      /* the rank of the group that is rank 0 of the messages */
    double              begin_s, end_s;   /* set when it ends: when the group's thread was at it */
} CornuExchange;

/* `processes` may be NULL in all of these, and of one rank: then nothing is exchanged. Starting and
 * finishing allocates nothing. A failure of finish, or of a start after it, is the group's end. */
CornuStatus cornu__exchange_start(CornuProcesses *processes, CornuExchange *exchange);
CornuStatus cornu__exchange_finish(CornuProcesses *processes, CornuExchange *exchange);

/*
 * The part of a group that this rank is in, where the group's ranks are dealt to `parts` parts of
 * equally many, in order: a group of its own, by which those ranks exchange beside what all do,
 * with the group's thread and its failures. NULL in *part if it is this rank alone. The group owns
 * it.
 *
 * As exchanges of a part and of the group are done one after the other, ranks of a part start both
 * in the same order. CORNU_ERR_MEMORY.
 */
CornuStatus cornu__processes_part(CornuProcesses *processes, int parts, CornuProcesses **part);

/* Whether it has ended, so that finish would return at once. */
bool cornu__exchange_ended(CornuProcesses *processes, const CornuExchange *exchange);

/* ---- The group that this process is a member of (current.c) ---- */

/* false if it is a member of one already. */
bool            cornu__processes_enter(CornuProcesses *processes);
void            cornu__processes_leave(CornuProcesses *processes);
CornuProcesses *cornu__processes_current(void);   /* NULL: of none */

/* Whether this process writes files: rank 0, or a process on its own. */
bool cornu__processes_writes(void);

/* ---- Collectives: all ranks call them, in the same order ---- */

/* all[r * bytes ...] = rank r's `bytes` bytes at `own`. */
CornuStatus cornu__processes_gather(CornuProcesses *processes, const char *what, const void *own,
                                    size_t bytes, void *all);

/* Broadcasts rank 0's `bytes` bytes at `data` to all ranks, all of which call it. */
CornuStatus cornu__processes_broadcast(CornuProcesses *processes, const char *what, void *data,
                                       size_t bytes);

/* CORNU_ERR_PROCESS, on all ranks, unless all give the same text: "the seed is 7 on rank 2 and 1 on
 * rank 0". `what` is the subject, "the seed". */
CornuStatus cornu__processes_agree(CornuProcesses *processes, const char *what, const char *text);

/* The status of a call that each rank made by itself: CORNU_OK if all succeeded, else on each rank
 * the failure of the first one that failed, with its message after "rank 2: ". */
CornuStatus cornu__processes_check(CornuProcesses *processes, const char *what,
                                   CornuStatus status);

/* This rank has failed with the message just recorded, and exchanges nothing any more: the others'
 * next exchange fails with that message after "rank 2: ". Returns status. A failure that another
 * rank has reported is not reported again. */
CornuStatus cornu__processes_fail(CornuProcesses *processes, CornuStatus status);

#endif
