/*
 * A mesh: one TCP connection between each two ranks.
 *
 * Each rank listens at its address and connects to all lower ones. Both sides of a connection first
 * show that they have the key of the job, and say who they are (greeting_internal.h). Strangers are
 * dropped, and keep nobody waiting: all connections are made in one loop.
 */
#ifndef CORNU_DEVICE_MESH_INTERNAL_H
#define CORNU_DEVICE_MESH_INTERNAL_H

#include "launch_internal.h"

typedef struct {
    int  rank, size;
    int *sockets;   /* by rank, non-blocking; -1 for this one */
} CornuMesh;

/* Until all are connected, at most launch->timeout_s; takes the launch's listener. On failure the
 * mesh is empty. */
CornuStatus cornu__mesh_open(CornuMesh *mesh, CornuLaunch *launch);

/* For a launch without workers: listens at a free port, and writes an address that the other ranks
 * can connect to, CORNU_ADDRESS or one of this host's. */
CornuStatus cornu__mesh_listen(CornuLaunch *launch, bool one_host, char *address, size_t size);

/* Listens at the launch's own address of a rank, which must be of this host. */
CornuStatus cornu__mesh_listen_at(const char *address, int rank, int *listener);

/* Waits for what was sent to arrive, 2 s at most. */
void cornu__mesh_close(CornuMesh *mesh);

#endif
