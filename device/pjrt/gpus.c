/*
 * Figures of NVIDIA's GPUs.
 *
 * Sources: of an architecture, the CUDA C++ Programming Guide, appendix "Compute Capabilities",
 * table "Technical Specifications per Compute Capability"; of a GPU, NVIDIA's data sheets and
 * architecture white papers (Turing, A100, GA102, Ada, Hopper), for the L2 cache of B200 the
 * Blackwell Tuning Guide, and for its multiprocessors and clock what its driver tells. Clocks are
 * the boost clock, which is also the data sheet's peak of float32 / (2 x cores). Memory is what the
 * data sheet names, in GiB; the driver keeps 1 to 2 % of it, and 6 % of GDDR6 for error correction.
 *
 * Older GPUs are absent, since plugins of 2026 end the process when they compile for compute
 * capability 7.0.
 *
 * The text is a GpuTargetConfigProto in protobuf's text format (xla/stream_executor/
 * device_description.proto), with fields that plugins of 2024 know already: an unknown one is an
 * error to them.
 */
#include "gpus.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../memory_internal.h"
#include "../open.h"
#include "../text/nearest.h"
#include "../text/print.h"

enum { MOST_TEXT = 2048, MOST_FILE = 1 << 20 };

/* An architecture. All have 65536 registers, 1024 threads in a block, and 48 KiB of shared memory
 * for a block that does not ask for more. */
typedef struct {
    int major, minor;            /* compute capability */
    int threads, cores;          /* of a multiprocessor: resident threads, float32 units */
    int shared_kib, block_kib;   /* shared memory of a multiprocessor, of a block at most */
} Architecture;

static const Architecture turing = { 7, 5, 1024, 64, 64, 64 },
    ampere = { 8, 0, 2048, 64, 164, 163 }, ampere_graphics = { 8, 6, 1536, 128, 100, 99 },
    ada = { 8, 9, 1536, 128, 100, 99 }, hopper = { 9, 0, 2048, 128, 228, 227 },
    blackwell = { 10, 0, 2048, 128, 228, 227 };

static const struct {
    const char         *name, *full_name;
    const Architecture *architecture;
    int                 multiprocessors, l2_mib, memory_gib;
    double              gb_per_s, clock_ghz;
} gpus[] = {
    { "t4",        "NVIDIA T4",              &turing,          40,   4,  16,  320.0, 1.590 },
    { "a100",      "NVIDIA A100 SXM4 40GB",  &ampere,         108,  40,  40, 1555.0, 1.410 },
    { "a100-80gb", "NVIDIA A100 SXM4 80GB",  &ampere,         108,  40,  80, 2039.0, 1.410 },
    { "a10",       "NVIDIA A10",             &ampere_graphics, 72,   6,  24,  600.0, 1.695 },
    { "l4",        "NVIDIA L4",              &ada,             58,  48,  24,  300.0, 2.040 },
    { "l40s",      "NVIDIA L40S",            &ada,            142,  96,  48,  864.0, 2.520 },
    { "h100",      "NVIDIA H100 SXM5 80GB",  &hopper,         132,  50,  80, 3350.0, 1.980 },
    { "h200",      "NVIDIA H200 SXM5 141GB", &hopper,         132,  50, 141, 4800.0, 1.980 },
    { "b200",      "NVIDIA B200 180GB",      &blackwell,      148, 126, 180, 7700.0, 1.965 },
};
enum { GPU_COUNT = sizeof gpus / sizeof *gpus };

const char *cornu__pjrt_gpu_at(int i) { return i >= 0 && i < GPU_COUNT ? gpus[i].name : NULL; }

static CornuStatus fail_unknown(const char *name)
{
    char        list[256];
    const char *known[GPU_COUNT];
    for (int i = 0; i < GPU_COUNT; i++) known[i] = gpus[i].name;
    return cornu__fail(CORNU_ERR_DEVICE, "GPU \"%s\" is unknown, expected %s, or a file that "
                       "describes one, with a \"/\" in its path", name,
                       cornu_nearest_first(list, sizeof list, name, known, GPU_COUNT));
}

CornuStatus cornu__pjrt_gpu_target(const char *name, char **target)
{
    const long long kib = 1024, mib = 1024 * kib, gib = 1024 * mib;
    int             g = 0;
    while (g < GPU_COUNT && strcmp(gpus[g].name, name) != 0) g++;
    if (g == GPU_COUNT) return fail_unknown(name);
    const Architecture *is = gpus[g].architecture;
    if (!(*target = cornu__allocate(MOST_TEXT, 1))) return CORNU_ERR_MEMORY;
    cornu__format(*target, MOST_TEXT,
        "gpu_device_info {\n"
        "  cuda_compute_capability { major: %d minor: %d }\n"
        "  core_count: %d\n"
        "  fpus_per_core: %d\n"
        "  clock_rate_ghz: %.3f\n"
        "  threads_per_warp: 32\n"
        "  threads_per_block_limit: 1024\n"
        "  threads_per_core_limit: %d\n"
        "  block_dim_limit_x: 2147483647\n"
        "  block_dim_limit_y: 65535\n"
        "  block_dim_limit_z: 65535\n"
        "  registers_per_core_limit: 65536\n"
        "  registers_per_block_limit: 65536\n"
        "  shared_memory_per_core: %lld\n"
        "  shared_memory_per_block: %lld\n"
        "  shared_memory_per_block_optin: %lld\n"
        "  l2_cache_size: %lld\n"
        "  device_memory_size: %lld\n"
        "  memory_bandwidth: %.0f\n"
        "}\n"
        "platform_name: \"CUDA\"\n"
        "dnn_version_info { major: 9 minor: 10 }\n"
        "device_description_str: \"%s\"\n",
        is->major, is->minor, gpus[g].multiprocessors, is->cores, gpus[g].clock_ghz, is->threads,
        is->shared_kib * kib, 48 * kib, is->block_kib * kib, gpus[g].l2_mib * mib,
        gpus[g].memory_gib * gib, gpus[g].gb_per_s * 1e9, gpus[g].full_name);
    return CORNU_OK;
}

CornuStatus cornu__pjrt_read_target(const char *path, char **target)
{
    FILE *file;
    CORNU__TRY(cornu__open_to_read(path, &file));
    char        *text = cornu__allocate(MOST_FILE + 1, 1);
    const size_t size = text ? fread(text, 1, MOST_FILE + 1, file) : 0;
    CornuStatus  status = text ? CORNU_OK : CORNU_ERR_MEMORY;
    if (text && ferror(file))
        status = cornu__fail(CORNU_ERR_FILE, "%s: cannot be read", path);
    else if (size > MOST_FILE)
        status = cornu__fail(CORNU_ERR_FILE, "%s: more than %d bytes, expected the description of "
                             "a GPU", path, MOST_FILE);
    fclose(file);
    if (status) cornu__release(text);
    else *target = text;   /* which ends with a zero */
    return status;
}

int64_t cornu__pjrt_target_memory(const char *target)
{
    static const char field[] = "device_memory_size:";
    const char       *at = strstr(target, field);
    return at ? strtoll(at + sizeof field - 1, NULL, 10) : 0;
}
