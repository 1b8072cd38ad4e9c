/*
 * Random programs in several processes: the bits of one process.
 *
 *     test_processes                                    a fixed seed, 100 programs
 *     test_processes --seconds 3600 --seed 17           for an hour
 *     test_processes --count 1 --seed 4711              one program again
 *
 * The programs are those of test_programs that have several shards.
 *
 * tests/run: takes 45 s, quick
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../device/system/clock_internal.h"
#include "../device/processes/results.h"
#include "../quick.h"
#include "generator.h"

static uint64_t seed = 1;             /* of the next programs */
static int64_t  count;                /* of programs at once */
static double   seconds;

static CornuStatus try_program(uint64_t number, CornuProcesses *processes)
{
    Trial   c;
    Verdict verdict = { .failed = false };
    int64_t all = 0;
    char    name[60];
    snprintf(name, sizeof name, "program %llu", (unsigned long long)number);
    if (generate(number, &c)) {
        CornuDevice *device = cornu_device_open(number % 2 ? "cpu" : "tpu", .threads = 1,
                                                .shards = c.shards, .processes = processes);
        if (!device) return cornu_error_take();
        double *numbers = trial_numbers(&c, device, &all, &verdict);
        if (!verdict.unusable) result(name, numbers, (size_t)all * sizeof *numbers);
        free(numbers);
        cornu_device_close(device);
    }
    trial_free(&c);
    return verdict.failed ? cornu__fail(CORNU_ERR_VALUE, "%s: %s", name, verdict.message)
                          : CORNU_OK;
}

static CornuStatus try_programs(CornuProcesses *processes)
{
    const int ranks = cornu_process_count(processes), least = ranks > 2 ? ranks : 2;
    setenv("CORNU_VERIFY", "1", 1);
    int64_t left = count;
    for (uint64_t number = seed; left > 0; number++) {
        const int shards = generated_shards(number);
        left -= shards > 1;
        if (shards >= least) CORNU__TRY(try_program(number, processes));
    }
    return CORNU_OK;
}

static void random_programs_have_the_bits_of_one_process(void **state)
{
    (void)state;
    static const int counts[] = { 2, 3, 5, 0 };
    const double     end = cornu__seconds() + seconds;
    do {
        printf("# %lld programs from seed %llu on\n", (long long)count, (unsigned long long)seed);
        results_agree("shm", counts, count < 10 ? 0 : count / 3, try_programs);
        for (int64_t left = count; left > 0; seed++) left -= generated_shards(seed) > 1;
    } while (cornu__seconds() < end);
}

int main(int argc, char **argv)
{
    count = quick(12, 100);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--seconds")) seconds = strtod(argv[i + 1], NULL);
        else if (!strcmp(argv[i], "--seed")) seed = strtoull(argv[i + 1], NULL, 0);
        else if (!strcmp(argv[i], "--count")) count = strtoll(argv[i + 1], NULL, 0);
        else return fprintf(stderr, "%s: expected --seconds, --seed or --count\n", argv[i]), 2;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_have_the_bits_of_one_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
