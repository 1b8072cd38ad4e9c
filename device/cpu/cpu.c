/*
 * The cpu device: float32 on this machine's threads, some products with BLIS (table.c), everything
 * else with the kernels that host devices share.
 */
#include <stdio.h>

#include "../host/kernels/kernels.h"
#include "../host/machine/cpu.h"
#include "../host/run/executor.h"
#include "../memory_internal.h"
#include "../processes/divide_internal.h"
#include "kernels.h"

typedef struct {
    CornuDevice base;
    CornuHost   host;
} Device;

static void cpu_close(CornuDevice *base)
{
    Device *device = (Device *)base;
    cornu__threads_free(device->host.threads);
    if (cornu__cpu_library) cornu__cpu_library->close(base->threads);
    cornu__release(device);
}

/* "BLIS 0.9.0 skx | ", or "" */
static void describe_library(char *text, size_t size)
{
    const CornuCpuLibrary *library = cornu__cpu_library;
    text[0] = '\0';
    if (library)
        snprintf(text, size, "%s %s %s | ", library->name, library->version(), library->kernels());
}

static CornuDevice *cpu_open(const CornuDeviceConfig *config)
{
    CornuIsa   isa;
    CornuRange own;
    int        threads;
    CornuProcesses *processes;
    if (cornu__cpu_isa(&isa) || cornu__divide_shards(config, config->shards, &own) ||
        cornu__program_processes(config, &processes) ||
        cornu__divide_threads(config, &threads) ||
        (cornu__cpu_library && cornu__cpu_library->open(threads)))
        return NULL;
    Device *device = cornu__allocate(1, sizeof *device);
    if (!device) goto fail;
    device->host = (CornuHost){ .kernels = { cornu__cpu_kernels, cornu__host_kernels },
                                .vectors = cornu__vectors(),
                                .threads = cornu__threads_create(threads),
                                .shards = config->shards,
                                .own = own, .processes = processes };
    if (!device->host.threads) goto fail;
    device->base.threads = threads;
    device->base.shards = config->shards;
    device->base.own = own;
    char library[64];
    describe_library(library, sizeof library);
    snprintf(device->base.description, sizeof device->base.description,
             "cpu: %s | %s | %s%d thread%s", cornu__cpu()->name, cornu__isa_name(isa), library,
             threads, threads == 1 ? "" : "s");
    if (cornu__agree_on_device(config, &device->base) == CORNU_OK) return &device->base;
    cpu_close(&device->base);
    return NULL;
fail:
    cornu__release(device);
    if (cornu__cpu_library) cornu__cpu_library->close(threads);
    return NULL;
}

static CornuExecutable *cpu_compile(CornuDevice *base, const CornuProgram *program)
{
    return cornu__host_compile(&((Device *)base)->host, program);
}

static CornuStatus cpu_place(const CornuDevice *base, const CornuProgram *program,
                             const CornuProgramOp *op, CornuPlacement *out)
{
    return cornu__host_place(&((const Device *)base)->host, program, op, out);
}

const CornuDeviceClass cornu__cpu_device = {
    .name = "cpu",
    .most_shards = CORNU_MAX_SHARDS,
    .open = cpu_open,
    .close = cpu_close,
    .buffer_create = cornu__host_buffer_create,
    .buffer_free = cornu__host_buffer_free,
    .buffer_write = cornu__host_buffer_write,
    .buffer_read = cornu__host_buffer_read,
    .buffer_data = cornu__host_buffer_data,
    .buffer_keep = cornu__host_buffer_keep,
    .buffer_deal = cornu__host_buffer_deal,
    .compile = cpu_compile,
    .twin = cornu__host_twin,
    .allocate = cornu__host_allocate,
    .fix = cornu__host_fix,
    .run = cornu__host_run,
    .place = cpu_place,
    .declined = cornu__host_declined,
    .exchanges = cornu__host_exchanges,
    .executable_free = cornu__host_executable_free,
};
