/*
 * A server for models: TensorFlow Serving's REST interface over HTTP.
 *
 *     settings                          the command line
 *     folder, library, served           models: on disk, by name and version, one that predicts
 *     listen, connections, http         HTTP
 *     route, api                        paths and requests
 *     unpack, json, tensor, rows        requests to arrays
 *     job, batcher, same_bits           predictions
 *     answer, metrics                   their JSON, figures
 *
 * Threads: one for each connection reads its requests and makes arrays of them; the batcher's
 * predict; one looks for new versions; the first one waits for signals.
 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../commands.h"
#include "http/http.h"
#include "http/library.h"

/* Memory of so many bytes is given back as soon as it is free: a large request leaves no trace. */
enum { LARGE = 1 << 18 };

/* The thread that looks for new versions, every --poll seconds, or when it is told to. */
typedef struct {
    Library        *library;
    double          poll_s;
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    bool            now, all, ending;
    pthread_t       thread;
} Watch;

static void *watch(void *context)
{
    Watch          *watch = context;
    struct timespec until;
    setpriority(PRIO_PROCESS, 0, 10);  /* on Linux of this thread alone: requests go first */
    pthread_mutex_lock(&watch->lock);
    while (!watch->ending) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += (time_t)watch->poll_s;
        until.tv_nsec += (long)(1e9 * (watch->poll_s - (double)(time_t)watch->poll_s));
        if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
        if (!watch->now) pthread_cond_timedwait(&watch->changed, &watch->lock, &until);
        const bool all = watch->all;
        watch->now = watch->all = false;
        if (watch->ending) break;
        pthread_mutex_unlock(&watch->lock);
        library_update(watch->library, all);
        pthread_mutex_lock(&watch->lock);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

/* Whoever sets the clock does not stop it. */
static void begin_watch(Watch *watch, Library *library, double poll_s)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    watch->library = library;
    watch->poll_s = poll_s;
}

static void tell(Watch *watch, bool ending)
{
    pthread_mutex_lock(&watch->lock);
    watch->now = watch->all = true;
    watch->ending = ending;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->lock);
}

/* SIGTERM and SIGINT end the server, SIGHUP looks for new versions at once, and tries again all
 * that failed to load. */
static void serve(Http *http, Watch *watch, const sigset_t *signals)
{
    const struct timespec second = { .tv_sec = 1 };
    for (;;) {
        const int number = sigtimedwait(signals, NULL, &second);
        if (number == SIGHUP) tell(watch, false);
        else if (number > 0) break;
        http_check(http);
    }
}

int command_serve(int argc, char **argv)
{
    Settings settings;
    Watch    watching = { .lock = PTHREAD_MUTEX_INITIALIZER };
    sigset_t signals;
    const int usage = settings_parse(&settings, argc, argv);
    if (usage >= 0) return usage;
    if (!http_library_load()) return 1;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    mallopt(M_MMAP_THRESHOLD, LARGE);
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int  threads = settings.options.threads ? (int)settings.options.threads : (int)processors;
    int        status = 1;
    Api        api = { .settings = &settings, .library = library_create(&settings),
                       .metrics = metrics_create() };
    if (!api.library || !api.metrics) fputs("cornu serve: no memory\n", stderr);
    else if (library_update(api.library, false)) {
        pthread_sigmask(SIG_BLOCK, &signals, NULL);
        api.batcher = batcher_create(&settings, api.metrics, threads);
        Http *http = api.batcher ? http_create(&api) : NULL;
        begin_watch(&watching, api.library, settings.poll_s);
        if (http && !pthread_create(&watching.thread, NULL, watch, &watching)) {
            serve(http, &watching, &signals);
            pthread_sigmask(SIG_UNBLOCK, &signals, NULL);   /* a second one ends it at once */
            tell(&watching, true);
            http_finish(http);
            pthread_join(watching.thread, NULL);
            status = 0;
        }
    }
    batcher_free(api.batcher);
    library_free(api.library);
    metrics_free(api.metrics);
    return status;
}
