#define _XOPEN_SOURCE 700    /* recursive mutexes */

#include "hdf5_library_internal.h"

#ifdef CORNU_HDF5

#include "../../device/log_internal.h"
#include "../../device/system/library_internal.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Expanded first: the header may define H5Lget_info as H5Lget_info2. */
#define TEXT(name)      LITERALLY(name)
#define LITERALLY(name) #name

#define HELP "install libhdf5-dev, or on Debian 12 libhdf5-103-1 alone, or use .safetensors"

static const CornuLibrarySymbol symbols[] = {
#define SYMBOL(name) { TEXT(H5##name), offsetof(CornuHdf5Library, name) },
    CORNU__HDF5_MAP(SYMBOL)
};

CornuHdf5Library cornu__hdf5_library;

static CornuStatus load(void)
{
    static CornuLibrary library = {
        .files = { TEXT(CORNU_HDF5), "libhdf5.so" }, .symbols = symbols,
        .count = sizeof symbols / sizeof *symbols, .need = "HDF5 files need libhdf5", .help = HELP,
    };
    unsigned major = 0, minor = 0, release = 0;
    CORNU__TRY(cornu__library_load(&library, &cornu__hdf5_library));
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
