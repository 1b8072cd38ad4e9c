#include "profile.h"

#include "../log_internal.h"
#include "../memory_internal.h"
#include "xspace.h"

/* A ProfileOptions: version 1 (5) has no defaults other than zero; device_tracer_level 1 (3). The
 * host is not profiled. Source: tsl/profiler/protobuf/profiler_options.proto. */
static const char options[] = { 5 << 3, 1, 3 << 3, 1 };

static const char fallback[] = "steps are timed by wall clock";

static const PjrtProfilerApi *find_profiler(const PjrtApi *api)
{
    const PjrtExtension *extension = api->head.extension;
    while (extension && extension->type != PJRT_PROFILER_EXTENSION) extension = extension->next;
    if (!extension || extension->size < offsetof(PjrtProfilerExtension, context)) return NULL;
    const PjrtProfilerApi *profiler = ((const PjrtProfilerExtension *)extension)->api;
    return profiler && profiler->size >= sizeof *profiler ? profiler : NULL;
}

/* Whether it succeeded. */
static bool profiler_call(const PjrtProfilerApi *api, PjrtProfilerFunction *function,
                          const char *name, void *arguments)
{
    PjrtProfilerError *error = function(arguments);
    if (!error) return true;
    PjrtProfilerErrorMessage message = { .size = sizeof message, .error = error };
    PjrtProfilerErrorDestroy destroy = { .size = sizeof destroy, .error = error };
    api->error_message(&message);
    const size_t size = message.message ? message.message_size : 0;
    cornu__log(CORNU_LOG_WARNING, "pjrt: the profiler's %s: %.*s; %s", name,
               (int)(size < CORNU_MESSAGE_SIZE ? size : CORNU_MESSAGE_SIZE),
               size ? message.message : "", fallback);
    api->error_destroy(&destroy);
    return false;
}

static void destroy(CornuPjrtProfile *profile)
{
    PjrtProfilerCall arguments = { sizeof arguments, profile->profiler };
    if (profile->profiler)
        profiler_call(profile->api, profile->api->destroy, "destroy", &arguments);
    profile->profiler = NULL;
}

bool cornu__pjrt_profile_start(CornuPjrtProfile *profile, const CornuPjrtPlugin *plugin)
{
    PjrtProfilerCreate create = { .size = sizeof create, .options = options,
                                  .options_size = sizeof options };
    *profile = (CornuPjrtProfile){ .api = find_profiler(plugin->api) };
    if (!profile->api || !profiler_call(profile->api, profile->api->create, "create", &create))
        return false;
    profile->profiler = create.profiler;
    PjrtProfilerCall start = { sizeof start, profile->profiler };
    if (profile->profiler && profiler_call(profile->api, profile->api->start, "start", &start))
        return true;
    destroy(profile);
    return false;
}

/* Whether times of so many devices (-1: the profile is damaged) are to be believed. */
static bool times_are_plausible(int found, int shards, const double *seconds, double most_s)
{
    if (found < 0) {
        cornu__log(CORNU_LOG_WARNING, "pjrt: the profile is damaged; %s", fallback);
        return false;
    }
    if (found != shards) {
        cornu__log(CORNU_LOG_WARNING, "pjrt: the profile has times of %d devices, expected %d; %s",
                   found, shards, fallback);
        return false;
    }
    for (int i = 0; i < shards; i++) {
        if (seconds[i] > 0.0 && seconds[i] <= most_s) continue;
        cornu__log(CORNU_LOG_WARNING, "pjrt: by the profile device %d took %g s of a run of %g s; "
                   "%s", i, seconds[i], most_s, fallback);
        return false;
    }
    return true;
}

/* Reads the times from what the profiler collected: into a buffer of its own, as those of XLA do in
 * the first call, or into ours. */
static bool collect(const CornuPjrtProfile *profile, int shards, double most_s, double *seconds)
{
    PjrtProfilerFunction *function = profile->api->collect;
    PjrtProfilerCollect   collect = { .size = sizeof collect, .profiler = profile->profiler };
    unsigned char        *own = NULL;
    bool                  ok = profiler_call(profile->api, function, "collect", &collect);
    if (ok && !collect.bytes && collect.bytes_size > 0) {
        collect.bytes = own = cornu__allocate(collect.bytes_size, 1);
        ok = own && profiler_call(profile->api, function, "collect", &collect);
    }
    if (ok) {
        const int found = cornu__xspace_seconds(collect.bytes, collect.bytes_size, shards, seconds);
        ok = times_are_plausible(found, shards, seconds, most_s);
    }
    cornu__release(own);
    return ok;
}

bool cornu__pjrt_profile_stop(CornuPjrtProfile *profile, int shards, double most_s,
                              double *seconds)
{
    PjrtProfilerCall stop = { sizeof stop, profile->profiler };
    const bool       ok = profiler_call(profile->api, profile->api->stop, "stop", &stop) &&
                          collect(profile, shards, most_s, seconds);
    destroy(profile);
    return ok;
}
