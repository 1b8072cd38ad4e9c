/*
 * The processor that every device here computes on. limits.h measures what it can do.
 *
 *     CornuProcessor processor;
 *     if (cornu_processor_describe(&processor) == CORNU_OK)
 *         printf("%s with %s\n", processor.name, processor.isa);
 */
#ifndef CORNU_DEVICE_HOST_PROCESSOR_H
#define CORNU_DEVICE_HOST_PROCESSOR_H

#include <stdint.h>

#include "../../status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Strings are constants, not to be freed. */
typedef struct {
    const char *name;            /* "AMD EPYC 9R14 96-Core Processor", "unknown CPU"        */
    const char *isa;             /* the instruction set in use, by its name in CORNU_ISA    */
    const char *best_isa;        /* the highest that processor and system support           */
    int64_t     l1d, l2, l3;     /* bytes of cache; 32 KiB, 512 KiB and 0 if not known      */
    int         threads;         /* that a device uses by default, at least 1               */
} CornuProcessor;

/* CORNU_ERR_ARGUMENT where the environment variable CORNU_ISA names no instruction set,
 * CORNU_ERR_DEVICE where it names one that this processor lacks; *processor is untouched then. */
CornuStatus cornu_processor_describe(CornuProcessor *processor);

#ifdef __cplusplus
}
#endif
#endif
