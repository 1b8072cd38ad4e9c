#include "ranks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* What ranks find and know each other by, and where they report to. Ports are free for certain:
 * ranks inherit the sockets. */
typedef struct {
    int  count, listeners[RANKS_MOST], reports;
    char workers[RANKS_MOST * 24], key[2 * 32 + 1];
} Addresses;

static void close_all(Addresses *addresses)
{
    for (int i = 0; i < addresses->count; i++) close(addresses->listeners[i]);
}

static bool listen_all(Addresses *addresses, int count)
{
    size_t length = 0;
    for (addresses->count = 0; addresses->count < count; addresses->count++) {
        struct sockaddr_in address = { .sin_family = AF_INET };
        socklen_t          size = sizeof address;
        const int          fd = socket(AF_INET, SOCK_STREAM, 0);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) ||
            bind(fd, (struct sockaddr *)&address, size) || listen(fd, SOMAXCONN) ||
            getsockname(fd, (struct sockaddr *)&address, &size)) {
            fprintf(stderr, "cornu run: cannot listen on 127.0.0.1: %s\n", strerror(errno));
            if (fd >= 0) close(fd);
            close_all(addresses);
            return false;
        }
        addresses->listeners[addresses->count] = fd;
        length += (size_t)snprintf(addresses->workers + length, sizeof addresses->workers - length,
                                   "%s127.0.0.1:%d", length ? "," : "", ntohs(address.sin_port));
    }
    return true;
}

/* 256 bits that nobody can foresee. They are in the memory of this process and of the ranks, and in
 * their environment, which other users cannot read. */
static bool draw_key(Addresses *addresses)
{
    unsigned char bytes[(sizeof addresses->key - 1) / 2];
    const int     file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    const bool    drawn = file >= 0 && read(file, bytes, sizeof bytes) == sizeof bytes;
    if (file >= 0) close(file);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(addresses->key + 2 * i, 3, "%02x", bytes[i]);
    if (!drawn) fputs("cornu run: /dev/urandom gives no random bytes\n", stderr);
    return drawn;
}

/* Neither end ever waits. */
static bool make_pipe(Ranks *ranks, Addresses *addresses)
{
    int ends[2];
    ranks->reports = addresses->reports = -1;
    if (pipe(ends)) {
        fprintf(stderr, "cornu run: cannot make a pipe: %s\n", strerror(errno));
        return false;
    }
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
    }
    ranks->reports = ends[0];
    addresses->reports = ends[1];
    return true;
}

/* ---- In the child ---- */

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

/* Nothing may wait for a terminal that ranks do not have in the foreground. */
static void choose_input(int rank)
{
    if (rank == 0 && !isatty(STDIN_FILENO)) return;
    const int null = open("/dev/null", O_RDONLY);
    if (null < 0) return;
    dup2(null, STDIN_FILENO);
    if (null != STDIN_FILENO) close(null);
}

/* Returns only if the command cannot be executed. */
static void become(char **command, int rank, const Addresses *addresses, pid_t parent)
{
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);   /* it died before it was asked about */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    choose_input(rank);
    fcntl(addresses->listeners[rank], F_SETFD, 0);
    set_number("CORNU_RANK", rank);
    set_number("CORNU_LISTEN_FD", addresses->listeners[rank]);
    setenv("CORNU_WORKERS", addresses->workers, 1);
    setenv("CORNU_KEY", addresses->key, 1);
    fcntl(addresses->reports, F_SETFD, 0);
    set_number("CORNU_REPORT_FD", addresses->reports);
    execvp(command[0], command);
}

/* ---- Starting ---- */

/* 0, or the errno of what failed: a pipe that execution closes says so. */
static int start(Rank *rank, int number, char **command, const Addresses *addresses)
{
    const pid_t parent = getpid();
    int         ends[2], failure = 0;
    if (pipe(ends)) return errno;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    rank->process = fork();
    if (rank->process == 0) {
        become(command, number, addresses, parent);
        failure = errno;
        _exit(write(ends[1], &failure, sizeof failure) == sizeof failure ? 127 : 126);
    }
    if (rank->process < 0) failure = errno;
    else setpgid(rank->process, rank->process);   /* whichever of both is first */
    close(ends[1]);
    while (rank->process > 0 && read(ends[0], &failure, sizeof failure) < 0 && errno == EINTR) {}
    close(ends[0]);
    if (rank->process > 0 && failure) waitpid(rank->process, NULL, 0);
    if (failure) rank->process = 0;
    return failure;
}

int ranks_start(Ranks *ranks, int count, char **command)
{
    static Addresses addresses;
    memset(ranks, 0, sizeof *ranks);
    if (!draw_key(&addresses) || !make_pipe(ranks, &addresses)) return 1;
    if (!listen_all(&addresses, count)) {
        close(addresses.reports);
        return 1;
    }
    int failure = 0;
    for (; ranks->count < count && !failure; ranks->count += !failure) {
        failure = start(&ranks->rank[ranks->count], ranks->count, command, &addresses);
        ranks->running += !failure;
    }
    close_all(&addresses);
    close(addresses.reports);
    if (!failure) return 0;
    fprintf(stderr, "cornu run: cannot run %s: %s\n", command[0], strerror(failure));
    ranks_end(ranks, SIGKILL);
    return failure == ENOENT || failure == ENOTDIR ? 127 : 126;
}

/* ---- Watching ---- */

static void collect(Ranks *ranks, Rank *rank)
{
    int   status;
    pid_t changed;
    while (rank->process > 0 &&
           (changed = waitpid(rank->process, &status, WNOHANG | WUNTRACED | WCONTINUED)) != 0) {
        if (changed < 0) {
            if (errno == EINTR) continue;
            status = 0;   /* not a child any more: nothing is known of it */
        } else if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
            rank->stopped = WIFSTOPPED(status);
            continue;
        }
        rank->process = 0;
        rank->status = status;
        rank->place = ranks->count - --ranks->running;
    }
}

void ranks_collect(Ranks *ranks)
{
    for (int i = 0; i < ranks->count; i++) collect(ranks, &ranks->rank[i]);
}

void ranks_signal(const Ranks *ranks, int number)
{
    for (int i = 0; i < ranks->count; i++)
        if (ranks->rank[i].process > 0) kill(-ranks->rank[i].process, number);
}

void ranks_end(Ranks *ranks, int number)
{
    ranks_signal(ranks, number);
    for (int i = 0; i < ranks->count; i++)
        if (ranks->rank[i].process > 0) ranks->rank[i].sent = number;
}

/* "rank 2: " before a message says whose it is, where all ranks were told of a failure. */
void ranks_report(Ranks *ranks, RanksReport *report)
{
    char          lines[sizeof report->message] = "";
    int           length = 0;
    const ssize_t n = ranks->reports >= 0 ? read(ranks->reports, lines, sizeof lines - 1) : -1;
    *report = (RanksReport){ .rank = -1 };
    if (ranks->reports >= 0) close(ranks->reports);
    ranks->reports = -1;
    if (n <= 0 || sscanf(lines, "%d %d %n", &report->rank, &report->status, &length) < 2) return;
    const char *message = lines + length;
    for (int rank; length = 0, sscanf(message, "rank %d: %n", &rank, &length) == 1 && length;) {
        message += length;
        report->rank = rank;
    }
    snprintf(report->message, sizeof report->message, "%.*s", (int)strcspn(message, "\n"), message);
    if (report->rank < 0 || report->rank >= ranks->count) report->status = 0;
}

int ranks_status(const Rank *rank)
{
    return WIFSIGNALED(rank->status) ? 128 + WTERMSIG(rank->status) : WEXITSTATUS(rank->status);
}
