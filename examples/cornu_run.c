/* Starts a program several times on this machine, as the ranks of one group. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The others may still be saying why they fail. */
enum { MOST = 256, TERM_S = 5, KILL_S = 7 };

static const char usage[] =
    "usage: cornu_run -n PROCESSES [--timeout SECONDS] COMMAND [ARGUMENT...]\n"
    "\n"
    "Starts the command so many times on this machine, as the ranks of one group\n"
    "(device/processes/processes.h): training is dealt over them. Ends when all have\n"
    "ended, with the status of the first one that failed, whereupon the others are\n"
    "ended too, a few seconds later.\n"
    "\n"
    "  -n PROCESSES        how many, 1 to 256\n"
    "  --timeout SECONDS   a process that does not answer the others for so long has\n"
    "                      failed; default 60\n"
    "  --help              shows this\n";

static volatile sig_atomic_t stopped_by, stopped_times;

static void on_signal(int number)
{
    stopped_by = number;
    stopped_times++;
}

typedef struct {
    int   count, listeners[MOST];
    pid_t processes[MOST];   /* 0: has ended */
    char  workers[MOST * 24];
} Group;

/* Ports are free for certain: the sockets that have them are inherited. */
static bool listen_all(Group *group)
{
    for (int i = 0; i < group->count; i++) {
        struct sockaddr_in address = { .sin_family = AF_INET };
        socklen_t          size = sizeof address;
        const size_t       length = strlen(group->workers);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        group->listeners[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (group->listeners[i] < 0 ||
            bind(group->listeners[i], (struct sockaddr *)&address, size) ||
            listen(group->listeners[i], SOMAXCONN) ||
            getsockname(group->listeners[i], (struct sockaddr *)&address, &size)) {
            perror("cornu_run: cannot listen on 127.0.0.1");
            return false;
        }
        snprintf(group->workers + length, sizeof group->workers - length, "%s127.0.0.1:%d",
                 i ? "," : "", ntohs(address.sin_port));
    }
    return true;
}

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static bool start(Group *group, int rank, char **command)
{
    group->processes[rank] = fork();
    if (group->processes[rank] < 0) {
        group->processes[rank] = 0;
        perror("cornu_run: cannot start a process");
        return false;
    }
    if (group->processes[rank] > 0) return true;
    for (int i = 0; i < group->count; i++)
        if (i != rank) close(group->listeners[i]);
    set_number("CORNU_RANK", rank);
    set_number("CORNU_LISTEN_FD", group->listeners[rank]);
    setenv("CORNU_WORKERS", group->workers, 1);
    execvp(command[0], command);
    fprintf(stderr, "cornu_run: cannot run %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

static void signal_all(const Group *group, int number)
{
    for (int i = 0; i < group->count; i++)
        if (group->processes[i] > 0) kill(group->processes[i], number);
}

static int count_running(const Group *group)
{
    int running = 0;
    for (int i = 0; i < group->count; i++) running += group->processes[i] > 0;
    return running;
}

/* Notes those that have ended: the status of the first one that failed, which is said. */
static int collect(Group *group, int failed)
{
    int   status;
    pid_t ended;
    while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
        int rank = 0;
        while (rank < group->count && group->processes[rank] != ended) rank++;
        if (rank == group->count) continue;
        group->processes[rank] = 0;
        if (status == 0 || failed) continue;
        failed = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (WIFEXITED(status))
            fprintf(stderr, "cornu_run: rank %d has ended with status %d\n", rank, failed);
        else
            fprintf(stderr, "cornu_run: rank %d was ended by signal %d, %s\n", rank,
                    WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    return failed;
}

/* Until all have ended. */
static int wait_for_all(Group *group)
{
    const struct timespec pause = { .tv_nsec = 10000000 };
    int                   failed = 0, since = 0, passed_on = 0;
    for (;;) {
        failed = collect(group, failed);
        if (count_running(group) == 0) return failed;
        if (passed_on < stopped_times) {
            passed_on = stopped_times;
            signal_all(group, stopped_by);
        }
        if (failed && ++since == 100 * TERM_S) signal_all(group, SIGTERM);
        if (since >= 100 * KILL_S) signal_all(group, SIGKILL);
        nanosleep(&pause, NULL);
    }
}

static bool parse_number(const char *text, double least, double most, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && *value >= least && *value <= most;
}

/* The command's place among the arguments; 0 if they are wrong. */
static int parse(int argc, char **argv, Group *group)
{
    double value;
    int    i = 1;
    for (; i < argc && argv[i][0] == '-'; i += 2) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        const bool has = i + 1 < argc;
        if (strcmp(argv[i], "-n") == 0 && has && parse_number(argv[i + 1], 1, MOST, &value))
            group->count = (int)value;
        else if (strcmp(argv[i], "--timeout") == 0 && has &&
                 parse_number(argv[i + 1], 1e-3, 1e9, &value))
            setenv("CORNU_RANK_TIMEOUT", argv[i + 1], 1);
        else
            return 0;
    }
    return group->count > 0 && i < argc ? i : 0;
}

int main(int argc, char **argv)
{
    static Group     group;
    struct sigaction action = { .sa_handler = on_signal };
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    const int command = parse(argc, argv, &group);
    if (!command) {
        fputs(usage, stderr);
        return 2;
    }
    if (!listen_all(&group)) return 1;
    int failed = 0;
    for (int i = 0; i < group.count && !failed; i++) failed = !start(&group, i, argv + command);
    if (failed) signal_all(&group, SIGKILL);
    for (int i = 0; i < group.count; i++) close(group.listeners[i]);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    const int status = wait_for_all(&group);
    return failed ? 1 : status;
}
