#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../device/host/cpu.h"

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_seconds(int repeats, void (*function)(void *context), void *context)
{
    double *seconds = malloc((size_t)repeats * sizeof *seconds);
    if (!seconds) abort();
    function(context);
    for (int i = 0; i < repeats; i++) {
        const double begin = now();
        function(context);
        seconds[i] = now() - begin;
    }
    qsort(seconds, (size_t)repeats, sizeof *seconds, by_size);
    const double median = seconds[repeats / 2];
    free(seconds);
    return median;
}

int main(int count, char **arguments)
{
    static const struct { const char *name; void (*function)(void); } groups[] = {
#define X(name, function) { name, function },
        BENCH_MAP(X)
#undef X
    };
    CornuIsa isa;
    if (cornu__cpu_isa(&isa) != CORNU_OK) {
        fprintf(stderr, "bench: %s\n", cornu_error_message());
        return 1;
    }
    printf("%s | %s | %d threads | measured\n", cornu__cpu()->name, cornu__isa_name(isa),
           cornu__cpu_threads());
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        if (count > 1 && !strstr(groups[i].name, arguments[1])) continue;
        printf("\n%s\n", groups[i].name);
        groups[i].function();
    }
    return 0;
}
