/* Messages of MPI, through the plugin for the launcher's library. */
#ifndef CORNU_DEVICE_MPI_INTERNAL_H
#define CORNU_DEVICE_MPI_INTERNAL_H

#include "mpi_library_internal.h"
#include "transport_internal.h"

/* CORNU_ERR_PROCESS if the library sees another group than its launcher has started. NULL without a
 * pending error. */
CornuTransport *cornu__mpi_open(const CornuMpiLauncher *launcher, const _Atomic bool *stop);

#endif
