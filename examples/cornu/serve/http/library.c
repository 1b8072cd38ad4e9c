#include "library.h"

#include <stdio.h>

#ifndef CORNU_MICROHTTPD

bool http_library_load(void)
{
    fputs("cornu serve: was built without libmicrohttpd; install libmicrohttpd-dev and run make "
          "again\n", stderr);
    return false;
}

#else

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    size_t      place;   /* in HttpLibrary */
} symbols[] = {
#define SYMBOL(name) { "MHD_" #name, offsetof(HttpLibrary, name) },
    HTTP_LIBRARY_MAP(SYMBOL)
#undef SYMBOL
};

HttpLibrary http_library;

bool http_library_load(void)
{
    void *library = dlopen(CORNU_MICROHTTPD, RTLD_NOW | RTLD_LOCAL);
    bool  found = library != NULL;
    for (size_t i = 0; found && i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(library, symbols[i].name);
        found = address != NULL;
        memcpy((char *)&http_library + symbols[i].place, &address, sizeof address);
    }
    const char *why = found ? NULL : dlerror();
    if (!found)
        fprintf(stderr,
                "cornu serve: libmicrohttpd cannot be loaded (%s); install libmicrohttpd12\n",
                why ? why : CORNU_MICROHTTPD);
    return found;
}

#endif
