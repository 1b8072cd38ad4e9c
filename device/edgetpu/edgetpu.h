/*
 * The Edge TPU of Coral's USB, M.2 and PCIe accelerators, emulated: models of 8 bits give the
 * integers of kernels.h on this processor, and what they would cost there is modelled from
 * published figures. Nothing here has run on an Edge TPU.
 *
 * The model is a bound from below: products at the published peak, all other operators free, and
 * bytes at the speed of the link. Operators that Coral's compiler does not map run on the host
 * there; their time is not modelled, only their number is given.
 *
 * Sources:
 *   4 TOPS at 2 TOPS per watt           Coral USB Accelerator datasheet, section 1
 *   8 MB of SRAM that cache parameters  coral.ai/docs/edgetpu/compiler, "Parameter data caching"
 *   USB 3.1 Gen 1, or PCIe Gen 2 x1     datasheets of the USB and M.2 accelerators: 5 Gb/s each,
 *                                       of which the 8b/10b code leaves 500 MB/s
 *   operators                           coral.ai/docs/edgetpu/models-intro, "Supported operations"
 */
#ifndef CORNU_DEVICE_EDGETPU_EDGETPU_H
#define CORNU_DEVICE_EDGETPU_EDGETPU_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What Coral publishes of its accelerator. */
typedef struct {
    const char *name;              /* "Coral Edge TPU" */
    double      ops_per_s;         /* a multiply-add is two */
    double      watts;             /* at that rate */
    int64_t     cache_bytes;       /* for parameters */
    double      link_bytes_per_s;
} CornuEdgeTpuProfile;

extern const CornuEdgeTpuProfile cornu_edgetpu_profile;

/* One operator, for one row of the input. */
typedef struct {
    const char *name;              /* "CONV_2D" */
    int64_t     multiply_adds;
    int64_t     parameter_bytes;   /* weights and biases */
    bool        mapped;            /* runs on the Edge TPU, else on the host */
    const char *why;               /* if not */
} CornuEdgeTpuOperator;

/* What the model says of a network on it, run on one row at a time. */
typedef struct {
    int     mapped, host;          /* operators */
    int64_t multiply_adds;         /* of those that are mapped, as the next two */
    int64_t cached_bytes;          /* parameters that stay in the SRAM */
    int64_t streamed_bytes;        /* that are sent again for each row */
    int64_t moved_bytes;           /* of input and output */
    double  compute_s, transfer_s, total_s;
    double  joules;                /* total_s at the profile's watts */
} CornuEdgeTpuCost;

/* Operators in their order. As Coral's compiler, once one is not mapped none after it is: the
 * fields of the operators are changed accordingly. */
CornuEdgeTpuCost cornu_edgetpu_cost(CornuEdgeTpuOperator *operators, int count,
                                    int64_t moved_bytes);

#ifdef __cplusplus
}
#endif
#endif
