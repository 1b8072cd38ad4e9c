/*
 * Streams over shared memory, for ranks of one host: a ring of bytes for each ordered pair of
 * ranks. Failures and signs of life stay on TCP, where the end of a process shows.
 */
#ifndef CORNU_DEVICE_SHM_INTERNAL_H
#define CORNU_DEVICE_SHM_INTERNAL_H

#include "transport_internal.h"

enum { CORNU_SHM_MOST = 128 };   /* ranks: rings grow with their square */

/* Takes the transport, one of streams such as TCP's, which must connect all ranks of one host and
 * stays the control. *shm is NULL, and the transport still the caller's, if the memory cannot be
 * had on all of them; the reason is recorded then. A status that is not CORNU_OK is the failure of
 * an exchange over the transport, which is the caller's then too. */
CornuStatus cornu__shm_open(CornuTransport *control, double timeout_s, CornuTransport **shm);

#endif
