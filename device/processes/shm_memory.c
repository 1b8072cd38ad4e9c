#define _GNU_SOURCE    /* syscall, seals of files */

#include "shm_memory_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "../open.h"

/* All rings together have at most ALL bytes, unless each would have less than LEAST. */
#define ALL ((size_t)64 << 20)
enum { LEAST = 16 << 10, MOST = 1 << 20 };

static size_t total_bytes(CornuShmMemory *memory, int size)
{
    const size_t rings = (size_t)size * (size_t)size;
    memory->size = size;
    memory->ring_bytes = MOST;
    while (memory->ring_bytes > LEAST && memory->ring_bytes * rings > ALL) memory->ring_bytes /= 2;
    return (size_t)size * sizeof(CornuShmBell) +
           rings * (sizeof(CornuShmEnds) + memory->ring_bytes);
}

CornuShmBell *cornu__shm_bell(const CornuShmMemory *memory, int rank)
{
    return (CornuShmBell *)(void *)memory->base + rank;
}

CornuShmRing cornu__shm_ring(const CornuShmMemory *memory, int from, int to)
{
    const size_t size = (size_t)memory->size, ring = (size_t)from * size + (size_t)to;
    char        *ends = memory->base + size * sizeof(CornuShmBell);
    return (CornuShmRing){ (CornuShmEnds *)(void *)ends + ring,
                           ends + size * size * sizeof(CornuShmEnds) + ring * memory->ring_bytes };
}

static int map_file(CornuShmMemory *memory, int file, size_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (base == MAP_FAILED) return errno;
    memory->base = base;
    return 0;
}

#ifdef __linux__
/* The pages are taken now, since full memory would end the process when it touches one later, and
 * stay: no rank can make the file smaller under another. */
static int make_file(CornuShmMemory *memory, size_t bytes)
{
    struct stat is;
    memory->file = cornu__above_standard((int)syscall(SYS_memfd_create, "cornu",
                                                      MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (memory->file < 0) return errno;
    const int error = posix_fallocate(memory->file, 0, (off_t)bytes);
    if (error) return error;
    if (fchmod(memory->file, 0600) || fstat(memory->file, &is) ||
        fcntl(memory->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return errno;
    memory->place = (CornuShmPlace){ getpid(), memory->file, is.st_ino };
    return 0;
}
#else
static int make_file(CornuShmMemory *memory, size_t bytes)
{
    memory->file = -1;
    return (void)bytes, ENOSYS;
}
#endif

int cornu__shm_create(CornuShmMemory *memory, int size)
{
    const size_t bytes = total_bytes(memory, size);
    int          error = make_file(memory, bytes);
    if (!error) error = map_file(memory, memory->file, bytes);
    if (!error) return 0;
    cornu__shm_hide(memory);
    memory->place = (CornuShmPlace){ 0 };
    return error;
}

/* By the other's descriptor: the system lets the same user do so, where it sees that process. */
int cornu__shm_map(CornuShmMemory *memory, int size)
{
    const size_t bytes = total_bytes(memory, size);
    struct stat  is;
    char         path[64];
    memory->file = -1;
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)memory->place.process,
             (long long)memory->place.file);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return errno;
    int error = fstat(file, &is) ? errno : 0;
    if (!error && (is.st_ino != memory->place.inode || is.st_size != (off_t)bytes)) error = ESTALE;
    if (!error) error = map_file(memory, file, bytes);
    close(file);
    return error;
}

void cornu__shm_hide(CornuShmMemory *memory)
{
    if (memory->file >= 0) close(memory->file);
    memory->file = -1;
}

void cornu__shm_unmap(CornuShmMemory *memory)
{
    if (memory->base) munmap(memory->base, total_bytes(memory, memory->size));
    memory->base = NULL;
}

#ifdef __linux__
void cornu__futex_wait(_Atomic uint32_t *word, uint32_t value, int milliseconds)
{
    const struct timespec limit = { milliseconds / 1000, milliseconds % 1000 * 1000000L };
    syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

void cornu__futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}
#else   /* where there is no such memory */
void cornu__futex_wait(_Atomic uint32_t *word, uint32_t value, int milliseconds)
{
    (void)word, (void)value, (void)milliseconds;
}

void cornu__futex_wake(_Atomic uint32_t *word) { (void)word; }
#endif
