#define _XOPEN_SOURCE 700    /* recursive mutexes */

#include "hdf5_library_internal.h"

#ifdef CORNU_HDF5

#include "../../device/log_internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Expanded first: the header may define H5Lget_info as H5Lget_info2. */
#define TEXT(name)      LITERALLY(name)
#define LITERALLY(name) #name

#define HELP "install libhdf5-dev, or on Debian 12 libhdf5-103-1 alone, or use .safetensors"

static const struct {
    const char *name;
    size_t      place;        /* in CornuHdf5Library */
} symbols[] = {
#define SYMBOL(name) { TEXT(H5##name), offsetof(CornuHdf5Library, name) },
    CORNU__HDF5_MAP(SYMBOL)
};

CornuHdf5Library cornu__hdf5_library;

static CornuStatus find_library(void **library)
{
    static const char *const names[] = { TEXT(CORNU_HDF5), "libhdf5.so" };
    char                     why[400] = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if ((*library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL))) {
            cornu__log(CORNU_LOG_INFO, "loaded %s", names[i]);
            return CORNU_OK;
        }
        const char  *said = dlerror();
        const size_t length = strlen(why);
        snprintf(why + length, sizeof why - length, "%s%s", i ? "; " : "", said ? said : names[i]);
    }
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "HDF5 files need libhdf5, which cannot be loaded "
                       "(%s); " HELP, why);
}

static CornuStatus load(void)
{
    void    *library;
    unsigned major = 0, minor = 0, release = 0;
    CORNU__TRY(find_library(&library));
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "HDF5 files need libhdf5 %d.%d, but the one "
                               "found has no %s; " HELP, H5_VERS_MAJOR,
                               H5_VERS_MINOR, symbols[i].name);
        memcpy((char *)&cornu__hdf5_library + symbols[i].place, &address, sizeof address);
    }
    /* Before it starts: at exit it would print what a damaged file left open. */
    cornu__hdf5_library.dont_atexit();
    cornu__hdf5_library.get_libversion(&major, &minor, &release);
    if (major == H5_VERS_MAJOR && minor == H5_VERS_MINOR) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "HDF5 files need libhdf5 %d.%d, but the one found is "
                       "%u.%u; " HELP, H5_VERS_MAJOR, H5_VERS_MINOR, major, minor);
}

static pthread_mutex_t lock;

static void make_lock(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

/* Loading is retried after a failure, which may have been lack of memory. */
CornuStatus cornu__hdf5_enter(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static bool           loaded;
    pthread_once(&once, make_lock);
    pthread_mutex_lock(&lock);
    const CornuStatus status = loaded ? CORNU_OK : load();
    loaded = status == CORNU_OK;
    if (loaded) return CORNU_OK;
    pthread_mutex_unlock(&lock);
    cornu__log(CORNU_LOG_WARNING, "%s", cornu_error_message());
    return status;
}

void cornu__hdf5_leave(void) { pthread_mutex_unlock(&lock); }

#else

CornuStatus cornu__hdf5_enter(void)
{
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "this is an HDF5 file, and Cornu was built without "
                       "libhdf5; install libhdf5-dev and rebuild, or use .safetensors");
}

void cornu__hdf5_leave(void) {}

#endif
