#include "library_internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../log_internal.h"

static CornuStatus open_library(const CornuLibrary *library, void **opened)
{
    char why[400] = "";
    for (int i = 0; i < CORNU__LIBRARY_FILES && library->files[i]; i++) {
        if ((*opened = dlopen(library->files[i], RTLD_NOW | RTLD_LOCAL))) {
            cornu__log(CORNU_LOG_INFO, "loaded %s", library->files[i]);
            return CORNU_OK;
        }
        const char  *said = dlerror();
        const size_t length = strlen(why);
        snprintf(why + length, sizeof why - length, "%s%s", i ? "; " : "",
                 said ? said : library->files[i]);
    }
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s, which cannot be loaded (%s); %s", library->need,
                       why, library->help);
}

static CornuStatus load(const CornuLibrary *library, void *functions)
{
    void *opened;
    CORNU__TRY(open_library(library, &opened));
    for (int i = 0; i < library->count; i++) {
        const CornuLibrarySymbol *symbol = &library->symbols[i];
        void *address = dlsym(opened, symbol->name);
        if (!address)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s, but the one found has no %s; %s",
                               library->need, symbol->name, library->help);
        memcpy((char *)functions + symbol->place, &address, sizeof address);
    }
    return CORNU_OK;
}

CornuStatus cornu__library_load(CornuLibrary *library, void *functions)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    const CornuStatus status = library->loaded ? CORNU_OK : load(library, functions);
    library->loaded = status == CORNU_OK;
    pthread_mutex_unlock(&lock);
    return status;
}
