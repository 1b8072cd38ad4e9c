/*
 * The tpu device: matrix products of bf16 with f32 sums, emulated on this CPU; everything else runs
 * on the kernels that host devices share.
 */
#include <stdio.h>
#include <string.h>

#include "../host/kernels/kernels.h"
#include "../host/machine/cpu.h"
#include "../host/run/executor.h"
#include "../host/isa/product.h"
#include "../memory_internal.h"
#include "../processes/divide_internal.h"
#include "topology.h"

typedef struct {
    CornuDevice base;
    CornuHost   host;
} Device;

static void tpu_close(CornuDevice *base)
{
    Device *device = (Device *)base;
    cornu__threads_free(device->host.threads);
    cornu__release(device);
}

static CornuDevice *tpu_open(const CornuDeviceConfig *config)
{
    CornuIsa    isa;
    CornuRange  own;
    int         threads;
    const char *colon = strchr(config->name, ':');
    const CornuTpuProfile *profile = cornu_tpu_profile(colon ? colon + 1 : NULL);
    if (!profile) return NULL;
    const int shards = config->shards ? config->shards : (int)profile->shards.value;
    CornuProcesses *processes;
    if (cornu__cpu_isa(&isa) || cornu__divide_shards(config, shards, &own) ||
        cornu__program_processes(config, &processes) ||
        cornu__divide_threads(config, &threads))
        return NULL;
    Device *device = cornu__allocate(1, sizeof *device);
    if (!device) return NULL;
    device->host = (CornuHost){ .kernels = { cornu__host_kernels },
                                .multiplier = { true, config->precision },
                                .vectors = cornu__vectors(),
                                .threads = cornu__threads_create(threads), .shards = shards,
                                .own = own, .processes = processes };
    if (!device->host.threads) {
        cornu__release(device);
        return NULL;
    }
    device->base.threads = threads;
    device->base.shards = shards;
    device->base.own = own;
    device->base.profile = profile->name;
    device->base.policy = "mixed_bfloat16";
    device->base.memory.capacity = (int64_t)cornu_tpu_replica_hbm(profile);
    snprintf(device->base.description, sizeof device->base.description,
             "tpu: emulated %s on %s | %s%s%s%s | %d shard%s | %d thread%s", profile->name,
             cornu__cpu()->name, cornu__isa_name(isa),
             cornu__products_of_bf16()->depth == 1 ? ", bf16 multiplied as f32" : "",
             config->precision == CORNU_PRECISION_HIGHEST ? "" : " | precision ",
             config->precision == CORNU_PRECISION_HIGHEST
                 ? "" : cornu_precision_name(config->precision),
             shards, shards == 1 ? "" : "s", threads, threads == 1 ? "" : "s");
    if (cornu__agree_on_device(config, &device->base) == CORNU_OK) return &device->base;
    tpu_close(&device->base);
    return NULL;
}

static CornuExecutable *tpu_compile(CornuDevice *base, const CornuProgram *program)
{
    return cornu__host_compile(&((Device *)base)->host, program);
}

static CornuStatus tpu_place(const CornuDevice *base, const CornuProgram *program,
                             const CornuProgramOp *op, CornuPlacement *out)
{
    return cornu__host_place(&((const Device *)base)->host, program, op, out);
}

const CornuDeviceClass cornu__tpu_device = {
    .name = "tpu",
    .has_profiles = true,
    .has_precisions = true,
    .most_shards = CORNU_MAX_SHARDS,
    .open = tpu_open,
    .close = tpu_close,
    .buffer_create = cornu__host_buffer_create,
    .buffer_free = cornu__host_buffer_free,
    .buffer_write = cornu__host_buffer_write,
    .buffer_read = cornu__host_buffer_read,
    .buffer_data = cornu__host_buffer_data,
    .buffer_keep = cornu__host_buffer_keep,
    .buffer_deal = cornu__host_buffer_deal,
    .compile = tpu_compile,
    .twin = cornu__host_twin,
    .allocate = cornu__host_allocate,
    .fix = cornu__host_fix,
    .run = cornu__host_run,
    .place = tpu_place,
    .declined = cornu__host_declined,
    .exchanges = cornu__host_exchanges,
    .executable_free = cornu__host_executable_free,
};
