#include "ranks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../device/system/clock_internal.h"

/* A socket that listens at a free port of this machine. */
static int listen_anywhere(char *address, size_t size)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t          length = sizeof at;
    const int          fd = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, SOMAXCONN), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    snprintf(address, size, "127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

static void be_rank(int rank, const char *transport, double timeout_s, RankPrepare *prepare,
                    RankBody *body, int pipe)
{
    RankEnd      end = { .reported = true };
    const double begin_s = cornu__seconds();
    if (prepare) prepare(rank);
    CornuProcesses *processes = cornu_processes_open(.transport = transport,
                                                     .timeout_s = timeout_s);
    end.status = processes ? body(processes) : cornu_error_take();
    end.seconds = cornu__seconds() - begin_s;
    if (end.status) snprintf(end.message, sizeof end.message, "%s", cornu_error_message());
    cornu_processes_close(processes);
    exit(write(pipe, &end, sizeof end) != sizeof end);
}

static void start_ranks(Ranks *ranks, const char *transport, double timeout_s, RankPrepare *prepare,
                        RankBody *body, int pipes[][2])
{
    int  listeners[RANKS_MOST];
    char workers[RANKS_MOST * 32] = "", address[32], number[16];
    for (int i = 0; i < ranks->count; i++) {
        listeners[i] = listen_anywhere(address, sizeof address);
        snprintf(workers + strlen(workers), sizeof workers - strlen(workers), "%s%s", i ? "," : "",
                 address);
        assert_int_equal(pipe(pipes[i]), 0);
    }
    fflush(NULL);
    for (int i = 0; i < ranks->count; i++) {
        if ((ranks->pids[i] = fork()) != 0) continue;
        for (int k = 0; k < ranks->count; k++) {
            if (k != i) close(listeners[k]);
            close(pipes[k][0]);
            if (k != i) close(pipes[k][1]);
        }
        setenv("CORNU_WORKERS", workers, 1);
        setenv("CORNU_KEY", "a key that all ranks of tests share", 1);
        snprintf(number, sizeof number, "%d", i);
        setenv("CORNU_RANK", number, 1);
        snprintf(number, sizeof number, "%d", listeners[i]);
        setenv("CORNU_LISTEN_FD", number, 1);
        be_rank(i, transport, timeout_s, prepare, body, pipes[i][1]);
    }
    for (int i = 0; i < ranks->count; i++) {
        close(listeners[i]);
        close(pipes[i][1]);
    }
}

void ranks_run(Ranks *ranks, int count, const char *transport, double timeout_s,
               RankPrepare *prepare, RankBody *body)
{
    int pipes[RANKS_MOST][2], status[RANKS_MOST];
    *ranks = (Ranks){ .count = count };
    assert_true(count <= RANKS_MOST);
    start_ranks(ranks, transport, timeout_s, prepare, body, pipes);
    int ended = 0, stopped = 0;
    for (int rounds = 0; ended < count && (!ended || ended + stopped < count) && rounds < 6000;
         rounds++) {
        for (int i = 0; i < count; i++) {
            int changed;
            if (ranks->pids[i] <= 0 || waitpid(ranks->pids[i], &changed, WNOHANG | WUNTRACED |
                                                                        WCONTINUED) <= 0)
                continue;
            status[i] = changed;
            if (WIFSTOPPED(changed)) stopped++;
            else if (WIFCONTINUED(changed)) stopped--;
            else ranks->pids[i] = 0, ended++;
        }
        poll(NULL, 0, 10);
    }
    for (int i = 0; i < count; i++) {
        if (ranks->pids[i] > 0) {
            kill(ranks->pids[i], SIGKILL);
            waitpid(ranks->pids[i], &status[i], 0);
        }
        /* One that a sanitizer ends has something else to report. */
        if (read(pipes[i][0], &ranks->ends[i], sizeof(RankEnd)) != sizeof(RankEnd) ||
            status[i] != 0)
            ranks->ends[i].reported = false;
        close(pipes[i][0]);
    }
}

void ranks_succeed(int count, const char *transport, RankBody *body)
{
    Ranks ranks;
    ranks_run(&ranks, count, transport, 20, NULL, body);
    for (int i = 0; i < count; i++) {
        if (!ranks.ends[i].reported) fail_msg("rank %d of %d has not come to its end", i, count);
        if (ranks.ends[i].status) fail_msg("rank %d of %d: %s", i, count, ranks.ends[i].message);
    }
}

void ranks_expect(const Ranks *ranks, int rank, CornuStatus status, const char *part)
{
    const RankEnd *end = &ranks->ends[rank];
    if (!end->reported) fail_msg("rank %d has not come to its end", rank);
    if (end->status != status || !strstr(end->message, part))
        fail_msg("rank %d: %s, \"%s\", expected %s with \"%s\"", rank,
                 cornu_status_name(end->status), end->message, cornu_status_name(status), part);
}
