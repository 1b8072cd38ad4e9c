/*
 * What Cornu's plugin for a library of MPI provides: a few calls of MPI, without its types, which
 * differ from library to library. The plugin is built by that library's mpicc and loaded at run
 * time (mpi_library.c); it knows nothing else of Cornu.
 */
#ifndef CORNU_DEVICE_MPI_PLUGIN_INTERNAL_H
#define CORNU_DEVICE_MPI_PLUGIN_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

enum { CORNU_MPI_ABI = 1 };

/* At most so many bytes a message: counts of MPI are ints. */
#define CORNU_MPI_PART ((size_t)1 << 30)

/* Functions return 0 or an error of MPI. All are called by the thread that calls open. */
typedef struct {
    int  abi;
    bool global;   /* it must be loaded with RTLD_GLOBAL */
    /* The library's version is written to `library`: "Open MPI 4.1.4". */
    int (*open)(int *rank, int *size, char *library, size_t bytes);
    /* Requests are numbered from 0 to count - 1; reserving more keeps those in use. */
    int (*reserve)(int count);
    int (*send)(int request, const void *from, size_t bytes, int rank, int tag);
    int (*receive)(int request, void *to, size_t bytes, int rank, int tag);
    int (*test)(int request, int *done);
    /* The rank of any message with the tag that has come; -1 if none has. */
    int (*probe)(int tag, int *rank);
    void (*cancel)(int request);
    void (*explain)(int error, char *text, size_t bytes);
    /* Waits for the other ranks. */
    void (*close)(void);
} CornuMpiPlugin;

/* The symbol that the plugin exports. */
extern const CornuMpiPlugin cornu_mpi_plugin;

#endif
