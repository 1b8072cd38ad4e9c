/*
 * Counts this program's allocations, and lets chosen ones fail. To be included by one
 * file of a test program: it defines malloc and its kin in front of those of the C
 * library.
 *
 *     allocations_fail_after(3);   the fourth allocation from now fails, and all later
 *     allocations_fail_once(3);    the fourth alone
 *     allocations_fail_after(NEVER);  back to normal
 *     int64_t before = allocations();
 *     int64_t held = allocations_held();   made and not freed yet
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
static atomic_int_fast64_t allocations_own_made;
static atomic_int_fast64_t allocations_freed;
static atomic_int_fast64_t allocations_allowed = NEVER;
static atomic_bool         allocations_resume;      /* after one that failed */

static inline int64_t allocations(void) { return atomic_load(&allocations_made); }

/* Of these, those that the program asked for itself; not its shared libraries, such as a plugin. */
static inline int64_t allocations_own(void) { return atomic_load(&allocations_own_made); }

static inline void allocations_fail_after(int64_t count)
{
    atomic_store(&allocations_allowed, count);
    atomic_store(&allocations_resume, false);
}

static inline void allocations_fail_once(int64_t count)
{
    atomic_store(&allocations_allowed, count);
    atomic_store(&allocations_resume, true);
}

static inline int64_t allocations_held(void)
{
    return atomic_load(&allocations_made) - atomic_load(&allocations_freed);
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
void  __libc_free(void *memory);

/* The program's code, as the linker names its ends. */
extern const char __executable_start[], etext[];

static bool allocation_may_pass(const void *caller)
{
    const uintptr_t at = (uintptr_t)caller;
    atomic_fetch_add(&allocations_made, 1);
    if (at >= (uintptr_t)__executable_start && at < (uintptr_t)etext)
        atomic_fetch_add(&allocations_own_made, 1);
    if (atomic_load(&allocations_allowed) == NEVER) return true;
    const int_fast64_t left = atomic_fetch_sub(&allocations_allowed, 1);
    if (left > 0 || (left < 0 && atomic_load(&allocations_resume))) return true;
    atomic_fetch_add(&allocations_freed, 1);
    errno = ENOMEM;
    return false;
}

void free(void *memory)
{
    if (memory) atomic_fetch_add(&allocations_freed, 1);
    __libc_free(memory);
}

void *malloc(size_t size)
{
    return allocation_may_pass(__builtin_return_address(0)) ? __libc_malloc(size) : NULL;
}

void *calloc(size_t count, size_t size)
{
    return allocation_may_pass(__builtin_return_address(0)) ? __libc_calloc(count, size) : NULL;
}

void *realloc(void *memory, size_t size)
{
    if (!allocation_may_pass(__builtin_return_address(0))) return NULL;
    if (memory) atomic_fetch_add(&allocations_freed, 1);
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return allocation_may_pass(__builtin_return_address(0)) ? __libc_memalign(alignment, size)
                                                            : NULL;
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    void *got = allocation_may_pass(__builtin_return_address(0)) ? __libc_memalign(alignment, size)
                                                                 : NULL;
    if (got) *memory = got;
    return got ? 0 : ENOMEM;
}
#endif

#endif
