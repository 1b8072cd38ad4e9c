/*
 * The energy that this machine's processors and their memory use, by counters of the kernel: all
 * that runs on them is counted, not this process alone.
 *
 *     CornuEnergyMeter meter;
 *     cornu_energy_open(&meter, NULL);
 *     double before = cornu_energy_joules(&meter);
 *     ...
 *     printf("%g J\n", cornu_energy_joules(&meter) - before);
 */
#ifndef CORNU_DEVICE_ENERGY_H
#define CORNU_DEVICE_ENERGY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CORNU_ENERGY_COUNTERS = 64, CORNU_ENERGY_PATH = 512 };

typedef struct {
    char     path[CORNU_ENERGY_PATH];   /* of a file with microjoules */
    uint64_t last;
    double   range;                     /* microjoules after which it begins again; 0: 2^64 */
} CornuEnergyCounter;

typedef struct {
    CornuEnergyCounter counters[CORNU_ENERGY_COUNTERS];
    int                count;         /* 0: none can be read */
    double             microjoules;   /* since it was opened */
    char               why[128];      /* if none can: what came in place of counters */
} CornuEnergyMeter;

/* Finds the counters below `root`, which is /sys/class for NULL:
 *     powercap/intel-rapl:N/energy_uj    of processors of Intel and AMD: packages, and their memory
 *                                        in intel-rapl:N:M where it has one of its own
 *     hwmon/hwmonN/energyM_input         of AMD's driver amd_energy: sockets
 * Cores and the like, which packages contain, are left out, and so is hwmon if powercap is there.
 * Kernels since 5.10 let only root read them. */
void cornu_energy_open(CornuEnergyMeter *meter, const char *root);

/* Joules since it was opened, NAN without counters. To be called at least once before a counter
 * begins with 0 for the second time: after some minutes of full load. */
double cornu_energy_joules(CornuEnergyMeter *meter);

#ifdef __cplusplus
}
#endif
#endif
