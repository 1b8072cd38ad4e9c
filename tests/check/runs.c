#define _GNU_SOURCE    /* MAP_ANONYMOUS */

#include "runs.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../device/system/clock_internal.h"
#include "../quick.h"

enum { PER_PROCESS = 50, LIMIT_S = 120, MOST_FINDINGS = 10 };

void run_says(Run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(run->message, sizeof run->message, format, arguments);
    va_end(arguments);
}

/* Tries seeds from run->seed on, at most so many, until one fails or the time is over. */
static void try_some(const Runs *runs, Run *run, int64_t most, double end)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        for (int64_t i = 0; i < most && !run->failed && (i == 0 || cornu__seconds() < end); i++) {
            run->setting = -1;
            run->where[0] = '\0';
            alarm(LIMIT_S);
            runs->try_one(run->seed, run);
            run->tried++;
            if (!run->failed) run->seed++;
        }
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    const int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;   /* 0: ended by a sanitizer */
    run->failed = true;
    run->tried++;
    if (number == SIGALRM) run_says(run, "hangs: no end within %d s", LIMIT_S);
    else run_says(run, "ends by signal %d", number);
}

static int missing(const Runs *runs, const Run *run)
{
    int missing = 0;
    for (int i = 0; i < runs->names; i++) missing += run->counted[i] == 0;
    return missing;
}

static void print_coverage(const Runs *runs, const Run *run)
{
    printf("how often each occurred:");
    for (int i = 0; i < runs->names; i++)
        printf("%s%s %lld", i % 5 ? ", " : "\n  ", runs->name_of(i), (long long)run->counted[i]);
    printf("\n");
}

int run_main(int argc, char **argv, const Runs *runs)
{
    double   seconds = runs->seconds / quick(10, 1);
    int64_t  count = INT64_MAX, findings = 0;
    uint64_t seed = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--seconds")) seconds = strtod(argv[i + 1], NULL);
        else if (!strcmp(argv[i], "--seed")) seed = strtoull(argv[i + 1], NULL, 0);
        else if (!strcmp(argv[i], "--count")) count = strtoll(argv[i + 1], NULL, 0);
        else return fprintf(stderr, "%s: expected --seconds, --seed or --count\n", argv[i]), 2;
    }
    Run *run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run == MAP_FAILED) return perror("mmap"), 2;
    if (argc == 1)   /* as a cmocka test */
        printf("[==========] Running 1 test(s).\n[ RUN      ] random %s\n", runs->what);
    printf("# random %s, seed %llu\n", runs->what, (unsigned long long)seed);
    const double begin = cornu__seconds(), end = count < INT64_MAX ? 1e300 : begin + seconds;
    double       reporting = 0.0;
    run->seed = seed;
    while (run->tried < count && findings < MOST_FINDINGS &&
           (run->tried == 0 || cornu__seconds() < end)) {
        const int64_t left = count - run->tried;
        run->failed = false;
        try_some(runs, run, left < PER_PROCESS ? left : PER_PROCESS, end);
        if (!run->failed) continue;
        const double reported = cornu__seconds();
        findings++;
        printf("\nFINDING: SEED=%llu COUNT=1%s%s: %s\n", (unsigned long long)run->seed,
               *run->where ? ", " : "", run->where, run->message);
        runs->report(run->seed, run);
        reporting += cornu__seconds() - reported;
        run->seed++;
    }
    const double took = cornu__seconds() - begin - reporting;
    const int    never = missing(runs, run);
    const bool   incomplete = run->tried >= runs->enough && never > 0;
    if (count > 1) print_coverage(runs, run);
    printf("%lld %s in %.1f s, %.1f a second; %lld numbers compared, %.2g %% of them without a "
           "bound; %d of %d never occurred; %lld findings\n", (long long)run->tried, runs->what,
           took, (double)run->tried / took, (long long)run->compared,
           100.0 * (double)run->unbounded / (double)(run->compared ? run->compared : 1), never,
           runs->names, (long long)findings);
    const bool good = findings == 0 && !incomplete;
    if (argc == 1) printf("[ %s ] random %s\n", good ? "      OK" : " FAILED ", runs->what);
    return good ? 0 : 1;
}
