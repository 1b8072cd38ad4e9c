/* Starts a program several times on this machine, as the ranks of one group, and starts it again
 * when a rank fails. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include <cornu/cornu.h>

#include "../clock.h"
#include "../commands.h"
#include "ranks.h"

enum { DEFAULT_TIMEOUT_S = 60, DEFAULT_GRACE_S = 10 };

static const char usage[] =
    "usage: cornu run -n RANKS [FLAG...] COMMAND [ARGUMENT...]\n"
    "\n"
    "Trains in several processes on this machine.\n"
    "\n"
    "Starts the command RANKS times, as the ranks of one group, over which training\n"
    "is dealt; the results are the same for any number of them. Ends when all have\n"
    "ended. When one fails, the others end with a message that names it.\n"
    "\n"
    "With --restarts the command is then started again, without the ranks that were\n"
    "killed or did not answer, or without the one that failed first; a program with\n"
    "--backup goes on where it was. It is not started again after a wrong flag\n"
    "(status 2), after a signal to cornu run, once rank 0, which writes the results,\n"
    "is done, nor after a failure that would come again, such as a full disk or a\n"
    "wrong file.\n"
    "\n"
    "SIGINT, SIGTERM and SIGHUP are passed on to all ranks, so that they save and\n"
    "end; a second one kills them. If cornu run is killed, so are its ranks.\n"
    "\n"
    "Ranks know each other by a key, which cornu run makes anew for each start.\n"
    "\n"
    "For several machines, start each process there with CORNU_RANK=0, 1, ...,\n"
    "CORNU_WORKERS=HOST:PORT,HOST:PORT,..., the addresses of all, and CORNU_KEY, one\n"
    "secret for all, or CORNU_KEY_FILE, a file with it; or use mpirun or srun.\n"
    "\n"
    "Exit status: 0 if all ranks succeed, else that of the first one that failed, or\n"
    "128 and the number of the signal that ended it; 2 after a flag or value it does\n"
    "not know, 126 or 127 if the command cannot be run.\n"
    "\n"
    "  -n RANKS                  how many processes, 1 to 256\n"
    "  --restarts N              starts again up to N times after a failure; default\n"
    "                            0\n"
    "  --min-ranks M             starts again with at least M ranks; default 1. With\n"
    "                            M = RANKS, all are started again\n"
    "  --rank-timeout S          a rank that does not answer the others for S seconds\n"
    "                            has failed; default 60\n"
    "  --grace S                 S seconds after a rank has failed the others get\n"
    "                            SIGTERM, after as long again SIGKILL; default 10\n"
    "  --help                    print this help\n"
    "  --version                 print the version\n";

typedef struct {
    long   count, restarts, min_ranks;
    double timeout_s, grace_s;
    char **command;
} Job;

/* ---- Signals, which are taken one at a time, never handled ---- */

static sigset_t taken;

static void take_signals(void)
{
    const int numbers[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGTSTP };
    sigemptyset(&taken);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaddset(&taken, numbers[i]);
    signal(SIGCHLD, SIG_DFL);   /* ignored, it would keep waitpid from telling anything */
    sigprocmask(SIG_BLOCK, &taken, NULL);
}

/* The next signal; 0 after so long without one. */
static int next_signal(double seconds)
{
    const struct timespec time = { (time_t)seconds,
                                   (long)(1e9 * (seconds - (double)(time_t)seconds)) };
    const int             number = sigtimedwait(&taken, NULL, &time);
    return number > 0 ? number : 0;
}

/* Ctrl-Z stops the ranks, too. */
static void pause_all(const Ranks *ranks)
{
    ranks_signal(ranks, SIGSTOP);
    raise(SIGSTOP);
    ranks_signal(ranks, SIGCONT);
}

/* ---- One start ---- */

/* Whether a rank has failed, which it has not if it ended by a signal that was passed on. */
static bool has_failed(const Rank *rank, int passed_on)
{
    const int status = rank->place ? ranks_status(rank) : 0;
    return status != 0 && (!passed_on || status != 128 + passed_on);
}

static bool any_failed(const Ranks *ranks, int passed_on)
{
    for (int i = 0; i < ranks->count; i++)
        if (has_failed(&ranks->rank[i], passed_on)) return true;
    return false;
}

static bool only_stopped(const Ranks *ranks)
{
    for (int i = 0; i < ranks->count; i++)
        if (ranks->rank[i].process > 0 && !ranks->rank[i].stopped) return false;
    return true;
}

/* Ends what is left after a failure: stopped ranks once the others have ended, which may still be
 * waiting for them; all of them after the grace, and after another one by force. */
static void end_the_rest(Ranks *ranks, const Job *job, double since_s)
{
    int sent = 0;
    for (int i = 0; i < ranks->count; i++)
        if (ranks->rank[i].process > 0 && ranks->rank[i].sent > sent) sent = ranks->rank[i].sent;
    if (only_stopped(ranks) || since_s >= 2 * job->grace_s) ranks_end(ranks, SIGKILL);
    else if (since_s >= job->grace_s && !sent) ranks_end(ranks, SIGTERM);
}

/* Until all ranks have ended. The signal that was passed on to them, or 0. A rank that is stopped
 * as it ends, when no other waits for it any more, has so long to go on, too. */
static int watch(Ranks *ranks, const Job *job)
{
    int    passed_on = 0;
    double failed_s = 0, changed_s = 0;
    for (;;) {
        ranks_collect(ranks);
        if (ranks->running == 0) return passed_on;
        if (failed_s == 0 && any_failed(ranks, passed_on)) failed_s = clock_seconds();
        if (failed_s > 0) end_the_rest(ranks, job, clock_seconds() - failed_s);
        else if (ranks->running < ranks->count && only_stopped(ranks) &&
                 (passed_on || clock_seconds() - changed_s >= job->timeout_s))
            ranks_end(ranks, SIGKILL);
        const int number = next_signal(failed_s > 0 ? 0.05 : 1);
        if (number) changed_s = clock_seconds();
        if (number == SIGTSTP) {
            pause_all(ranks);
        } else if (number && number != SIGCHLD) {
            if (passed_on) ranks_end(ranks, SIGKILL);
            else ranks_signal(ranks, number);
            passed_on = number;
        }
    }
}

/* ---- What has happened ---- */

/* Whether its place is gone: it died, or had to be killed. */
static bool is_lost(const Rank *rank)
{
    return WIFSIGNALED(rank->status) && (WTERMSIG(rank->status) != rank->sent ||
                                         rank->sent == SIGKILL);
}

/* The rank that the others failed for: the first one that is lost, else that failed. */
static int find_culprit(const Ranks *ranks, int *lost)
{
    int found = -1;
    *lost = 0;
    for (int i = 0; i < ranks->count; i++) {
        const Rank *rank = &ranks->rank[i], *best = found < 0 ? NULL : &ranks->rank[found];
        *lost += is_lost(rank);
        if (ranks_status(rank) == 0) continue;
        if (!best || is_lost(rank) > is_lost(best) ||
            (is_lost(rank) == is_lost(best) && rank->place < best->place))
            found = i;
    }
    return found;
}

/* Whether a failure is of what the ranks were given, and not of the machine: what was reported, a
 * wrong flag, or a file above the limit of its size. */
static bool would_come_again(const Rank *culprit, const RanksReport *report)
{
    if (ranks_status(culprit) == 2 || ranks_status(culprit) == 128 + SIGXFSZ) return true;
    switch (report->status) {
    case CORNU_ERR_ARGUMENT: case CORNU_ERR_SHAPE: case CORNU_ERR_DTYPE: case CORNU_ERR_VALUE:
    case CORNU_ERR_FILE: case CORNU_ERR_FORMAT: case CORNU_ERR_DATA: case CORNU_ERR_UNSUPPORTED:
        return true;
    default:
        return false;
    }
}

static void say(const Ranks *ranks, int culprit, int lost, const RanksReport *report,
                const Job *job, const char *then)
{
    const Rank *rank = &ranks->rank[culprit];
    fprintf(stderr, "cornu run: rank %d ", culprit);
    if (WIFEXITED(rank->status)) fprintf(stderr, "ended with status %d", ranks_status(rank));
    else if (rank->sent != SIGKILL)
        fprintf(stderr, "was killed by signal %d", WTERMSIG(rank->status));
    else if (rank->stopped) fprintf(stderr, "was stopped, and did not answer");
    else fprintf(stderr, "did not end within %g s after another one", 2 * job->grace_s);
    if (lost > 1)
        fprintf(stderr, ", and %d other%s died, too", lost - 1, lost > 2 ? "s" : "");
    if (report->status) fprintf(stderr, " (%s)", report->message);
    fprintf(stderr, "%s\n", then);
}

/* Starts until it succeeds, or should not be started again: the status to exit with. */
static int supervise(const Job *job)
{
    static Ranks ranks;
    RanksReport  report;
    char         then[120] = "";
    int          count = (int)job->count, lost;
    for (long restart = 0;; restart++) {
        const int failure = ranks_start(&ranks, count, job->command);
        const int passed_on = watch(&ranks, job);
        int       culprit = failure ? -1 : find_culprit(&ranks, &lost);
        ranks_report(&ranks, &report);
        if (culprit < 0) return failure;
        /* What is reported after a rank is lost is what others came to by that. */
        if (lost || !ranks_status(&ranks.rank[report.status ? report.rank : culprit]))
            report.status = CORNU_OK;
        if (report.status) culprit = report.rank;
        const int status = ranks_status(&ranks.rank[culprit]);
        if (passed_on) {
            fprintf(stderr, "cornu run: stopped by signal %d\n", passed_on);
            return status;
        }
        count -= lost > 1 ? lost : 1;
        if (count < job->min_ranks) count = (int)job->min_ranks;
        const bool done = ranks_status(&ranks.rank[0]) == 0;
        const bool hopeless = would_come_again(&ranks.rank[culprit], &report);
        const bool again = restart < job->restarts && !done && !hopeless;
        if (again)
            snprintf(then, sizeof then, "; starting again with %d rank%s (restart %ld of %ld)",
                     count, count == 1 ? "" : "s", restart + 1, job->restarts);
        else if (done) snprintf(then, sizeof then, " after rank 0 was done");
        else if (job->restarts > 0 && hopeless && status != 2)
            snprintf(then, sizeof then, "; not started again, as it would fail again");
        else if (job->restarts > 0 && restart == job->restarts)
            snprintf(then, sizeof then, "; no restarts are left");
        say(&ranks, culprit, lost, &report, job, then);
        if (!again) return status;
    }
}

/* ---- Flags ---- */

static int refuse(void)
{
    fputs("Try 'cornu run --help'.\n", stderr);
    return 2;
}

static bool parse_value(const char *flag, const char *text, bool whole, double least, double most,
                        double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end != text && !*end && *value >= least && *value <= most &&
        (!whole || *value == (double)(long)*value))
        return true;
    fprintf(stderr, "cornu run: %s is \"%s\", expected a%s number from %g to %.0f\n", flag, text,
            whole ? " whole" : "", least, most);
    return false;
}

/* -1 to continue, else the status to exit with. */
static int parse(Job *job, int argc, char **argv)
{
    double count = 0, restarts = 0, min_ranks = 1;
    const struct { const char *name; double *to; bool whole; double least, most; } flags[] = {
        { "-n", &count, true, 1, RANKS_MOST },
        { "--restarts", &restarts, true, 0, 1000000 },
        { "--min-ranks", &min_ranks, true, 1, RANKS_MOST },
        { "--rank-timeout", &job->timeout_s, false, 0.001, 1e9 },
        { "--grace", &job->grace_s, false, 0, 1e9 },
    };
    enum { FLAGS = sizeof flags / sizeof *flags };
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i += 2) {
        int f = 0;
        if (strcmp(argv[i], "--") == 0 && ++i) break;
        if (strcmp(argv[i], "--help") == 0) return fputs(usage, stdout) < 0;
        if (strcmp(argv[i], "--version") == 0) return puts("Cornu " CORNU_VERSION) < 0;
        while (f < FLAGS && strcmp(argv[i], flags[f].name) != 0) f++;
        if (f == FLAGS) fprintf(stderr, "cornu run: unknown flag %s\n", argv[i]);
        else if (i + 1 == argc) fprintf(stderr, "cornu run: %s needs a value\n", argv[i]);
        if (f == FLAGS || i + 1 == argc ||
            !parse_value(argv[i], argv[i + 1], flags[f].whole, flags[f].least, flags[f].most,
                         flags[f].to))
            return refuse();
    }
    if (count == 0) fputs("cornu run: -n is missing, how many processes to start\n", stderr);
    else if (min_ranks > count)
        fprintf(stderr, "cornu run: --min-ranks is %g, expected at most the %g of -n\n", min_ranks,
                count);
    else if (i >= argc) fputs("cornu run: expected a command, got none\n", stderr);
    if (count == 0 || min_ranks > count || i >= argc) return refuse();
    job->count = (long)count;
    job->restarts = (long)restarts;
    job->min_ranks = (long)min_ranks;
    job->command = argv + i;
    return -1;
}

int command_run(int argc, char **argv)
{
    Job       job = { .grace_s = DEFAULT_GRACE_S };
    char      text[32];
    const int status = parse(&job, argc, argv);
    if (status >= 0) return status;
    if (job.timeout_s > 0) {
        snprintf(text, sizeof text, "%g", job.timeout_s);
        setenv("CORNU_RANK_TIMEOUT", text, 1);
    }
    const char *timeout = getenv("CORNU_RANK_TIMEOUT");
    job.timeout_s = timeout ? strtod(timeout, NULL) : DEFAULT_TIMEOUT_S;
    take_signals();
    return supervise(&job);
}
