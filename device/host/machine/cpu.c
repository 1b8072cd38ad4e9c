#define _GNU_SOURCE /* sched_getaffinity, syscall */
#include "cpu.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../text/print.h"
#include "../../status_internal.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

static const char *const isa_names[] = { CORNU__ISAS(CORNU__ISA_NAME, , ) };

const char *cornu__isa_name(CornuIsa isa)
{
    return (unsigned)isa < CORNU_ISA_COUNT ? isa_names[isa] : "unknown";
}

/* The first line of a file without its end; "" and false if there is none. */
static bool read_line(const char *path, char *line, size_t size)
{
    line[0] = '\0';
    FILE *file = fopen(path, "r");
    if (!file) return false;
    const bool got = fgets(line, (int)size, file) != NULL;
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return got;
}

/* ---- instruction sets -------------------------------------------------------------- */

#if defined(__x86_64__)

typedef struct { unsigned a, b, c, d; } Leaf;

/* All zero for a leaf the processor does not have. */
static Leaf cpuid(unsigned leaf, unsigned subleaf)
{
    Leaf r = { 0, 0, 0, 0 };
    __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
    return r;
}

/* The register sets that the operating system saves: bit 1 SSE, 2 AVX, 5 to 7 AVX-512, 17
 * and 18 tiles. */
static uint64_t saved_state(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool all(uint64_t word, uint64_t bits) { return (word & bits) == bits; }

/* Linux grants a process the tile registers only on request. */
static bool tiles_granted(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

/* Bits as in "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2,
 * CPUID. */
static CornuIsa best_isa(void)
{
    enum {
        /* leaf 1, c */
        FMA = 1 << 12, MOVBE = 1 << 22, POPCNT = 1 << 23, OSXSAVE = 1 << 27,
        AVX = 1 << 28, F16C = 1 << 29,
        /* leaf 0x80000001, c */
        LZCNT = 1 << 5,
        /* leaf 7, b and d */
        BMI1 = 1 << 3, AVX2 = 1 << 5, BMI2 = 1 << 8, AVX512F = 1 << 16,
        AVX512DQ = 1 << 17, AVX512CD = 1 << 28, AVX512BW = 1 << 30,
        AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24,
        /* leaf 7, subleaf 1, a */
        AVX512_BF16 = 1 << 5
    };
    const unsigned AVX512VL = 1u << 31;
    const Leaf basic = cpuid(1, 0), more = cpuid(7, 0), most = cpuid(7, 1);
    const Leaf extended = cpuid(0x80000001, 0);

    if (!all(basic.c, OSXSAVE | AVX)) return CORNU_ISA_PORTABLE;
    const uint64_t saved = saved_state();
    if (!all(saved, 0x6) || !all(basic.c, FMA | MOVBE | POPCNT | F16C) ||
        !all(extended.c, LZCNT) || !all(more.b, BMI1 | BMI2 | AVX2))
        return CORNU_ISA_PORTABLE;
    if (!all(saved, 0xe6) ||
        !all(more.b, AVX512F | AVX512DQ | AVX512CD | AVX512BW | AVX512VL))
        return CORNU_ISA_AVX2;
    if (!all(most.a, AVX512_BF16)) return CORNU_ISA_AVX512;
    if (!all(saved, 0x60000) || !all(more.d, AMX_BF16 | AMX_TILE) || !tiles_granted())
        return CORNU_ISA_AVX512BF16;
    return CORNU_ISA_AMX;
}

static bool has_vnni(CornuIsa best)
{
    enum { AVX512_VNNI = 1 << 11 };   /* leaf 7, c */
    return best >= CORNU_ISA_AVX512 && all(cpuid(7, 0).c, AVX512_VNNI);
}

static bool is_amd(void)
{
    const Leaf     vendor = cpuid(0, 0);
    const unsigned text[] = { vendor.b, vendor.d, vendor.c };
    return memcmp(text, "AuthenticAMD", sizeof text) == 0;
}

/* Zen 4; Zen 3, of the same family 0x19, has no AVX-512. */
static bool halves_of_512(CornuIsa best)
{
    const unsigned signature = cpuid(1, 0).a;
    const unsigned family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
    return best >= CORNU_ISA_AVX512 && is_amd() && family == 0x19;
}

/* Products of bf16 pairs are twice as fast as f32's on AMD's processors (Zen 5, measured) and half
 * as fast on Intel's (Sapphire Rapids, measured: 107 against 217 GFLOP/s a core), but 17 times as
 * fast on tile registers (family 6, model 207, measured: 2950 against 178). */
static CornuIsa preferred_isa(CornuIsa best)
{
    if (best != CORNU_ISA_AVX512BF16) return best;
    return is_amd() ? CORNU_ISA_AVX512BF16 : CORNU_ISA_AVX512;
}

static void read_name(char name[64])
{
    unsigned words[13] = { 0 };
    for (unsigned i = 0; i < 3; i++) {
        const Leaf part = cpuid(0x80000002 + i, 0);
        memcpy(words + 4 * i, &part, sizeof part);
    }
    /* Intel pads at the front, AMD at the end. */
    const char *text = (const char *)words;
    text += strspn(text, " ");
    size_t length = strlen(text);
    while (length && text[length - 1] == ' ') length--;
    if (length) snprintf(name, 64, "%.*s", (int)length, text);
}

#elif defined(__aarch64__)

/* Bits as in Linux' Documentation/arm64/elf_hwcaps.rst. */
static CornuIsa best_isa(void)
{
    enum { ASIMD = 1 << 1, BF16 = 1 << 14 };
    if (!(getauxval(AT_HWCAP) & ASIMD)) return CORNU_ISA_PORTABLE;
    return getauxval(AT_HWCAP2) & BF16 ? CORNU_ISA_NEONBF16 : CORNU_ISA_NEON;
}

static CornuIsa preferred_isa(CornuIsa best) { return best; }
static bool has_vnni(CornuIsa best) { (void)best; return false; }
static bool halves_of_512(CornuIsa best) { (void)best; return false; }

/* Linux only knows numbers: maker, part and revision in register MIDR_EL1. */
static void read_name(char name[64])
{
    char midr[32];
    if (read_line("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", midr, sizeof midr))
        snprintf(name, 64, "arm64 CPU of MIDR %s", midr);
}

#else

static CornuIsa best_isa(void) { return CORNU_ISA_PORTABLE; }
static CornuIsa preferred_isa(CornuIsa best) { return best; }
static bool has_vnni(CornuIsa best) { (void)best; return false; }
static bool halves_of_512(CornuIsa best) { (void)best; return false; }
static void read_name(char name[64]) { (void)name; }

#endif

/* ---- caches ------------------------------------------------------------------------ */

static bool read_cache_fact(int index, const char *name, char fact[32])
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    return read_line(path, fact, 32);
}

static void read_caches(CornuCpu *cpu)
{
    char level[32], type[32], size[32];
    for (int i = 0; read_cache_fact(i, "level", level); i++) {
        if (!read_cache_fact(i, "type", type) || !read_cache_fact(i, "size", size) ||
            strcmp(type, "Instruction") == 0)
            continue;
        char         *unit;
        const int64_t count = strtoll(size, &unit, 10);
        const int64_t bytes = count << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : 0);
        if (bytes <= 0) continue;
        if (level[0] == '1') cpu->l1d = bytes;
        if (level[0] == '2') cpu->l2 = bytes;
        if (level[0] == '3') cpu->l3 = bytes;
    }
}

static CornuCpu this_cpu = { .name = "unknown CPU", .l1d = 32 << 10, .l2 = 512 << 10 };

static void look(void)
{
    this_cpu.best = best_isa();
    this_cpu.preferred = preferred_isa(this_cpu.best);
    this_cpu.vnni = has_vnni(this_cpu.best);
    this_cpu.halves = halves_of_512(this_cpu.best);
    read_name(this_cpu.name);
    read_caches(&this_cpu);
}

const CornuCpu *cornu__cpu(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look);
    return &this_cpu;
}

static _Atomic CornuIsa in_use = CORNU_ISA_COUNT;   /* CORNU_ISA_COUNT: not asked yet */

CornuIsa cornu__isa_in_use(void)
{
    const CornuIsa isa = in_use;
    return isa < CORNU_ISA_COUNT ? isa : cornu__cpu()->preferred;
}

CornuStatus cornu__cpu_isa(CornuIsa *isa)
{
    const CornuIsa best = cornu__cpu()->best;
    const char *wish = getenv("CORNU_ISA");
    *isa = cornu__cpu()->preferred;
    if (!wish || !*wish) {
        in_use = *isa;
        return CORNU_OK;
    }
    for (int i = 0; i < CORNU_ISA_COUNT; i++) {
        if (strcmp(wish, isa_names[i]) != 0) continue;
        if (i > (int)best)
            return cornu__fail(CORNU_ERR_DEVICE,
                               "CORNU_ISA is %s, but this CPU (%s) has at most %s", wish,
                               this_cpu.name, isa_names[best]);
        *isa = (CornuIsa)i;
        in_use = *isa;
        return CORNU_OK;
    }
    char known[64] = "";
    for (int i = 0; i < CORNU_ISA_COUNT; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s",
                 i == 0 ? "" : i + 1 < CORNU_ISA_COUNT ? ", " : " or ", isa_names[i]);
    return cornu__fail(CORNU_ERR_ARGUMENT, "CORNU_ISA is '%s', expected %s", wish, known);
}

/* ---- threads ----------------------------------------------------------------------- */

static int in_processors(double quota, double period)
{
    if (!(quota > 0) || !(period > 0)) return INT_MAX;
    const double share = quota / period;
    if (share >= INT_MAX) return INT_MAX;
    return (int)share + (share > (int)share);
}

/* The quota that one cgroup folder sets: cpu.max "quota period" or "max period" in
 * version 2, cpu.cfs_quota_us (-1 for none) and cpu.cfs_period_us in version 1. */
static int folder_quota(const char *folder)
{
    char path[PATH_MAX + 32], line[64], *end;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (read_line(path, line, sizeof line)) {
        const double quota = cornu__parse_number(line, &end);
        return in_processors(end == line ? -1 : quota, cornu__parse_number(end, NULL));
    }
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_line(path, line, sizeof line)) return INT_MAX;
    const double quota = cornu__parse_number(line, NULL);
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_line(path, line, sizeof line)) return INT_MAX;
    return in_processors(quota, cornu__parse_number(line, NULL));
}

/* Whether a list such as "cpu,cpuacct" names the controller "cpu"; version 2 has
 * no list. */
static bool has_cpu(const char *list)
{
    for (;;) {
        const size_t length = strcspn(list, ",");
        if (length == 3 && memcmp(list, "cpu", 3) == 0) return true;
        if (!list[length]) return false;
        list += length + 1;
    }
}

/* Every folder from a group up to its root may set a quota; the smallest one counts. A container
 * may not see the folder of its group; then only the root is left. */
static int group_quota(const char *root, const char *group)
{
    char folder[PATH_MAX];
    const int length = snprintf(folder, sizeof folder, "%s%s", root, group);
    if (length < 0 || (size_t)length >= sizeof folder) return INT_MAX;
    int least = INT_MAX;
    for (;;) {
        const int quota = folder_quota(folder);
        if (quota < least) least = quota;
        char *last = strrchr(folder, '/');
        if (!last || (size_t)(last - folder) < strlen(root)) return least;
        *last = '\0';
    }
}

int cornu__cpu_quota(const char *membership, const char *mount)
{
    FILE *file = fopen(membership, "r");
    if (!file) return INT_MAX;
    int least = INT_MAX;
    char line[PATH_MAX];
    while (fgets(line, sizeof line, file)) {
        /* "4:cpu,cpuacct:/group" in version 1, "0::/group" in version 2 */
        char *list = strchr(line, ':');
        char *group = list ? strchr(list + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        list++;
        group[strcspn(group, "\n")] = '\0';
        if (*list && !has_cpu(list)) continue;
        char root[PATH_MAX + 64];
        snprintf(root, sizeof root, "%s%s", mount, *list ? "/cpu" : "");
        const int quota = group_quota(root, group);
        if (quota < least) least = quota;
    }
    fclose(file);
    return least;
}

void cornu__boot_id(char *id, size_t size)
{
    read_line("/proc/sys/kernel/random/boot_id", id, size);
}

int cornu__cpu_threads(void)
{
    cpu_set_t allowed[8]; /* 8,192 processors */
    int threads = 1;
    if (sched_getaffinity(0, sizeof allowed, allowed) == 0)
        threads = CPU_COUNT_S(sizeof allowed, allowed);
    const int quota = cornu__cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    if (quota < threads) threads = quota;
    return threads < 1 ? 1 : threads;
}
