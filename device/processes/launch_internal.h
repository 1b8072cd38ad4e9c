/* Who this process is among others: what its launcher says in the environment, or the program. */
#ifndef CORNU_DEVICE_LAUNCH_INTERNAL_H
#define CORNU_DEVICE_LAUNCH_INTERNAL_H

#include "key_internal.h"
#include "mpi_library_internal.h"
#include "processes_internal.h"
#include "tf_config_internal.h"

typedef struct {
    int          rank, count;
    const char  *transport;         /* a known name; "auto" unless one is asked for */
    double       timeout_s;
    const char **workers;           /* "host:port" of each rank; NULL in a group of one */
    CornuKey     key;               /* of the job, where there are workers */
    int          listener;          /* a socket that listens at this rank's address; -1: none yet */
    char        *text;              /* of the workers; NULL if they are the program's own, */
    CornuTfConfig tf_config;        /* or of TF_CONFIG */
    CornuMpiLauncher mpi;           /* with a name: workers are not known yet */
} CornuLaunch;

/* CORNU_ERR_ARGUMENT for what contradicts itself. Clear it in any case. */
CornuStatus cornu__launch_read(CornuLaunch *launch, const CornuProcessesConfig *config);
void        cornu__launch_clear(CornuLaunch *launch);

#endif
