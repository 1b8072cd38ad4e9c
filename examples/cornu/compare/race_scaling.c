/* Starts groups of processes that measure the steps of a training, and collects what they say. */
#include "race_scaling.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../run/ranks.h"

enum { PATH = 4096, MORE = 12, NUMBER = 24 };   /* arguments that a group has besides ours */

int race_read_ranks(const char *list, int64_t ranks[RACE_RANKS])
{
    int count = 0;
    for (const char *at = list; count < RACE_RANKS; at++) {
        char     *end;
        const int digits = (int)strspn(at, "0123456789");
        if (digits < 1 || digits > 9) return 0;
        ranks[count] = strtol(at, &end, 10);
        if (ranks[count] <= (count ? ranks[count - 1] : 0) || ranks[count] > RANKS_MOST) return 0;
        count++;
        if (!*end) return count;
        if (*end != ',') return 0;
        at = end;
    }
    return 0;
}

/* ---- A group ---- */

static CornuStatus find_self(char self[PATH])
{
    const ssize_t length = readlink("/proc/self/exe", self, PATH - 1);
    if (length < 0) return cornu_error_set(CORNU_ERR_FILE, "/proc/self/exe: %s", strerror(errno));
    self[length] = '\0';
    return CORNU_OK;
}

/* In the child: what the ranks print is for nobody, but for their messages on stderr. */
static void become(char **command, int to, pid_t parent)
{
    char      text[NUMBER];
    const int null = open("/dev/null", O_RDWR);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || null < 0) _exit(126);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    snprintf(text, sizeof text, "%d", to);
    setenv("CORNU_SCALING_FD", text, 1);
    execv(command[0], command);
    _exit(127);
}

static CornuStatus read_row(int from, RanksRow *row)
{
    size_t  have = 0;
    ssize_t more = 1;
    while (have < sizeof *row && more != 0) {
        more = read(from, (char *)row + have, sizeof *row - have);
        if (more < 0 && errno != EINTR) break;
        if (more > 0) have += (size_t)more;
    }
    return have == sizeof *row ? CORNU_OK
                               : cornu_error_set(CORNU_ERR_PROCESS, "no results came back");
}

static CornuStatus run_command(char **command, RanksRow *row)
{
    int ends[2], status = 0;
    if (pipe(ends))
        return cornu_error_set(CORNU_ERR_PROCESS, "no pipe to a group: %s", strerror(errno));
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    const pid_t parent = getpid(), group = fork();
    if (group == 0) become(command, ends[1], parent);
    close(ends[1]);
    CornuStatus result = group > 0 ? read_row(ends[0], row) : CORNU_ERR_PROCESS;
    while (group > 0 && waitpid(group, &status, 0) < 0 && errno == EINTR) {}
    close(ends[0]);
    if (!result && WIFEXITED(status) && WEXITSTATUS(status) == 0) return CORNU_OK;
    cornu_error_take();
    return cornu_error_set(CORNU_ERR_PROCESS, "the group of %s process%s has failed: its messages "
                           "are above", command[3], strcmp(command[3], "1") ? "es" : "");
}

/* The flags that come last count. */
static CornuStatus run_group(const Race *race, char *const *arguments, const char *device,
                             int64_t ranks, int64_t batch, RanksRow *row)
{
    char self[PATH], numbers[3][NUMBER];
    int  given = 0;
    CornuStatus status = find_self(self);
    while (arguments[given]) given++;
    char **command = calloc((size_t)given + MORE + 1, sizeof *command);
    if (!command) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for arguments");
    if (!status) {
        snprintf(numbers[0], NUMBER, "%lld", (long long)ranks);
        snprintf(numbers[1], NUMBER, "%lld", (long long)batch);
        snprintf(numbers[2], NUMBER, "%d", race->shards);
        char *const more[] = { "--devices", (char *)(uintptr_t)device, "--batch-size", numbers[1],
                               "--shards", numbers[2] };
        int count = 0;
        command[count++] = self;
        command[count++] = "run";
        command[count++] = "-n";
        command[count++] = numbers[0];
        command[count++] = self;
        command[count++] = "compare";
        for (int i = 1; i < given; i++) command[count++] = arguments[i];
        for (size_t i = 0; i < sizeof more / sizeof *more; i++) command[count++] = more[i];
        status = run_command(command, row);
    }
    free(command);
    return status;
}

/* ---- All of them ---- */

/* Rounds in turns, so that a busy moment of the machine affects all groups. */
enum { STRONG, WEAK, KINDS, ROUNDS = 3 };

typedef RanksRow Tries[KINDS][RACE_RANKS][ROUNDS];

static CornuStatus check_sums(const char *device, Tries tries, int count)
{
    const RanksRow *first = &tries[STRONG][0][0];
    for (int i = 0; i < count; i++)
        for (int round = 0; round < ROUNDS; round++)
            if (tries[STRONG][i][round].checksum != first->checksum)
                return cornu_error_set(CORNU_ERR_VALUE, "%s: the weights that %lld processes have "
                                       "trained differ from those of %lld", device,
                                       (long long)tries[STRONG][i][round].ranks,
                                       (long long)first->ranks);
    return CORNU_OK;
}

static int by_step(const void *a, const void *b)
{
    const double x = ((const RanksRow *)a)->step_s, y = ((const RanksRow *)b)->step_s;
    return (x > y) - (x < y);
}

/* The round with the median step. */
static RanksRow choose(RanksRow rounds[ROUNDS])
{
    qsort(rounds, ROUNDS, sizeof *rounds, by_step);
    return rounds[ROUNDS / 2];
}

static CornuStatus run_round(const Race *race, char *const *arguments, const char *device,
                             const int64_t *ranks, int count, int round, Tries tries)
{
    static const char *const kinds[KINDS] = { "strong", "weak" };
    const int64_t            rows = (race->batch_size + ranks[0] - 1) / ranks[0];
    for (int i = 0; i < count; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            const int64_t batch = kind == STRONG ? race->batch_size : rows * ranks[i];
            RanksRow     *row = &tries[kind][i][round];
            if (kind == WEAK && i == 0) continue;
            CornuStatus status = run_group(race, arguments, device, ranks[i], batch, row);
            if (status) return status;
            printf("Round %d/%d  %-9s  %-6s  %3lld rank%s  batch %6lld  %9.2f ms per step\n",
                   round + 1, ROUNDS, device, kinds[kind], (long long)ranks[i],
                   ranks[i] == 1 ? " " : "s", (long long)batch, 1e3 * row->step_s);
        }
    return CORNU_OK;
}

CornuStatus race_scale(const Race *race, char *const *arguments, const char *device,
                       const int64_t *ranks, int count, RanksScaling *scaling)
{
    CornuStatus status = CORNU_OK;
    Tries       tries;
    for (int round = 0; round < ROUNDS && !status; round++)
        status = run_round(race, arguments, device, ranks, count, round, tries);
    if (!status) status = check_sums(device, tries, count);
    if (status) return status;
    *scaling = (RanksScaling){ .device = device, .count = count };
    for (int i = 0; i < count; i++) {
        scaling->strong[i] = choose(tries[STRONG][i]);
        scaling->weak[i] = i == 0 ? scaling->strong[0] : choose(tries[WEAK][i]);
    }
    return CORNU_OK;
}
