/*
 * Traced steps as a profile of XProf, TensorBoard's plugin "profile": LOGS/plugins/profile/RUN/
 * HOST.xplane.pb, an XSpace.
 *
 *     /host:CPU                    as measured: a line for each thread, with the events of trace.h
 *     /device:TPU:0                as modelled, of a device that emulates a TPU: lines of steps,
 *                                  XLA modules and XLA ops, whose metadata have the FLOP, bytes of
 *                                  HBM, tiles and the bound of each; the same by units: MXU, vector
 *                                  unit, HBM, links, infeed, host
 *
 * The modelled steps follow each other from the beginning of the first one that was measured.
 * Sources: xla/tsl/profiler/protobuf/xplane.proto; xla/tsl/profiler/utils/xplane_schema.cc for the
 * names of planes, lines and stats.
 */
#ifndef CORNU_NN_XPLANE_INTERNAL_H
#define CORNU_NN_XPLANE_INTERNAL_H

#include "trace_internal.h"

/* Writes HOST.xplane.pb of this host into `folder`, which is made if absent, whole or not at all.
 * The traces are of `count` steps of one device, in order, that have ended; steps are numbered from
 * first_step. CORNU_ERR_FILE. */
CornuStatus cornu__xplane_write(CornuTrace *const *traces, int count, int64_t first_step,
                                const char *folder);

#endif
