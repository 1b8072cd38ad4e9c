/* Loading plugins and calling their functions. */
#define _XOPEN_SOURCE 700    /* setenv */

#include "plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../log_internal.h"
#include "../host/machine/accelerators.h"

/* Functions and fields have only been appended since 0.57. */
enum { MAJOR = 0, OLDEST_MINOR = 57, MOST_PLUGINS = 32 };

/* ---- Calls ---- */

static const char *const names[] = {
    [PJRT_ERROR_DESTROY] = "PJRT_Error_Destroy",
    [PJRT_ERROR_MESSAGE] = "PJRT_Error_Message",
    [PJRT_ERROR_GET_CODE] = "PJRT_Error_GetCode",
    [PJRT_PLUGIN_INITIALIZE] = "PJRT_Plugin_Initialize",
    [PJRT_PLUGIN_ATTRIBUTES] = "PJRT_Plugin_Attributes",
    [PJRT_EVENT_DESTROY] = "PJRT_Event_Destroy",
    [PJRT_EVENT_AWAIT] = "PJRT_Event_Await",
    [PJRT_CLIENT_CREATE] = "PJRT_Client_Create",
    [PJRT_CLIENT_DESTROY] = "PJRT_Client_Destroy",
    [PJRT_CLIENT_PLATFORM_NAME] = "PJRT_Client_PlatformName",
    [PJRT_CLIENT_PLATFORM_VERSION] = "PJRT_Client_PlatformVersion",
    [PJRT_CLIENT_ADDRESSABLE_DEVICES] = "PJRT_Client_AddressableDevices",
    [PJRT_CLIENT_COMPILE] = "PJRT_Client_Compile",
    [PJRT_CLIENT_BUFFER_FROM_HOST] = "PJRT_Client_BufferFromHostBuffer",
    [PJRT_DESCRIPTION_ID] = "PJRT_DeviceDescription_Id",
    [PJRT_DESCRIPTION_KIND] = "PJRT_DeviceDescription_Kind",
    [PJRT_DEVICE_GET_DESCRIPTION] = "PJRT_Device_GetDescription",
    [PJRT_DEVICE_MEMORY_STATS] = "PJRT_Device_MemoryStats",
    [PJRT_EXECUTABLE_DESTROY] = "PJRT_Executable_Destroy",
    [PJRT_EXECUTABLE_COST_ANALYSIS] = "PJRT_Executable_GetCostAnalysis",
    [PJRT_EXECUTABLE_OPTIMIZED_PROGRAM] = "PJRT_Executable_OptimizedProgram",
    [PJRT_EXECUTABLE_SERIALIZE] = "PJRT_Executable_Serialize",
    [PJRT_LOADED_DESTROY] = "PJRT_LoadedExecutable_Destroy",
    [PJRT_LOADED_GET_EXECUTABLE] = "PJRT_LoadedExecutable_GetExecutable",
    [PJRT_LOADED_EXECUTE] = "PJRT_LoadedExecutable_Execute",
    [PJRT_DESERIALIZE_AND_LOAD] = "PJRT_Executable_DeserializeAndLoad",
    [PJRT_BUFFER_DESTROY] = "PJRT_Buffer_Destroy",
    [PJRT_BUFFER_TO_HOST] = "PJRT_Buffer_ToHostBuffer",
    [PJRT_BUFFER_READY_EVENT] = "PJRT_Buffer_ReadyEvent",
    [PJRT_TOPOLOGY_CREATE] = "PJRT_TopologyDescription_Create",
    [PJRT_TOPOLOGY_DESTROY] = "PJRT_TopologyDescription_Destroy",
    [PJRT_TOPOLOGY_PLATFORM_NAME] = "PJRT_TopologyDescription_PlatformName",
    [PJRT_TOPOLOGY_DESCRIPTIONS] = "PJRT_TopologyDescription_GetDeviceDescriptions",
    [PJRT_COMPILE] = "PJRT_Compile",
    [PJRT_EXECUTABLE_MEMORY_STATS] = "PJRT_Executable_GetCompiledMemoryStats",
};

/* Those of abseil, absl/status/status.h. */
static const char *const codes[] = {
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
    "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
    "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
};

static const char *name_of(PjrtFunctionId id)
{
    const char *name = (size_t)id < sizeof names / sizeof *names ? names[id] : NULL;
    return name ? name : "unknown function";
}

static bool api_has(const PjrtApi *api, PjrtFunctionId id)
{
    const size_t end = offsetof(PjrtApi, function) + ((size_t)id + 1) * sizeof *api->function;
    return end <= api->head.size && api->function[id];
}

bool cornu__pjrt_has(const CornuPjrtPlugin *plugin, PjrtFunctionId id)
{
    return api_has(plugin->api, id);
}

/* For the two functions of errors that return nothing. */
static void plugin_run(const PjrtApi *api, PjrtFunctionId id, void *arguments)
{
    typedef void Procedure(void *arguments);
    void (*const function)(void) = (void (*)(void))api->function[id];
    ((Procedure *)function)(arguments);
}

static void destroy_error(const PjrtApi *api, PjrtError *error)
{
    PjrtErrorDestroy destroy = PJRT_ARGUMENTS(PjrtErrorDestroy, .error = error);
    if (error) plugin_run(api, PJRT_ERROR_DESTROY, &destroy);
}

/* Destroys the error. */
static CornuStatus fail(const PjrtApi *api, PjrtFunctionId id, PjrtError *error)
{
    PjrtErrorGetCode code = PJRT_ARGUMENTS(PjrtErrorGetCode, .error = error);
    PjrtErrorMessage message = PJRT_ARGUMENTS(PjrtErrorMessage, .error = error);
    destroy_error(api, api->function[PJRT_ERROR_GET_CODE](&code));
    plugin_run(api, PJRT_ERROR_MESSAGE, &message);
    const bool   known = (size_t)code.code < sizeof codes / sizeof *codes;
    const size_t size = message.message ? message.size : 0;
    CornuStatus  status = code.code == PJRT_RESOURCE_EXHAUSTED ? CORNU_ERR_MEMORY
                        : code.code == PJRT_UNIMPLEMENTED      ? CORNU_ERR_UNSUPPORTED
                                                               : CORNU_ERR_DEVICE;
    status = cornu__fail(status, "pjrt: %s: %d %s: %.*s", name_of(id), code.code,
                         known ? codes[code.code] : "unknown code",
                         (int)(size < CORNU_MESSAGE_SIZE ? size : CORNU_MESSAGE_SIZE),
                         size ? message.message : "");
    destroy_error(api, error);
    return status;
}

static CornuStatus plugin_call(const PjrtApi *api, PjrtFunctionId id, void *arguments)
{
    if (!api_has(api, id))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "pjrt: the plugin (API %d.%d) has no %s",
                           api->version.major, api->version.minor, name_of(id));
    PjrtError *error = api->function[id](arguments);
    return error ? fail(api, id, error) : CORNU_OK;
}

CornuStatus cornu__pjrt_call(const CornuPjrtPlugin *plugin, PjrtFunctionId id, void *arguments)
{
    return plugin_call(plugin->api, id, arguments);
}

static bool try(const PjrtApi *api, PjrtFunctionId id, void *arguments)
{
    if (!api_has(api, id)) return false;
    PjrtError *error = api->function[id](arguments);
    if (error) destroy_error(api, error);
    return !error;
}

bool cornu__pjrt_try(const CornuPjrtPlugin *plugin, PjrtFunctionId id, void *arguments)
{
    return try(plugin->api, id, arguments);
}

CornuStatus cornu__pjrt_await(const CornuPjrtPlugin *plugin, PjrtEvent *event)
{
    if (!event) return CORNU_OK;
    PjrtEventCall     await = PJRT_ARGUMENTS(PjrtEventCall, .event = event);
    PjrtEventCall     again = await, destroy = await;
    const CornuStatus status = cornu__pjrt_call(plugin, PJRT_EVENT_AWAIT, &await);
    if (status == CORNU_OK) return cornu__pjrt_call(plugin, PJRT_EVENT_DESTROY, &destroy);
    /* An event that came with an error is ready, and answers at once. Where the call itself
     * failed, what the event stands for may still write to the caller's memory. */
    cornu__pjrt_try(plugin, PJRT_EVENT_AWAIT, &again);
    cornu__pjrt_try(plugin, PJRT_EVENT_DESTROY, &destroy);   /* the first failure is told */
    return status;
}

/* ---- Loading ---- */

static CornuStatus check_version(const char *path, const PjrtApi *api)
{
    static const PjrtFunctionId needed[] = { PJRT_ERROR_DESTROY, PJRT_ERROR_MESSAGE,
                                             PJRT_ERROR_GET_CODE, PJRT_PLUGIN_INITIALIZE };
    if (api->head.size < offsetof(PjrtApi, function))
        return cornu__fail(CORNU_ERR_DEVICE, "%s: GetPjrtApi returns a table of %zu bytes, which "
                           "has no version", path, api->head.size);
    if (api->version.major != MAJOR || api->version.minor < OLDEST_MINOR)
        return cornu__fail(CORNU_ERR_DEVICE, "%s has version %d.%d of the PJRT API, expected %d.%d "
                           "or a later %d.x; install %s plugin", path, api->version.major,
                           api->version.minor, MAJOR, OLDEST_MINOR, MAJOR,
                           api->version.major > MAJOR ? "an older" : "a newer");
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!api_has(api, needed[i]))
            return cornu__fail(CORNU_ERR_DEVICE, "%s: its PJRT API %d.%d has no %s", path,
                               api->version.major, api->version.minor, name_of(needed[i]));
    return CORNU_OK;
}

/* The attribute is absent from some plugins: then only the API's version is told. */
static void describe_plugin(CornuPjrtPlugin *plugin)
{
    const PjrtApi       *api = plugin->api;
    PjrtPluginAttributes all = PJRT_ARGUMENTS(PjrtPluginAttributes, .count = 0);
    const int            length = snprintf(plugin->versions, sizeof plugin->versions, "API %d.%d",
                                           api->version.major, api->version.minor);
    if (!try(api, PJRT_PLUGIN_ATTRIBUTES, &all)) return;
    for (size_t i = 0; all.attributes && i < all.count; i++) {
        const PjrtNamedValue *a = &all.attributes[i];
        static const char     wanted[] = "stablehlo_current_version";
        if (a->type != PJRT_INT64_LIST || a->value_size != 3 ||
            a->name_size != sizeof wanted - 1 || memcmp(a->name, wanted, a->name_size) != 0)
            continue;
        snprintf(plugin->versions + length, sizeof plugin->versions - (size_t)length,
                 ", StableHLO %lld.%lld.%lld", (long long)a->value.int64_list[0],
                 (long long)a->value.int64_list[1], (long long)a->value.int64_list[2]);
    }
}

/* A value of the user's own stays. setenv while other threads read the environment is a race:
 * programs that do so open such a device first, or set the variables themselves. */
static void set_variable(const char *path, const char *name, const char *value)
{
    if (getenv(name)) return;
    cornu__log(CORNU_LOG_INFO, "setting %s=%s for %s", name, value, path);
    setenv(name, value, 0);
}

/* XLA tells errors, not what it finds noteworthy (0 all, 1 warnings, 2 errors). On a machine that
 * has no TPU, libtpu asks the cloud's metadata server for minutes what it is part of, and then
 * complains of names it did not get: it is told not to ask, and a host and a board, which do not
 * count when it compiles for a topology. */
static void prepare(const char *path)
{
    const char *slash = strrchr(path, '/');
    set_variable(path, "TF_CPP_MIN_LOG_LEVEL", "2");
    if (strncmp(slash ? slash + 1 : path, "libtpu", 6) != 0 || cornu__has_tpu()) return;
    set_variable(path, "TPU_SKIP_MDS_QUERY", "1");
    set_variable(path, "TPU_WORKER_HOSTNAMES", "localhost");
    set_variable(path, "TPU_ACCELERATOR_TYPE", "v3-8");
}

/* Through the path as given, because plugins for GPUs look for libraries beside themselves, and
 * package managers may have made links of their files. */
static CornuStatus open_library(const char *path, void **library, const PjrtApi **api)
{
    char         here[CORNU_PJRT_PATH + 2];
    PjrtGetApi  *get_api;
    snprintf(here, sizeof here, "%s%s", strchr(path, '/') ? "" : "./", path);
    prepare(path);
    if (!(*library = dlopen(here, RTLD_NOW | RTLD_LOCAL))) {
        const char *said = dlerror();
        return cornu__fail(CORNU_ERR_DEVICE, "%s cannot be loaded: %s", path,
                           said ? said : "for an unknown reason");
    }
    void *address = dlsym(*library, "GetPjrtApi");
    if (!address) {
        const char *said = dlerror();
        return cornu__fail(CORNU_ERR_DEVICE, "%s is not a PJRT plugin: %s", path,
                           said ? said : "GetPjrtApi is NULL");
    }
    memcpy(&get_api, &address, sizeof get_api);
    *api = get_api();
    if (*api) return CORNU_OK;
    return cornu__fail(CORNU_ERR_DEVICE, "%s: its GetPjrtApi returns NULL", path);
}

/* For all threads, under the lock. A file has one handle, whatever its path. */
static struct {
    void           *library;
    CornuPjrtPlugin plugin;
} loaded[MOST_PLUGINS];
static int             loaded_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CornuStatus load_plugin(const char *path, const CornuPjrtPlugin **plugin)
{
    void           *library;
    CornuPjrtPlugin new = { .api = NULL };
    const size_t    length = strlen(path);
    if (length >= sizeof new.path)
        return cornu__fail(CORNU_ERR_DEVICE, "a plugin's path of %zu characters, expected at most "
                           "%zu", length, sizeof new.path - 1);
    memcpy(new.path, path, length + 1);
    CORNU__TRY(open_library(path, &library, &new.api));
    for (int i = 0; i < loaded_count; i++) {
        if (loaded[i].library != library) continue;
        *plugin = &loaded[i].plugin;
        return CORNU_OK;
    }
    CORNU__TRY(check_version(path, new.api));
    if (loaded_count == MOST_PLUGINS)
        return cornu__fail(CORNU_ERR_DEVICE, "%s: more than %d plugins in a process", path,
                           MOST_PLUGINS);
    PjrtPluginInitialize initialize = { .head = { sizeof initialize, NULL } };
    const CornuStatus    status = plugin_call(new.api, PJRT_PLUGIN_INITIALIZE, &initialize);
    if (status != CORNU_OK) return cornu__fail_prefix(status, path);
    describe_plugin(&new);
    cornu__log(CORNU_LOG_INFO, "loaded %s: %s", path, new.versions);
    loaded[loaded_count].library = library;
    loaded[loaded_count].plugin = new;
    *plugin = &loaded[loaded_count++].plugin;
    return CORNU_OK;
}

CornuStatus cornu__pjrt_load(const char *path, const CornuPjrtPlugin **plugin)
{
    pthread_mutex_lock(&lock);
    const CornuStatus status = load_plugin(path, plugin);
    pthread_mutex_unlock(&lock);
    return status;
}
