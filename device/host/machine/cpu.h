/*
 * What this machine offers: instruction sets, caches, and how many threads to start.
 *
 * On x86-64 CPUID tells the instruction sets and XGETBV the registers that the operating system
 * saves; on arm64 Linux tells. On other processors all kernels are the portable ones.
 */
#ifndef CORNU_DEVICE_HOST_CPU_H
#define CORNU_DEVICE_HOST_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../status.h"
#include "isa.h"

const char *cornu__isa_name(CornuIsa isa);

typedef struct {
    char     name[64];      /* "AMD EPYC 9R14 96-Core Processor", "unknown CPU"      */
    CornuIsa best;          /* the highest that processor and system support */
    CornuIsa preferred;     /* the fastest, by the processor's maker                */
    bool     vnni;          /* has AVX-512 VNNI, products of int8; then best is at least avx512 */
    bool     halves;        /* runs 512-bit instructions as two of 256 bits            */
    int64_t  l1d, l2, l3;   /* bytes of cache; 32 KiB, 512 KiB and 0 if not known    */
} CornuCpu;

/* Detected once; never fails. */
const CornuCpu *cornu__cpu(void);

/* The instruction set to use from now on: the preferred one, or that of the environment variable
 * CORNU_ISA, at most the best. CORNU_ERR_ARGUMENT for an unknown name, CORNU_ERR_DEVICE for one
 * that this processor lacks. Devices call this when they open. */
CornuStatus cornu__cpu_isa(CornuIsa *isa);

/* The last answer, without reading the environment; the preferred set before the first. */
CornuIsa cornu__isa_in_use(void);

/* Writes what differs from host to host and from boot to boot, without a line's end; "" if this
 * system does not say. */
void cornu__boot_id(char *id, size_t size);

/* Default number of threads: the processors that this process may run on, but at most its cgroups'
 * CPU quota rounded up; at least 1. */
int cornu__cpu_threads(void);

/* The quota alone, in processors rounded up; INT_MAX without one. `membership` is a file like
 * /proc/self/cgroup, `mount` where the cgroup file systems are, versions 1 and 2. */
int cornu__cpu_quota(const char *membership, const char *mount);

#endif
