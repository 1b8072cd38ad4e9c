/*
 * build/bench: what this machine can do, and what part of it our kernels and training steps reach.
 *
 *     build/bench --filter steps --models mnist_cnn --batches 128 --json steps.json
 *
 * The limits are measured first and last, and the better ones count; so each group measures its
 * rows into the page that --json writes, and prints them from there once the limits are known.
 * All times are measured here, by the wall clock.
 */
#ifndef CORNU_TESTS_BENCH_H
#define CORNU_TESTS_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "../../device/host/machine/limits.h"

enum { BENCH_MOST_LIMITS = 16, BENCH_MOST_NUMBERS = 32, BENCH_MOST_ROUNDS = 1000 };

typedef struct {
    CornuCpuLimits   cpu;
    CornuCacheLimits cache;
} BenchLimits;

typedef struct {
    double      seconds;                  /* to spend on each case, about */
    const char *models, *devices, *batches, *isas;   /* lists; NULL: the group decides */
    json_t     *page;
    BenchLimits limits[BENCH_MOST_LIMITS];   /* of 1, 2, 4, … threads and of all */
    int         limit_count;
} Bench;

/* name, what it measures: one file each. NAME_print prints its rows. */
#define BENCH_MAP(X)                                                                        \
    X("limits",  bench_limits)    /* registers, caches, memory                           */ \
    X("threads", bench_threads)   /* what handing work to the pool costs                 */ \
    X("kernels", bench_kernels)   /* each kernel, at the shapes that the networks have   */ \
    X("steps",   bench_steps)     /* whole training steps                                */ \
    X("scaling", bench_scaling)   /* the same by batch size and by threads               */ \
    X("latency", bench_latency)   /* predictions for one sample, and for many            */

#define X(name, function)                \
    CornuStatus function(Bench *bench);  \
    void function##_print(const Bench *bench);
BENCH_MAP(X)
#undef X

/* ---- Lists of the command line ---- */

/* Whether the word is in a list with commas, or the list is NULL. */
bool bench_listed(const char *list, const char *word);

/* The whole numbers of a list; how many, or -1 unless all are at least 1. */
int bench_numbers(const char *list, int64_t numbers[BENCH_MOST_NUMBERS]);

/* ---- Times ---- */

double bench_now(void);

/* One of several things to be timed in turn. */
typedef struct {
    CornuStatus (*run)(void *context);
    void  *context;
    double seconds[BENCH_MOST_ROUNDS];    /* of each round; once measured, ascending */
    int    rounds;
} BenchCase;

/* Runs each case once, then all of them round by round, so that a busy moment of the machine falls
 * on all: for about `seconds` a case, at least three rounds and at most BENCH_MOST_ROUNDS. */
CornuStatus bench_alternate(BenchCase *cases, int count, double seconds);

void bench_sort(double *values, int count);

/* What `part` of the rounds (0.5: half of them) did not exceed. */
double bench_quantile(const BenchCase *measured, double part);

/* ---- Limits ---- */

/* Of so many threads, or of all if that is more. */
const BenchLimits *bench_limits_of(const Bench *bench, int threads);

/* ---- The page ---- */

/* The rows of a group, made with its first one. */
json_t *bench_rows(const Bench *bench, const char *group);

/* A member of a row; 0.0 or "" if it is missing. */
double      bench_number(const json_t *row, const char *name);
const char *bench_text(const json_t *row, const char *name);

#endif
