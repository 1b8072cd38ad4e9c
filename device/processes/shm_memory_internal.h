/* Memory that the ranks of one host share: bells, and rings of bytes. */
#ifndef CORNU_DEVICE_SHM_MEMORY_INTERNAL_H
#define CORNU_DEVICE_SHM_MEMORY_INTERNAL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { CORNU_SHM_PIECES = 4 };   /* of a ring: one is copied at once */

/* Of a rank: others ring it when there may be something to do. */
typedef struct {
    _Alignas(128) _Atomic uint32_t rung;
    _Atomic uint32_t               sleeping;
} CornuShmBell;

/* Bytes since the beginning, by the one that writes and the one that reads. */
typedef struct {
    _Alignas(128) _Atomic uint64_t written;
    _Alignas(128) _Atomic uint64_t read;
} CornuShmEnds;

typedef struct {
    CornuShmEnds *ends;
    char         *bytes;
} CornuShmRing;

/* Where the others find the memory while rank 0 keeps it open: memory without a name, which is gone
 * with its processes however they end. */
typedef struct {
    int64_t  process;       /* 0: nowhere */
    int64_t  file;          /* that process' descriptor of it */
    uint64_t inode;         /* which it must be */
} CornuShmPlace;

typedef struct {
    CornuShmPlace place;
    int    file;            /* rank 0's, until all have mapped it; -1: none */
    int    size;            /* ranks */
    size_t ring_bytes;      /* a power of two */
    char  *base;            /* NULL: not mapped */
} CornuShmMemory;

/* Both return an errno, 0 for success. create makes new memory and sets memory->place; map finds it
 * there. */
int  cornu__shm_create(CornuShmMemory *memory, int size);
int  cornu__shm_map(CornuShmMemory *memory, int size);
void cornu__shm_hide(CornuShmMemory *memory);    /* from now on nobody can map it */
void cornu__shm_unmap(CornuShmMemory *memory);

CornuShmBell *cornu__shm_bell(const CornuShmMemory *memory, int rank);
CornuShmRing  cornu__shm_ring(const CornuShmMemory *memory, int from, int to);

/* Sleeps while the word, in shared memory, has the value, and at most so long. */
void cornu__futex_wait(_Atomic uint32_t *word, uint32_t value, int milliseconds);
void cornu__futex_wake(_Atomic uint32_t *word);

#endif
