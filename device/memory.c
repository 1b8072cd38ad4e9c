#define _DEFAULT_SOURCE    /* madvise */
#include "memory.h"

#include "memory_internal.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 64, HUGE_PAGE = 1 << 21, LARGE = 16 * HUGE_PAGE };

/* ---- The limit ---- */

static atomic_size_t set_limit, usual_limit;   /* 0: not set, not known yet */

void cornu_set_memory_limit(size_t bytes) { atomic_store(&set_limit, bytes); }

/* "512M"; 0 for anything but a positive number of bytes. */
static size_t parse_bytes(const char *text)
{
    static const char units[] = "KMGT";
    char              *end;
    errno = 0;
    const unsigned long long number = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
    const char *unit = number && *end ? strchr(units, *end) : NULL;
    const int   shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (!number || errno || (unit ? end[1] : *end) || number > SIZE_MAX >> shift) return 0;
    return (size_t)number << shift;
}

static size_t half_of_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages / 2 * (size_t)page : SIZE_MAX;
}

size_t cornu__memory_budget(size_t usual)
{
    const size_t limit = cornu_memory_limit();
    const bool   wished = atomic_load(&set_limit) || getenv("CORNU_MAX_MEMORY");
    return wished || limit < usual ? limit : usual;
}

size_t cornu_memory_limit(void)
{
    size_t limit = atomic_load_explicit(&set_limit, memory_order_relaxed);
    if (!limit) limit = atomic_load_explicit(&usual_limit, memory_order_relaxed);
    if (limit) return limit;
    const char *wish = getenv("CORNU_MAX_MEMORY");
    limit = wish ? parse_bytes(wish) : half_of_memory();
    atomic_store(&usual_limit, limit);
    return limit;
}

CornuStatus cornu__check_memory(size_t bytes)
{
    const size_t limit = cornu_memory_limit();
    if (bytes <= limit) return CORNU_OK;
    if (limit == 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "CORNU_MAX_MEMORY is \"%s\", expected a number of "
                           "bytes, such as 512M or 4G", getenv("CORNU_MAX_MEMORY"));
    return cornu__fail(CORNU_ERR_MEMORY, "%zu bytes in one allocation, the limit is %zu; "
                       "cornu_set_memory_limit or CORNU_MAX_MEMORY raises it", bytes, limit);
}

/* ---- Allocating ---- */

void *cornu__allocate(size_t count, size_t size)
{
    if (size == 0 || count <= SIZE_MAX / size)
        if (cornu__check_memory(count * size)) return NULL;
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        cornu__fail(CORNU_ERR_MEMORY, "no memory for %zu elements of %zu bytes", count, size);
    return memory;
}

/* In huge pages where the system has them: rows of a large table are far apart, and with pages of 4
 * KiB nearly each of them needs an entry that the processor has to look up in memory first. */
static void *allocate_large(size_t *bytes)
{
    const size_t whole = (*bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void        *memory = whole >= *bytes ? aligned_alloc(HUGE_PAGE, whole) : NULL;
#ifdef MADV_HUGEPAGE
    if (memory) madvise(memory, whole, MADV_HUGEPAGE);
#endif
    *bytes = whole;
    return memory;
}

void *cornu__allocate_aligned(size_t bytes)
{
    if (cornu__check_memory(bytes)) return NULL;
    /* aligned_alloc wants a multiple of the alignment. */
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void  *memory = NULL;
    if (rounded >= bytes && rounded < LARGE)
        memory = aligned_alloc(ALIGNMENT, rounded ? rounded : ALIGNMENT);
    else if (rounded >= bytes)
        memory = allocate_large(&rounded);
    if (!memory) {
        cornu__fail(CORNU_ERR_MEMORY, "no memory for %zu bytes", bytes);
        return NULL;
    }
    return memset(memory, 0, rounded);
}

void cornu__release(void *memory) { free(memory); }

void cornu__give_back_memory(void)
{
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

char *cornu__copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char  *copy = cornu__allocate(size, 1);
    return copy ? memcpy(copy, text, size) : NULL;
}

CornuStatus cornu__reserve(void *items, int *space, int count, int extra, size_t size)
{
    if (extra <= *space - count) return CORNU_OK;
    if (count > INT_MAX / 2 - extra)
        return cornu__fail(CORNU_ERR_MEMORY, "more than %d elements in an array", INT_MAX / 2);
    int    wanted = 2 * *space > count + extra ? 2 * *space : count + extra;
    const size_t bytes = (size_t)wanted * size;
    CORNU__TRY(cornu__check_memory(bytes));
    /* items is the address of some T *, which a void ** may not alias. */
    void *memory;
    memcpy(&memory, items, sizeof memory);
    memory = realloc(memory, bytes > 0 ? bytes : 1);
    if (!memory)
        return cornu__fail(CORNU_ERR_MEMORY, "no memory for %d elements of %zu bytes", wanted,
                           size);
    memcpy(items, &memory, sizeof memory);
    *space = wanted;
    return CORNU_OK;
}

CornuStatus cornu__add_text(char ***texts, int *space, int *count, const char *text)
{
    CORNU__TRY(cornu__reserve(texts, space, *count, 1, sizeof **texts));
    char *copy = cornu__copy_text(text);
    if (!copy) return CORNU_ERR_MEMORY;
    (*texts)[(*count)++] = copy;
    return CORNU_OK;
}
