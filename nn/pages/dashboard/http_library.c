#include "http_library_internal.h"

#ifndef CORNU_MICROHTTPD

CornuStatus cornu__http_load(void)
{
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "dashboard: Cornu was built without libmicrohttpd; "
                       "install libmicrohttpd-dev and rebuild");
}

#else

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    size_t      place;   /* in CornuHttpLibrary */
} symbols[] = {
#define SYMBOL(name) { "MHD_" #name, offsetof(CornuHttpLibrary, name) },
    CORNU__HTTP_MAP(SYMBOL)
#undef SYMBOL
};

CornuHttpLibrary cornu__http;

static CornuStatus load(void)
{
    void *library = dlopen(CORNU_MICROHTTPD, RTLD_NOW | RTLD_LOCAL);
    bool  found = library != NULL;
    for (size_t i = 0; found && i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(library, symbols[i].name);
        found = address != NULL;
        memcpy((char *)&cornu__http + symbols[i].place, &address, sizeof address);
    }
    const char *why = found ? NULL : dlerror();
    if (found) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "dashboard: libmicrohttpd cannot be loaded (%s); "
                       "install libmicrohttpd12", why ? why : CORNU_MICROHTTPD);
}

/* Loading is retried after a failure, which may have been lack of memory. */
CornuStatus cornu__http_load(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool            loaded;
    pthread_mutex_lock(&lock);
    const CornuStatus status = loaded ? CORNU_OK : load();
    loaded = status == CORNU_OK;
    pthread_mutex_unlock(&lock);
    return status;
}

#endif
