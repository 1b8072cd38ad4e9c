/*
 * The pjrt device: recorded programs on real accelerators, and on CPUs, through XLA. A plugin, one
 * shared library per platform, is loaded when the device is opened; README.md says where from.
 */
#include <stdio.h>
#include <string.h>

#include "../host/machine/accelerators.h"
#include "../host/machine/cpu.h"
#include "../memory_internal.h"
#include "../processes/divide_internal.h"
#include "client.h"

/* ---- What the plugin says about itself ---- */

static CornuStatus read_text(const CornuPjrtDevice *device, PjrtFunctionId id, char *to,
                             size_t size)
{
    PjrtClientText text = PJRT_ARGUMENTS(PjrtClientText, .client = device->client);
    CORNU__TRY(cornu__pjrt_call(device->plugin, id, &text));
    cornu__pjrt_copy(to, size, text.text, text.size);
    return CORNU_OK;
}

/* Bytes of memory of the first device, 0 if it does not say. */
static int64_t capacity_of(const CornuPjrtDevice *device)
{
    PjrtDeviceMemoryStats stats = PJRT_ARGUMENTS(PjrtDeviceMemoryStats,
                                                 .device = device->devices[0]);
    return cornu__pjrt_try(device->plugin, PJRT_DEVICE_MEMORY_STATS, &stats) && stats.limit.set
         ? stats.limit.bytes : 0;
}

/* ---- Opening ---- */

static bool has_option(const CornuPjrtName *name, const char *option)
{
    for (int i = 0; i < name->count; i++)
        if (strcmp(name->options[i].name, option) == 0) return true;
    return false;
}

static CornuStatus create_client(CornuPjrtDevice *device, CornuPjrtName *name, int shards)
{
    CornuPjrtLists   lists;
    PjrtNamedValue   values[CORNU_PJRT_OPTIONS + 1];
    int              count = cornu__pjrt_values(name, &lists, values);
    static const char cpus[] = "cpu_device_count";
    PjrtClientCreate create = PJRT_ARGUMENTS(PjrtClientCreate, .options = values);
    /* A processor is as many devices as it is told to be, by the user first; other platforms refuse
     * the option. */
    if (shards > 1 && device->is_cpu && !has_option(name, cpus))
        values[count++] = (PjrtNamedValue)PJRT_ARGUMENTS(PjrtNamedValue, .name = cpus,
            .name_size = sizeof cpus - 1, .type = PJRT_INT64, .value = { .int64 = shards },
            .value_size = 1);
    create.option_count = (size_t)count;
    CORNU__TRY(cornu__pjrt_call(device->plugin, PJRT_CLIENT_CREATE, &create));
    device->client = create.client;
    return CORNU_OK;
}

static void destroy_client(CornuPjrtDevice *device)
{
    PjrtClientDestroy destroy = PJRT_ARGUMENTS(PjrtClientDestroy, .client = device->client);
    if (device->client) cornu__pjrt_try(device->plugin, PJRT_CLIENT_DESTROY, &destroy);
    device->client = NULL;
}

/* The devices of `shards` replicas. 0: of all, or of one processor, which says it is several. */
static CornuStatus find_devices(CornuPjrtDevice *device, const char *name, int shards)
{
    PjrtClientDevices devices = PJRT_ARGUMENTS(PjrtClientDevices, .client = device->client);
    CORNU__TRY(cornu__pjrt_call(device->plugin, PJRT_CLIENT_ADDRESSABLE_DEVICES, &devices));
    if (shards == 0 && device->is_cpu) shards = 1;
    CORNU__TRY(cornu__pjrt_replicas(device, name, devices.count, shards));
    for (int i = 0; i < device->base.shards; i++) {
        PjrtDeviceGetDescription get = PJRT_ARGUMENTS(PjrtDeviceGetDescription,
                                                      .device = devices.devices[i]);
        device->devices[i] = devices.devices[i];
        CORNU__TRY(cornu__pjrt_call(device->plugin, PJRT_DEVICE_GET_DESCRIPTION, &get));
        CORNU__TRY(cornu__pjrt_describe(device, i, get.description));
    }
    return CORNU_OK;
}

static CornuStatus open_client(CornuPjrtDevice *device, const char *device_name,
                               CornuPjrtName *name, int shards)
{
    /* Only a client knows its platform: it is asked first with the options that all take. */
    CORNU__TRY(create_client(device, name, 1));
    CORNU__TRY(read_text(device, PJRT_CLIENT_PLATFORM_NAME, device->platform,
                         sizeof device->platform));
    CORNU__TRY(read_text(device, PJRT_CLIENT_PLATFORM_VERSION, device->version,
                         sizeof device->version));
    device->is_cpu = strcmp(device->platform, "cpu") == 0;
    if (shards > 1 && device->is_cpu) {
        destroy_client(device);
        CORNU__TRY(create_client(device, name, shards));
    }
    CORNU__TRY(find_devices(device, device_name, shards));
    device->base.memory.capacity = capacity_of(device);
    return CORNU_OK;
}

/* Plugins that look for what is not there take long, or print. */
static CornuStatus check_hardware(const char *device_name, const char *plugin, const char *path)
{
    if (strcmp(plugin, "tpu") == 0 && !cornu__has_tpu())
        return cornu__fail(CORNU_ERR_DEVICE, "device \"%s\": libtpu is there, %s, but this machine "
                           "has no TPU; \"pjrt:tpu,topology=v3:2x2\" compiles without one",
                           device_name, path);
    if (strcmp(plugin, "cuda") == 0 && !cornu__has_gpu())
        return cornu__fail(CORNU_ERR_DEVICE, "device \"%s\": the plugin is there, %s, but this "
                           "machine has no NVIDIA GPU, or no driver for it; "
                           "\"pjrt:cuda,topology=h100\" compiles without one", device_name, path);
    return CORNU_OK;
}

/* An option of ours, off unless it is given. */
static CornuStatus take_switch(CornuPjrtName *name, const char *device_name, const char *option,
                               bool *on)
{
    const char *value = cornu__pjrt_take(name, option);
    *on = value && strcmp(value, "true") == 0;
    if (!value || *on || strcmp(value, "false") == 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_DEVICE, "device \"%s\": %s is \"%s\", expected true or false",
                       device_name, option, value);
}

static CornuStatus open_plugin(CornuPjrtDevice *device, const CornuDeviceConfig *config)
{
    CornuPjrtName name;
    char          path[CORNU_PJRT_PATH];
    bool          deterministic;
    CORNU__TRY(cornu__expect_one_process(config));
    CORNU__TRY(cornu__pjrt_parse(config->name, &name));
    CORNU__TRY(cornu__pjrt_find(name.plugin, path));
    CORNU__TRY(cornu__pjrt_load(path, &device->plugin));
    CORNU__TRY(take_switch(&name, config->name, "deterministic", &deterministic));
    const char *topology = cornu__pjrt_take(&name, "topology");
    if (!topology) CORNU__TRY(check_hardware(config->name, name.plugin, path));
    CORNU__TRY(topology ? cornu__pjrt_open_topology(device, topology, &name, config->shards)
                        : open_client(device, config->name, &name, config->shards));
    device->is_gpu = strcmp(device->platform, "cuda") == 0 || strcmp(device->platform, "rocm") == 0;
    device->target = (CornuTarget){ .shards = device->base.shards,
                                    .widens_products = device->is_cpu,
                                    .narrow_convolutions = device->is_gpu,
                                    .deterministic = deterministic,
                                    .precision = config->precision };
    device->base.threads = config->threads ? config->threads : cornu__cpu_threads();
    return CORNU_OK;
}

static CornuDevice *pjrt_open(const CornuDeviceConfig *config)
{
    CornuPjrtDevice *device = cornu__allocate(1, sizeof *device);
    if (!device) return NULL;
    if (open_plugin(device, config) != CORNU_OK) {
        destroy_client(device);
        cornu__pjrt_close_topology(device);
        cornu__release(device);
        return NULL;
    }
    if (strcmp(device->platform, "tpu") == 0) device->base.policy = "mixed_bfloat16";
    const bool is_highest = config->precision == CORNU_PRECISION_HIGHEST;
    snprintf(device->base.description, sizeof device->base.description,
             "pjrt: %.16s, %.63s | %.40s%s%.60s%s%s | %d replica%s%s", device->platform,
             device->kind, device->version, *device->version ? " | " : "",
             device->plugin->versions, is_highest ? "" : " | precision ",
             is_highest ? "" : cornu_precision_name(config->precision), device->base.shards,
             device->base.shards == 1 ? "" : "s", device->topology ? " | compiles only" : "");
    return &device->base;
}

static void pjrt_close(CornuDevice *base)
{
    CornuPjrtDevice *device = cornu__pjrt_of(base);
    destroy_client(device);
    cornu__pjrt_close_topology(device);
    cornu__release(device);
}

const CornuDeviceClass cornu__pjrt_device = {
    .name = "pjrt",
    .has_profiles = true,
    .has_precisions = true,
    .most_shards = CORNU_PJRT_REPLICAS,
    .shards_at_once = true,
    .open = pjrt_open,
    .close = pjrt_close,
    .buffer_create = cornu__pjrt_buffer_create,
    .buffer_free = cornu__pjrt_buffer_free,
    .buffer_write = cornu__pjrt_buffer_write,
    .buffer_read = cornu__pjrt_buffer_read,
    .compile = cornu__pjrt_compile,
    .run = cornu__pjrt_run,
    .collect = cornu__pjrt_collect,
    .flush = cornu__pjrt_flush,
    .wait = cornu__pjrt_wait,
    .place = cornu__pjrt_place,
    .figures = cornu__pjrt_figures,
    .executable_free = cornu__pjrt_executable_free,
};
