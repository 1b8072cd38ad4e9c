/*
 * Libraries of others, loaded when something first needs them: a program with Cornu needs them
 * neither to link nor to start.
 *
 *     static struct { int (*close)(void *file); ... } functions;
 *     static const CornuLibrarySymbol symbols[] = { { "sf_close", 0 }, ... };
 *     static CornuLibrary library = { .files = { "libsndfile.so.1" }, .symbols = symbols, ... };
 *     CORNU__TRY(cornu__library_load(&library, &functions));
 */
#ifndef CORNU_DEVICE_LIBRARY_INTERNAL_H
#define CORNU_DEVICE_LIBRARY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "../status_internal.h"

enum { CORNU__LIBRARY_FILES = 2 };

typedef struct {
    const char *name;
    size_t      place;   /* of its address, in the struct of functions */
} CornuLibrarySymbol;

typedef struct {
    const char               *files[CORNU__LIBRARY_FILES];   /* tried in this order */
    const CornuLibrarySymbol *symbols;
    int                       count;
    const char               *need, *help;   /* "HDF5 files need libhdf5", "install libhdf5-dev" */
    bool                      loaded;
} CornuLibrary;

/* Loads it unless it is loaded, for good, and sets the functions. It is tried again after a
 * failure, which may have been lack of memory. CORNU_ERR_UNSUPPORTED: "NEED, which cannot be loaded
 * (why); HELP", or that the one found lacks a symbol. */
CornuStatus cornu__library_load(CornuLibrary *library, void *functions);

#endif
