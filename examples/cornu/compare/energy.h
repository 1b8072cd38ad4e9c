/*
 * The energy that this machine's processors and their memory use, by counters of the kernel: all
 * that runs on them is counted, not this process alone.
 *
 *     EnergyMeter meter;
 *     energy_open(&meter, NULL);
 *     double before = energy_joules(&meter);
 *     ...
 *     printf("%g J\n", energy_joules(&meter) - before);
 */
#ifndef CORNU_EXAMPLES_ENERGY_H
#define CORNU_EXAMPLES_ENERGY_H

#include <stdint.h>

enum { ENERGY_COUNTERS = 64, ENERGY_PATH = 512 };

typedef struct {
    char     path[ENERGY_PATH];    /* of a file with microjoules */
    uint64_t last;
    double   range;                /* microjoules after which it begins with 0 again; 0: 2^64 */
} EnergyCounter;

typedef struct {
    EnergyCounter counters[ENERGY_COUNTERS];
    int           count;           /* 0: none can be read */
    double        microjoules;     /* since it was opened */
    char          why[128];        /* if none can: what came in place of counters */
} EnergyMeter;

/* Finds the counters below `root`, which is /sys/class for NULL:
 *     powercap/intel-rapl:N/energy_uj    of processors of Intel and AMD: packages, and their memory
 *                                        in intel-rapl:N:M where it has one of its own
 *     hwmon/hwmonN/energyM_input         of AMD's driver amd_energy: sockets
 * Cores and the like, which packages contain, are left out, and so is hwmon if powercap is there.
 * Kernels since 5.10 let only root read them. */
void energy_open(EnergyMeter *meter, const char *root);

/* Joules since it was opened, NAN without counters. To be called at least once before a counter
 * begins with 0 for the second time: after some minutes of full load. */
double energy_joules(EnergyMeter *meter);

#endif
