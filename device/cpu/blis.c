#include "blis.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../host/machine/cpu.h"
#include "../memory_internal.h"

/* What blis.mk exports from its copy of BLIS, with which names. */
#define bli_init             cornu__bli_init
#define bli_sgemm            cornu__bli_sgemm
#define bli_arch_query_id    cornu__bli_arch_query_id
#define bli_arch_string      cornu__bli_arch_string
#define bli_info_get_version_str cornu__bli_info_get_version_str
#include <blis-serial/blis.h>

/* And what its copy of BLIS calls in place of malloc, free and getenv. */
void *cornu__blis_malloc(size_t bytes);
void  cornu__blis_free(void *memory);
char *cornu__blis_getenv(const char *name);

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;   /* and closing */

/* ---- memory ------------------------------------------------------------------------ */

/*
 * For each thread that multiplies at the same time as others, BLIS allocates one set of packing
 * buffers at its first product, at most 18.2 MB, and keeps it; then nothing more. It frees only
 * lists of a few pointers, to make longer ones. So the reserve is a stack that only grows.
 */
enum { BYTES_PER_THREAD = 20 << 20, BYTES_AT_ALL = 1 << 20, ALIGNMENT = 64 };

typedef struct Region {
    struct Region *next;
    size_t         bytes, used;   /* both include this header */
} Region;

static struct {
    pthread_mutex_t lock;
    Region         *regions;
    int             threads;      /* that there is memory for */
    int             announced;    /* by cornu__blis_open; at most `threads` */
} reserve = { .lock = PTHREAD_MUTEX_INITIALIZER };

static CornuStatus provide(int threads)
{
    if (reserve.announced + threads > reserve.threads) {
        const int    more = reserve.announced + threads - reserve.threads;
        const size_t bytes = (size_t)more * BYTES_PER_THREAD + BYTES_AT_ALL;
        Region      *region = cornu__allocate(bytes, 1);
        if (!region) return CORNU_ERR_MEMORY;
        region->bytes = bytes;
        region->used = sizeof *region;
        pthread_mutex_lock(&reserve.lock);
        region->next = reserve.regions;
        reserve.regions = region;
        pthread_mutex_unlock(&reserve.lock);
        reserve.threads += more;
    }
    reserve.announced += threads;
    return CORNU_OK;
}

/* Falls back on the heap; only more threads than announced can exhaust the reserve. */
void *cornu__blis_malloc(size_t bytes)
{
    void *memory = NULL;
    pthread_mutex_lock(&reserve.lock);
    for (Region *region = reserve.regions; region && !memory; region = region->next) {
        char        *base = (char *)region;
        const size_t skip = -(uintptr_t)(base + region->used) % ALIGNMENT;
        if (bytes > region->bytes - region->used ||
            bytes + skip > region->bytes - region->used)
            continue;
        memory = base + region->used + skip;
        region->used += skip + bytes;
    }
    pthread_mutex_unlock(&reserve.lock);
    return memory ? memory : malloc(bytes);
}

void cornu__blis_free(void *memory)
{
    pthread_mutex_lock(&reserve.lock);
    bool ours = false;
    for (const Region *region = reserve.regions; region && !ours; region = region->next)
        ours = (uintptr_t)memory - (uintptr_t)region < region->bytes;
    pthread_mutex_unlock(&reserve.lock);
    if (!ours) free(memory);
}

/* ---- kernels ----------------------------------------------------------------------- */

/* The numbers of other sets of kernels lead to generic ones in our copy of BLIS, see
 * blis.mk. */
static const struct { arch_t type; const char *name; CornuIsa isa; } kernels[] = {
#if defined(__x86_64__)
    { BLIS_ARCH_SKX,       "skx",       CORNU_ISA_AVX512 },
    { BLIS_ARCH_HASWELL,   "haswell",   CORNU_ISA_AVX2 },
    { BLIS_ARCH_GENERIC,   "generic",   CORNU_ISA_PORTABLE },
#elif defined(__aarch64__)
    { BLIS_ARCH_CORTEXA57, "cortexa57", CORNU_ISA_PORTABLE },
#else
    { BLIS_ARCH_GENERIC,   "generic",   CORNU_ISA_PORTABLE },
#endif
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

static bool opened;
static char arch_type[8];     /* what BLIS finds in BLIS_ARCH_TYPE */

static CornuStatus choose_architecture(arch_t *chosen)
{
    const char *wish = getenv("BLIS_ARCH_TYPE");
    if (!wish || !*wish) {
        CornuIsa isa;
        CORNU__TRY(cornu__cpu_isa(&isa));
        /* With instructions in halves, AVX2 kernels are as fast in registers and reach 97 to 108
         * GFLOP/s overall, AVX-512 kernels 86 to 101. */
        int i = 0;
        while (kernels[i].isa > isa ||
               (kernels[i].type == BLIS_ARCH_SKX && cornu__cpu()->halves)) i++;
        *chosen = kernels[i].type;
        return CORNU_OK;
    }
    const CornuIsa best = cornu__cpu()->best;
    char *end;
    errno = 0;
    const long number = strtol(wish, &end, 10);
    for (int i = 0; i < KERNELS; i++) {
        if (errno || *end || number != (long)kernels[i].type) continue;
        if (kernels[i].isa > best)
            return cornu__fail(CORNU_ERR_DEVICE,
                               "BLIS_ARCH_TYPE is %s, whose kernels need %s, but this CPU "
                               "(%s) has at most %s",
                               wish, cornu__isa_name(kernels[i].isa), cornu__cpu()->name,
                               cornu__isa_name(best));
        *chosen = kernels[i].type;
        return CORNU_OK;
    }
    char known[96] = "";
    for (int i = 0; i < KERNELS; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%d (%s)",
                 i == 0 ? "" : i + 1 < KERNELS ? ", " : " or ", (int)kernels[i].type,
                 kernels[i].name);
    return cornu__fail(CORNU_ERR_DEVICE, "BLIS_ARCH_TYPE is '%s', expected %s, the kernels built "
                       "into this library, or none", wish, known);
}

/* BLIS does not know every CPU that these kernels run on, so it is told which to take. It sees
 * nothing else of the environment: the same program computes the same bits. */
char *cornu__blis_getenv(const char *name)
{
    return strcmp(name, "BLIS_ARCH_TYPE") == 0 ? arch_type : NULL;
}

CornuStatus cornu__blis_open(int threads)
{
    pthread_mutex_lock(&opening);
    arch_t      chosen = kernels[KERNELS - 1].type;
    CornuStatus status = opened ? CORNU_OK : choose_architecture(&chosen);
    if (status == CORNU_OK) status = provide(threads);
    if (status == CORNU_OK && !opened) {
        snprintf(arch_type, sizeof arch_type, "%d", (int)chosen);
        bli_init();
        opened = true;
    }
    pthread_mutex_unlock(&opening);
    return status;
}

void cornu__blis_close(int threads)
{
    pthread_mutex_lock(&opening);
    reserve.announced -= threads;
    pthread_mutex_unlock(&opening);
}

const char *cornu__blis_kernels(void) { return bli_arch_string(bli_arch_query_id()); }
const char *cornu__blis_version(void) { return bli_info_get_version_str(); }

void cornu__blis_sgemm(int64_t m, int64_t n, int64_t k, float alpha,
                       const float *a, int64_t a_row, int64_t a_column,
                       const float *b, int64_t b_row, int64_t b_column, float beta,
                       float *c, int64_t c_row, int64_t c_column)
{
    /* BLIS only reads its operands, but its prototypes lack const. */
    bli_sgemm(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, m, n, k, &alpha, (float *)a, a_row,
              a_column, (float *)b, b_row, b_column, &beta, c, c_row, c_column);
}
