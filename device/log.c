#include "log_internal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/print.h"

enum { MESSAGE_SIZE = 1024 };

static const char *const names[] = { NULL, "error", "warning", "info", "debug" };
enum { LEVELS = sizeof names / sizeof *names };

/* Of the function, and of the environment; -1: not read yet. */
static atomic_int set_level = CORNU_LOG_NOTHING, environment_level = -1;
static atomic_bool is_set;

static pthread_mutex_t   lock = PTHREAD_MUTEX_INITIALIZER;   /* of the listener and its calls */
static CornuLogFunction *listener;
static void             *listener_context;

static _Thread_local bool logging;   /* a message of this thread is with the listener */

const char *cornu_log_level_name(CornuLogLevel level)
{
    return (unsigned)level < LEVELS ? names[level] : NULL;
}

/* The level that CORNU_LOG names: CORNU_LOG_NOTHING if unset, -1 for an unknown word. */
static int level_wished(void)
{
    const char *wish = getenv("CORNU_LOG");
    if (!wish || !*wish) return CORNU_LOG_NOTHING;
    for (int i = 1; i < LEVELS; i++)
        if (strcmp(wish, names[i]) == 0) return i;
    return -1;
}

CornuStatus cornu__log_open(void)
{
    const int level = level_wished();
    environment_level = level < 0 ? CORNU_LOG_NOTHING : level;
    if (level >= 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "CORNU_LOG is '%.60s', expected error, warning, info or "
                       "debug", getenv("CORNU_LOG"));
}

bool cornu__logs(CornuLogLevel level)
{
    if (is_set) return (int)level <= set_level;
    if (environment_level < 0) {
        const int wished = level_wished();
        environment_level = wished < 0 ? CORNU_LOG_NOTHING : wished;
    }
    return (int)level <= environment_level;
}

void cornu__log(CornuLogLevel level, const char *format, ...)
{
    if (logging || !cornu__logs(level)) return;
    char    message[MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    cornu__vformat_shown(message, sizeof message, format, arguments);
    va_end(arguments);
    logging = true;
    pthread_mutex_lock(&lock);
    if (cornu__logs(level)) {   /* it may have changed */
        if (listener) listener(listener_context, level, message);
        else fprintf(stderr, "cornu: %s: %s\n", names[level], message);
    }
    pthread_mutex_unlock(&lock);
    logging = false;
}

void cornu_set_log(CornuLogLevel level, CornuLogFunction *function, void *context)
{
    pthread_mutex_lock(&lock);
    listener = function;
    listener_context = context;
    set_level = level;
    is_set = function != NULL;
    pthread_mutex_unlock(&lock);
}
