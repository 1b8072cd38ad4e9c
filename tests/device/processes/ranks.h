/* Groups of processes for tests: each rank is a child of the test. */
#ifndef CORNU_TESTS_RANKS_H
#define CORNU_TESTS_RANKS_H

#include <sys/types.h>

#include "../../../device/processes/processes_internal.h"

enum { RANKS_MOST = 8 };

/* What a rank does in an open group; it returns how that ended. */
typedef CornuStatus RankBody(CornuProcesses *processes);

/* Before the group is opened: NULL for nothing. */
typedef void RankPrepare(int rank);

typedef struct {
    bool        reported;          /* it came to its end */
    CornuStatus status;            /* of opening the group, or of the body */
    double      seconds;           /* until then */
    char        message[1024];     /* "" after success */
} RankEnd;

typedef struct {
    int     count;
    pid_t   pids[RANKS_MOST];
    RankEnd ends[RANKS_MOST];
} Ranks;

/* Runs the body on `count` ranks. Those stopped by a signal are killed once all others have
 * ended; where all are stopped, they are waited for. */
void ranks_run(Ranks *ranks, int count, const char *transport, double timeout_s,
               RankPrepare *prepare, RankBody *body);

/* As above, and expects all to succeed. */
void ranks_succeed(int count, const char *transport, RankBody *body);

/* Expects that rank did not succeed, and that its message contains the part. */
void ranks_expect(const Ranks *ranks, int rank, CornuStatus status, const char *part);

#endif
