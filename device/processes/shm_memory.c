#define _DEFAULT_SOURCE    /* syscall */

#include "shm_memory_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

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
    void     *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const int error = base == MAP_FAILED ? errno : 0;
    close(file);
    if (!error) memory->base = base;
    return error;
}

/* A name that nobody can guess, in the folder of shared memory. */
static int make_name(CornuShmMemory *memory)
{
    unsigned char random[8];
    const int     file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno;
    const ssize_t n = read(file, random, sizeof random);
    close(file);
    if (n != sizeof random) return EIO;
    int length = snprintf(memory->name, sizeof memory->name, "/dev/shm/cornu-");
    for (size_t i = 0; i < sizeof random; i++)
        length += snprintf(memory->name + length, sizeof memory->name - (size_t)length, "%02x",
                           random[i]);
    return 0;
}

/* The pages are taken now: a full file system would end the process when it touches one later. */
int cornu__shm_create(CornuShmMemory *memory, int size)
{
    const size_t bytes = total_bytes(memory, size);
    int          error = make_name(memory);
    if (error) return error;
    const int file = open(memory->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) {
        error = errno;
        memory->name[0] = '\0';
        return error;
    }
    error = posix_fallocate(file, 0, (off_t)bytes);
    if (error) close(file);
    else error = map_file(memory, file, bytes);
    if (error) cornu__shm_unlink(memory);
    return error;
}

int cornu__shm_map(CornuShmMemory *memory, int size)
{
    const size_t bytes = total_bytes(memory, size);
    memory->name[sizeof memory->name - 1] = '\0';
    const int    file = open(memory->name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return file < 0 ? errno : map_file(memory, file, bytes);
}

void cornu__shm_unlink(CornuShmMemory *memory)
{
    if (memory->name[0]) unlink(memory->name);
    memory->name[0] = '\0';
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
#else
void cornu__futex_wait(_Atomic uint32_t *word, uint32_t value, int milliseconds)
{
    const struct timespec pause = { 0, 100000 };
    for (int i = 0; i < 10 * milliseconds && atomic_load(word) == value; i++)
        nanosleep(&pause, NULL);
}

void cornu__futex_wake(_Atomic uint32_t *word) { (void)word; }
#endif
