/* Streams over TCP. */
#ifndef CORNU_DEVICE_TCP_INTERNAL_H
#define CORNU_DEVICE_TCP_INTERNAL_H

#include "mesh_internal.h"
#include "transport_internal.h"

/* Takes the mesh even on failure. NULL without a pending error. */
CornuTransport *cornu__tcp_open(CornuMesh *mesh);

#endif
