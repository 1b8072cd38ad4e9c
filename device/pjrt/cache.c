#define _POSIX_C_SOURCE 200809L    /* st_mtim */

#include "cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../system/clock_internal.h"
#include "../host/machine/cpu.h"
#include "../log_internal.h"
#include "../memory_internal.h"

/* ---- The key ---- */

/* Each piece with its length: no two lists of pieces have the same bytes. */
static void hash_bytes(CornuSha256 *sum, const void *bytes, size_t size)
{
    const uint64_t length = size;
    cornu__sha256_add(sum, &length, sizeof length);
    cornu__sha256_add(sum, bytes, size);
}

static void add_text(CornuSha256 *sum, const char *text) { hash_bytes(sum, text, strlen(text)); }

static void add_number(CornuSha256 *sum, int64_t number)
{
    hash_bytes(sum, &number, sizeof number);
}

/* Packages are updated in place: the path alone would not tell. */
static void add_plugin(CornuSha256 *sum, const CornuPjrtDevice *device)
{
    struct stat    file = { .st_size = 0 };
    PjrtClientText version = PJRT_ARGUMENTS(PjrtClientText, .client = device->client);
    stat(device->plugin->path, &file);
    add_text(sum, device->plugin->path);
    add_number(sum, file.st_size);
    add_number(sum, file.st_mtim.tv_sec);
    add_number(sum, file.st_mtim.tv_nsec);
    add_text(sum, device->plugin->versions);
    add_text(sum, device->platform);
    add_text(sum, device->kind);
    if (cornu__pjrt_try(device->plugin, PJRT_CLIENT_PLATFORM_VERSION, &version))
        hash_bytes(sum, version.text, version.size);   /* all of it: device->version may be cut */
}

/* XLA compiles for the host: its model, the features that the system or a hypervisor leaves of it,
 * and loops divided among its threads. */
static void add_processor(CornuSha256 *sum)
{
    static const char *const wanted[] = { "flags", "Features", "isa" };   /* x86, Arm, RISC-V */
    char  line[8192];
    FILE *file = fopen("/proc/cpuinfo", "re");
    add_text(sum, cornu__cpu()->name);
    add_text(sum, cornu__isa_name(cornu__cpu()->best));
    add_number(sum, cornu__cpu_threads());
    for (bool found = false; file && !found && fgets(line, sizeof line, file); )
        for (size_t i = 0; !found && i < sizeof wanted / sizeof *wanted; i++) {
            const size_t length = strlen(wanted[i]);
            found = strncmp(line, wanted[i], length) == 0 && strchr("\t :", line[length]);
            if (found) add_text(sum, line);
        }
    if (file) fclose(file);
}

static void add_environment(CornuSha256 *sum)
{
    static const char *const names[] = { "XLA_FLAGS", "LIBTPU_INIT_ARGS", "NVIDIA_TF32_OVERRIDE" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        add_text(sum, value ? value : "");
    }
}

void cornu__pjrt_cache_open(CornuPjrtCache *cache, const CornuPjrtDevice *device,
                            const PjrtProgram *program, const CornuPjrtOptions *options)
{
    CornuSha256 sum;
    cache->device = device;
    cache->key[0] = '\0';
    cornu__pjrt_folder_open(&cache->folder);
    if (cache->folder.descriptor < 0) return;
    if (!cornu__pjrt_has(device->plugin, PJRT_EXECUTABLE_SERIALIZE) ||
        !cornu__pjrt_has(device->plugin, PJRT_DESERIALIZE_AND_LOAD)) {
        cornu__log(CORNU_LOG_DEBUG, "pjrt: the plugin cannot serialize compiled programs");
        cornu__pjrt_folder_close(&cache->folder);
        return;
    }
    cornu__sha256_begin(&sum);
    add_text(&sum, "cornu pjrt key 1");
    hash_bytes(&sum, program->format, program->format_size);
    hash_bytes(&sum, program->code, program->code_size);
    hash_bytes(&sum, options->bytes, options->size);
    add_plugin(&sum, device);
    add_environment(&sum);
    if (device->is_cpu) add_processor(&sum);
    cornu__sha256_end(&sum, cache->key);
}

void cornu__pjrt_cache_close(CornuPjrtCache *cache) { cornu__pjrt_folder_close(&cache->folder); }

/* ---- Programs ---- */

PjrtLoaded *cornu__pjrt_cache_load(const CornuPjrtCache *cache)
{
    const double begin = cornu__seconds();
    size_t       size;
    void        *bytes = cornu__pjrt_folder_read(&cache->folder, cache->key, &size);
    if (!bytes) return NULL;
    PjrtDeserializeAndLoad call = PJRT_ARGUMENTS(PjrtDeserializeAndLoad,
        .client = cache->device->client, .bytes = bytes, .size = size);
    if (cornu__pjrt_call(cache->device->plugin, PJRT_DESERIALIZE_AND_LOAD, &call) == CORNU_OK) {
        cornu__log(CORNU_LOG_INFO, "pjrt: read a compiled program, %s/%s: %zu bytes, %.2f s",
                   cache->folder.path, cache->key, size, cornu__seconds() - begin);
    } else {
        cornu__log(CORNU_LOG_WARNING, "pjrt: the plugin refuses %s/%s: it is removed, and its "
                   "program compiled again: %s", cache->folder.path, cache->key,
                   cornu_error_message());
        cornu_error_take();
        cornu__pjrt_folder_remove(&cache->folder, cache->key);
        call.loaded = NULL;
    }
    cornu__release(bytes);
    return call.loaded;
}

void cornu__pjrt_cache_store(const CornuPjrtCache *cache, PjrtLoaded *loaded)
{
    const CornuPjrtPlugin  *plugin = cache->device->plugin;
    PjrtLoadedGetExecutable get = PJRT_ARGUMENTS(PjrtLoadedGetExecutable, .loaded = loaded);
    if (cache->folder.descriptor < 0 ||
        !cornu__pjrt_try(plugin, PJRT_LOADED_GET_EXECUTABLE, &get))
        return;
    PjrtExecutableSerialize call = PJRT_ARGUMENTS(PjrtExecutableSerialize,
                                                  .executable = get.executable);
    PjrtExecutableDestroy   destroy = PJRT_ARGUMENTS(PjrtExecutableDestroy,
                                                     .executable = get.executable);
    if (cornu__pjrt_call(plugin, PJRT_EXECUTABLE_SERIALIZE, &call) == CORNU_OK) {
        cornu__pjrt_folder_write(&cache->folder, cache->key, call.bytes, call.size);
        if (call.release) call.release(call.owner);
    } else {
        cornu__log(CORNU_LOG_DEBUG, "pjrt: a compiled program is not kept: %s",
                   cornu_error_message());
        cornu_error_take();
    }
    cornu__pjrt_try(plugin, PJRT_EXECUTABLE_DESTROY, &destroy);
}
