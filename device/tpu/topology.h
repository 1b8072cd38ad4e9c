/*
 * Profiles of TPUs: how many chips, cores and arrays, how fast, how much memory.
 *
 *     const CornuTpuProfile *v3 = cornu_tpu_profile("v3-8");
 *     printf("%g MHz\n", v3->clock_mhz.value);
 *
 * The numbers, their sources and what their marks mean stand in profiles.def. Nothing here was
 * measured; whatever prints a figure prints its mark.
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
    char   mark;   /* V, P, T, D, F or ? */
} CornuTpuFigure;

/* Units are in the names and in profiles.def; GB are 10^9 bytes, MiB 2^20. */
typedef struct {
    const char *name;         /* "v2-8" */
    const char *slice;        /* "2x2": how its chips are arranged */
#define CORNU_TPU_FIGURE(field, unit, what, v2, v3, v4, v5e, v5p, v6e) CornuTpuFigure field;
#include "profiles.def"
#undef CORNU_TPU_FIGURE
} CornuTpuProfile;

/* The profile of this name, "v2-8" for NULL. NULL and CORNU_ERR_DEVICE for an unknown name; the
 * message lists the known ones, the nearest first. Profiles are constant and never freed. */
const CornuTpuProfile *cornu_tpu_profile(const char *name);

/* Profile i, NULL past the last: for walking over all of them. */
const CornuTpuProfile *cornu_tpu_profile_at(int i);

/* ---- What follows from the figures ---- */

/* Arrays that work on one replica: all those of its one or two cores. */
int64_t cornu_tpu_replica_mxus(const CornuTpuProfile *profile);

/* cores x MXUs x rows x columns x 2 x clock of a chip, in FLOP/s: agrees with peak_tflops, which
 * is rounded as sold. */
double cornu_tpu_chip_flops(const CornuTpuProfile *profile);

/* A replica's share of its chip's memory, bytes, and of the bandwidth, bytes per second. */
double cornu_tpu_replica_hbm(const CornuTpuProfile *profile);
double cornu_tpu_replica_hbm_rate(const CornuTpuProfile *profile);

/* ---- Printing ---- */

/* A table: a row per figure, a column per profile, each number with its mark; then what the
 * marks mean. */
void cornu_tpu_profiles_print(FILE *to);
void cornu_tpu_legend_print(FILE *to);

#ifdef __cplusplus
}
#endif
#endif
