/*
 * Counts this program's allocations, and lets chosen ones fail. To be included by one
 * file of a test program: it defines malloc and its kin in front of those of the C
 * library.
 *
 *     allocations_fail_after(3);   the fourth allocation from now fails, and all later
 *     allocations_fail_after(NEVER);  back to normal
 *     int64_t before = allocations();
 *
 * Under a sanitizer, which brings its own malloc, allocations_counted() is false and
 * tests should skip().
 */
#ifndef CORNU_TESTS_ALLOCATIONS_H
#define CORNU_TESTS_ALLOCATIONS_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEVER INT64_MAX

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOCATIONS_COUNTED false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ALLOCATIONS_COUNTED false
#endif
#endif

static atomic_int_fast64_t allocations_made;
static atomic_int_fast64_t allocations_allowed = NEVER;

static inline int64_t allocations(void) { return atomic_load(&allocations_made); }

static inline void allocations_fail_after(int64_t count)
{
    atomic_store(&allocations_allowed, count);
}

#ifdef ALLOCATIONS_COUNTED
static inline bool allocations_counted(void) { return false; }
#else
static inline bool allocations_counted(void) { return true; }

/* glibc's own entrances. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static bool allocation_may_pass(void)
{
    atomic_fetch_add(&allocations_made, 1);
    if (atomic_load(&allocations_allowed) == NEVER) return true;
    if (atomic_fetch_sub(&allocations_allowed, 1) > 0) return true;
    errno = ENOMEM;
    return false;
}

void *malloc(size_t size) { return allocation_may_pass() ? __libc_malloc(size) : NULL; }

void *calloc(size_t count, size_t size)
{
    return allocation_may_pass() ? __libc_calloc(count, size) : NULL;
}

void *realloc(void *memory, size_t size)
{
    return allocation_may_pass() ? __libc_realloc(memory, size) : NULL;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return allocation_may_pass() ? __libc_memalign(alignment, size) : NULL;
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    void *got = allocation_may_pass() ? __libc_memalign(alignment, size) : NULL;
    if (got) *memory = got;
    return got ? 0 : ENOMEM;
}
#endif

#endif
