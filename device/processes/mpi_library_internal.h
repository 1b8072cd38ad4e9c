/* Cornu's plugin for a library of MPI: finding and loading it. */
#ifndef CORNU_DEVICE_MPI_LIBRARY_INTERNAL_H
#define CORNU_DEVICE_MPI_LIBRARY_INTERNAL_H

#include "mpi/plugin_internal.h"
#include "processes_internal.h"

/* Who started this process as one of several, as the environment tells. */
typedef struct {
    const char *name;       /* "Open MPI's mpirun"; NULL: nobody */
    const char *library;    /* "openmpi", "mpich"; NULL: it does not say */
    int         rank, count;
} CornuMpiLauncher;

/* CORNU_ERR_ARGUMENT if the launcher's variables cannot be read. */
CornuStatus cornu__mpi_launcher(CornuMpiLauncher *launcher);

/* The plugin, which stays loaded. CORNU_ERR_UNSUPPORTED if there is none. */
CornuStatus cornu__mpi_load(const CornuMpiLauncher *launcher, const CornuMpiPlugin **plugin);

#endif
