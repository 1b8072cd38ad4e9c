/*
 * build/bench: the limits of this machine, and what fraction of them kernels and steps reach.
 *
 *     build/bench --filter steps --models mnist_cnn --batches 128 --json steps.json
 *
 * Limits are measured at the start and the end, and the better ones count. So each group puts its
 * rows into the page that --json writes, and prints them once the limits are known. All times are
 * wall-clock times on this machine.
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
    double      seconds;                  /* about, for each case */
    const char *models, *devices, *batches, *isas;   /* lists; NULL: the group decides */
    int64_t     shards;                   /* of steps' devices; 0: as many as each has */
    json_t     *page;
    BenchLimits limits[BENCH_MOST_LIMITS];   /* of 1, 2, 4, … threads and of all */
    int         limit_count;
} Bench;

/* Name and function of each group, one file each; NAME_print prints its rows. */
#define BENCH_MAP(X)                                                                        \
    X("limits",  bench_limits)    /* registers, caches, memory                           */ \
    X("threads", bench_threads)   /* the cost of handing work to the pool                */ \
    X("kernels", bench_kernels)   /* each kernel, on the shapes of the networks          */ \
    X("steps",   bench_steps)     /* whole training steps                                */ \
    X("scaling", bench_scaling)   /* the same by batch size and by threads               */ \
    X("latency", bench_latency)   /* predictions for one sample, and for many            */ \
    X("generation", bench_generation) /* a token of each sequence, by steps and by windows */ \
    X("predictor", bench_predictor) /* predictors: one row and many, one thread and two  */ \
    X("int8",    bench_int8)      /* models of 8 bits, beside float                      */ \
    X("generated", bench_generated) /* models as C source, beside the library           */ \
    X("overhead", bench_overhead) /* the time around what is computed                    */ \
    X("embedding", bench_embedding) /* sparse gradients of tables of all sizes           */ \
    X("images",  bench_images)    /* folders of JPEG files, beside stb_image alone       */ \
    X("compile", bench_compile)   /* the time until a step is ready, by depth            */ \
    X("layouts", bench_layouts) /* two processes by layout, beside the performance model */ \
    X("large", bench_large)       /* 302 million parameters; only if it is listed        */

#define X(name, function)                \
    CornuStatus function(Bench *bench);  \
    void function##_print(const Bench *bench);
BENCH_MAP(X)
#undef X

/* The networks of the group compile; NULL past the last. */
const char *bench_compile_network(int i);

/* ---- Lists of the command line ---- */

/* Whether a word is in a list separated by commas, or the list is NULL. */
bool bench_listed(const char *list, const char *word);

/* Reads the whole numbers of a list; returns how many, or -1 unless all are at least 1. */
int bench_numbers(const char *list, int64_t numbers[BENCH_MOST_NUMBERS]);

/* ---- Times ---- */

double bench_now(void);

/* One of several things whose runs alternate. */
typedef struct {
    CornuStatus (*run)(void *context);
    void  *context;
    double seconds[BENCH_MOST_ROUNDS];    /* of each round; once measured, ascending */
    double busy[BENCH_MOST_ROUNDS];       /* likewise, of all threads' processors: on a machine that
                                             has other work, too, it varies less */
    int    rounds;
} BenchCase;

/* Runs each case once, then all of them in rounds, so that a busy moment of the machine affects
 * all: for about `seconds` per case, at least three rounds and at most BENCH_MOST_ROUNDS. */
CornuStatus bench_alternate(BenchCase *cases, int count, double seconds);

void bench_sort(double *values, int count);

/* The quantile `part` of the rounds; 0.5 is the median. */
double bench_quantile(const BenchCase *measured, double part);

/* ---- Limits ---- */

/* The limits of so many threads, or of all if that is more. */
const BenchLimits *bench_limits_of(const Bench *bench, int threads);

/* ---- The page ---- */

/* The rows of a group, created on first use. */
json_t *bench_rows(const Bench *bench, const char *group);

/* A member of a row; 0.0 or "" if it is missing. */
double      bench_number(const json_t *row, const char *name);
const char *bench_text(const json_t *row, const char *name);

#endif
