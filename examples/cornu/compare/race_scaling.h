/*
 * How the steps of a training scale over processes of this machine: *measured*, one group of
 * processes after the other, in three rounds. Strong scaling divides the same batch among more
 * processes; weak scaling gives each process as many rows as it has in the smallest group. The
 * shards are the same for all of them, so that the same batches end with the same weights.
 */
#ifndef CORNU_EXAMPLES_RACE_SCALING_H
#define CORNU_EXAMPLES_RACE_SCALING_H

#include "../explain/scaling.h"
#include "race.h"

enum { RACE_RANKS = 16 };

/* Of steps after the first epoch; of one epoch, of those after the first. */
typedef struct {
    int64_t  ranks, threads, shards, batch;   /* threads of a process */
    int64_t  steps;                           /* that were measured */
    double   step_s;                          /* the median, of the slowest rank */
    double   wait_s;                          /* for others, of the rank that waited longest, and */
    double   sent_bytes;                      /* of the one that sent most, per step */
    double   loss;                            /* of the last epoch */
    uint64_t checksum;                        /* of the weights at the end */
    char     description[128];                /* "2 processes on 1 host, over shm" */
} RanksRow;

typedef struct {
    const char *device;
    int         count;
    RanksRow    strong[RACE_RANKS], weak[RACE_RANKS];   /* the first is both */
    bool        is_modelled;                            /* a TPU, on as many shards */
    Scaling     modelled;
} RanksScaling;

/* ---- The program that measures ---- */

/* The numbers of processes in a list such as "1,2,4,8", ascending, and how many; 0 for another. */
int race_read_ranks(const char *list, int64_t ranks[RACE_RANKS]);

/* Runs cornu compare with these arguments, by cornu run, as groups of processes, each of
 * which measures one row. CORNU_ERR_PROCESS for a group that fails, which has said why;
 * CORNU_ERR_VALUE if not all have trained the same weights. */
CornuStatus race_scale(const Race *race, char *const *arguments, const char *device,
                       const int64_t *ranks, int count, RanksScaling *scaling);

/* ---- The processes of a group ---- */

/* Whether this is one of them. */
bool race_is_scaled(void);

/* Trains on the device, and hands the row to the program that measures. All of them call it. */
CornuStatus race_measure_row(Race *race, const char *device);

/* ---- Results (race_scaling_report.c) ---- */

/* At most 80 columns. */
void race_scaling_print(const Race *race, const RanksScaling *scaling, FILE *to);

/* {"model", "data", "measured": [{"device", "shards", "checksum", "strong": [...], "weak": [...]},
 * ...]} */
CornuStatus race_scaling_write(const Race *race, const RanksScaling *scalings, int count,
                               const char *path);

#endif
