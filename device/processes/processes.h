/*
 * Processes: one training over several processes, on one machine or many.
 *
 * Each process, a rank, owns a contiguous range of a device's shards. All run the same program on
 * the same data, and meet where shards do: sums over shards follow one tree over shard numbers, so
 * that the bits do not depend on how the shards are divided.
 *
 *     CornuProcesses *processes = cornu_processes_open();           as the launcher says
 *     CornuDevice *device = cornu_device_open("tpu", .processes = processes);
 *     if (cornu_process_rank(processes) == 0) puts("one of everything");
 *
 * What starts the processes says who they are:
 *
 *     mpirun, srun            through the library of MPI, by Cornu's plugin for it
 *     cornu run -n 4 NAME     through the environment: CORNU_RANK, CORNU_WORKERS
 *     TF_CONFIG               through the environment, as Keras' users know it
 *     .workers, .rank         through the program
 *     nothing                 rank 0 of 1
 *
 * Ranks that find each other by addresses show each other that they have the job's key, a secret of
 * at least 16 characters that all are given: as .key, in CORNU_KEY, or in a file that only its
 * owner may read, CORNU_KEY_FILE. cornu run makes one of its own; MPI's launchers need none.
 *
 * A rank that ends, stops answering, or fails ends the group: the others' next exchange fails with
 * a message that names it. The group does not come back; a new start of all processes goes on from
 * a backup (nn/callbacks/backup.h).
 */
#ifndef CORNU_DEVICE_PROCESSES_H
#define CORNU_DEVICE_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "../status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuProcesses CornuProcesses;

/* As many as there may be shards. */
enum { CORNU_MAX_PROCESSES = 1024 };

typedef struct {
    char               unset;
    const char        *transport;   /* what moves the bytes: "auto", which is the default, "shm":
                                       shared memory of one machine, "tcp", or "mpi" */
    const char *const *workers;     /* "host:port" of each rank; default: the launcher's word */
    int                count;       /* of workers */
    int                rank;        /* of this process among the workers */
    const char        *key;         /* a secret of the job, which all ranks share: without it nobody
                                       joins. Default: CORNU_KEY, else what is in the file
                                       CORNU_KEY_FILE. cornu run and MPI's launchers need none */
    double             timeout_s;   /* a rank that does not answer for so long has failed;
                                       default 60 */
} CornuProcessesConfig;

/*
 * Meets the other processes; all of them must call it. Until it is closed this process is a member,
 * of this group alone, and of what the library writes rank 0 writes everything: on other ranks
 * files are not made, and functions that write them succeed if rank 0's do. Started alone, by no
 * launcher and without .workers, it is a group of one. NULL with a pending error:
 * CORNU_ERR_ARGUMENT for bad arguments or environment, or no key,
 * CORNU_ERR_UNSUPPORTED if the launcher needs
 * a library that is missing, CORNU_ERR_PROCESS if the others cannot be reached in time, or differ
 * from this process in what must be the same: Cornu's version, byte order, instruction set,
 * transport.
 */
CornuProcesses *cornu_processes_open_from(const CornuProcessesConfig *config);
#define cornu_processes_open(...) \
    cornu_processes_open_from(&(CornuProcessesConfig){ .unset = 0, __VA_ARGS__ })

/* Leaves the group and frees it; devices of it are closed before. NULL is ignored. */
void cornu_processes_close(CornuProcesses *processes);

/* The end of a program: tells the others, unless status is CORNU_OK or CORNU_ERR_INTERRUPTED, that
 * this rank ends with the last message, and closes. */
void cornu_processes_leave(CornuProcesses *processes, CornuStatus status);

/* The number of this process, 0 to count - 1; 0 of NULL. */
int cornu_process_rank(const CornuProcesses *processes);
/* The number of processes; 1 of NULL. */
int cornu_process_count(const CornuProcesses *processes);

/* *flag: whether any rank's is set, for decisions that all must take at the same step, such as to
 * stop for a signal. All ranks call it. */
CornuStatus cornu_processes_any(CornuProcesses *processes, bool *flag);

/* all[r * count ...] = rank r's `count` numbers at `own`, on every rank. All ranks call it, with
 * the same count. */
CornuStatus cornu_processes_gather(CornuProcesses *processes, const double *own, int count,
                                   double *all);

/* "4 processes on 2 hosts, by Open MPI 4.1.4 over tcp". */
const char *cornu_processes_description(const CornuProcesses *processes);

/* What this rank has exchanged with the others since the group was opened. */
typedef struct {
    int64_t exchanges;
    int64_t bytes_sent, bytes_received;
    double  wait_seconds;   /* that a caller waited for an exchange to end */
} CornuTraffic;

/* So far; all 0 of NULL. */
CornuTraffic cornu_processes_traffic(const CornuProcesses *processes);

#ifdef __cplusplus
}
#endif
#endif
