/*
 * PJRT plugins: finding, loading, calling. A plugin is a shared library with XLA for one platform,
 * as packages of JAX's world ship it.
 */
#ifndef CORNU_DEVICE_PJRT_PLUGIN_H
#define CORNU_DEVICE_PJRT_PLUGIN_H

#include "../status_internal.h"
#include "abi.h"

enum { CORNU_PJRT_PATH = 1024, CORNU_PJRT_OPTIONS = 16 };

/* ---- Names of devices ---- */

/* "pjrt:cuda,preallocate=false": the plugin and its client's options. A comma that is part of one
 * has a backslash before it. */
typedef struct {
    char plugin[CORNU_PJRT_PATH];   /* "cpu", "cuda", "tpu", or a path; "" for the first found */
    int  count;
    struct { char name[48], value[512]; } options[CORNU_PJRT_OPTIONS];
} CornuPjrtName;

/* CORNU_ERR_DEVICE for an option without a name or "=", too many or too long ones. */
CornuStatus cornu__pjrt_parse(const char *device_name, CornuPjrtName *name);

/* The value of an option, which is removed; NULL if it is not there. Valid as long as `name`. */
const char *cornu__pjrt_take(CornuPjrtName *name, const char *option);

/* The remaining options as the plugin takes them: true and false are bools, numbers with a decimal
 * point floats, other numbers integers, 1:2:3 lists of integers, anything else strings. The values
 * point into `name` and `lists`. Returns how many. */
typedef struct { int64_t of[CORNU_PJRT_OPTIONS][16]; } CornuPjrtLists;
int cornu__pjrt_values(const CornuPjrtName *name, CornuPjrtLists *lists,
                       PjrtNamedValue values[CORNU_PJRT_OPTIONS]);

/* ---- Libraries ---- */

/* The path of the library for a plugin's name, searched where users of JAX have it (find.c lists
 * the places). CORNU_ERR_DEVICE, naming the places, if there is none. */
CornuStatus cornu__pjrt_find(const char *plugin, char path[CORNU_PJRT_PATH]);

typedef struct {
    char           path[CORNU_PJRT_PATH];
    const PjrtApi *api;
    char           versions[128];   /* "API 0.115, StableHLO 1.20.0" */
} CornuPjrtPlugin;

/* Loads and initializes a library, once in the process; it is never unloaded, because plugins leave
 * exit handlers behind. CORNU_ERR_DEVICE if it is not a plugin, or of a version that is too old. */
CornuStatus cornu__pjrt_load(const char *path, const CornuPjrtPlugin **plugin);

/* Calls a function of the plugin. The plugin's error becomes CORNU_ERR_MEMORY if its memory is
 * exhausted, else CORNU_ERR_DEVICE; the message has the plugin's own words. CORNU_ERR_UNSUPPORTED,
 * naming the function, if the plugin is too old to have it or does not implement it. */
CornuStatus cornu__pjrt_call(const CornuPjrtPlugin *plugin, PjrtFunctionId id, void *arguments);

/* The same where failing is not an error: whether the plugin has the function and it succeeded. */
bool cornu__pjrt_try(const CornuPjrtPlugin *plugin, PjrtFunctionId id, void *arguments);

bool cornu__pjrt_has(const CornuPjrtPlugin *plugin, PjrtFunctionId id);

/* Waits for an event, NULL for none, and destroys it: its error, as above. What the event stands
 * for has ended then, after a failure too, as far as the plugin can be made to wait for it. */
CornuStatus cornu__pjrt_await(const CornuPjrtPlugin *plugin, PjrtEvent *event);

#endif
