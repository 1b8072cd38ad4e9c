/*
 * The ranks of one group on this machine, as cornu run starts and watches them.
 *
 *     int status = ranks_start(&ranks, 4, command);
 *     while (ranks.running > 0) {
 *         ... wait for SIGCHLD ...
 *         ranks_collect(&ranks);
 *     }
 *
 * Each rank leads a process group of its own. So a terminal's Ctrl-C reaches it once, by cornu run,
 * and a signal for it reaches the programs that it has started, too. Ranks are killed when the
 * process that started them dies.
 */
#ifndef CORNU_EXAMPLES_RANKS_H
#define CORNU_EXAMPLES_RANKS_H

#include <stdbool.h>
#include <sys/types.h>

enum { RANKS_MOST = 256 };

typedef struct {
    pid_t process;    /* 0: it has ended, or never started */
    int   status;     /* as of waitpid, once it has ended */
    int   place;      /* it was the first, second, ... to end */
    int   sent;       /* the signal that ranks_end sent last, or 0 */
    bool  stopped;    /* by SIGSTOP or the like; still true if it was killed then */
} Rank;

typedef struct {
    int  count, running;
    Rank rank[RANKS_MOST];
    int  reports;     /* a pipe; -1: none */
} Ranks;

/* What a rank that failed by itself said of it. */
typedef struct {
    int  rank, status;   /* a CornuStatus; CORNU_OK: none said anything */
    char message[512];
} RanksReport;

/* Starts the command with CORNU_RANK, CORNU_WORKERS and CORNU_LISTEN_FD, a new CORNU_KEY that only
 * these ranks have, and CORNU_REPORT_FD for their failures. Rank 0 has this process'
 * standard input unless that is a terminal, the others none. 0, or after a message the status to
 * exit with: 127 if there is no such command, 126 if it cannot be executed. */
int ranks_start(Ranks *ranks, int count, char **command);

/* Notes what has happened to ranks since. */
void ranks_collect(Ranks *ranks);

/* To all that run. */
void ranks_signal(const Ranks *ranks, int number);

/* The same, because they should end: noted as sent. */
void ranks_end(Ranks *ranks, int number);

/* The first failure that was reported, once all have ended. */
void ranks_report(Ranks *ranks, RanksReport *report);

/* How a rank has ended: 0, or its exit status, or 128 and the signal that ended it. */
int ranks_status(const Rank *rank);

#endif
