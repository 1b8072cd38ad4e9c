/*
 * Profiles of TPUs: numbers of chips, cores and arrays, their speed and memory.
 *
 *     const CornuTpuProfile *v3 = cornu_tpu_profile("v3-8");
 *     printf("%g MHz\n", v3->clock_mhz.value);
 *
 * profiles.def has the figures, their sources, and the meaning of their marks. None was measured
 * here; print a figure only with its mark.
 */
#ifndef CORNU_DEVICE_TPU_TOPOLOGY_H
#define CORNU_DEVICE_TPU_TOPOLOGY_H

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    double value;
    char   mark;   /* V, P, T, D, F, ? or - */
} CornuTpuFigure;

/* Units are in the names and in profiles.def; GB is 10^9 bytes, MiB 2^20. */
typedef struct {
    const char *name;         /* "v2-8" */
    const char *slice;        /* "2x2": how its chips are arranged */
#define CORNU_TPU_FIGURE(field, unit, what, v2, v3, v4, v5e, v5p, v6e) CornuTpuFigure field;
#include "profiles.def"
#undef CORNU_TPU_FIGURE
} CornuTpuProfile;

/* The profile of this name, "v2-8" for NULL; also "v2-512" and "v3-2048", the pods of v2 and v3.
 * NULL and CORNU_ERR_DEVICE for an unknown name; the message lists the known ones, the nearest
 * first. Profiles are constant and never freed. */
const CornuTpuProfile *cornu_tpu_profile(const char *name);

/* Profile i, NULL past the last: for iterating over all of them, pods excepted. */
const CornuTpuProfile *cornu_tpu_profile_at(int i);

/* ---- Derived figures ---- */

/* Arrays of one replica: those of its one or two cores. */
int64_t cornu_tpu_replica_mxus(const CornuTpuProfile *profile);

/* cores x MXUs x rows x columns x 2 x clock of a chip, in FLOP/s: equals peak_tflops up to the
 * vendor's rounding. */
double cornu_tpu_chip_flops(const CornuTpuProfile *profile);

/* A replica's share of its chip's memory, bytes. */
double cornu_tpu_replica_hbm(const CornuTpuProfile *profile);
/* A replica's share of the bandwidth of that memory, bytes per second. */
double cornu_tpu_replica_hbm_rate(const CornuTpuProfile *profile);

/* ---- Printing ---- */

/* A table with a row per figure and a column per profile, each number with its mark. */
void cornu_tpu_profiles_print(FILE *to);
/* The legend of the marks. */
void cornu_tpu_legend_print(FILE *to);

#ifdef __cplusplus
}
#endif
#endif
