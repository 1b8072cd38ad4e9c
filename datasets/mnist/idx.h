/*
 * idx files, the format of MNIST: a header, then packed big-endian elements.
 *
 *     byte 0, 1   zero
 *     byte 2      element type: 0x08 u8, 0x0C i32, 0x0D f32, 0x0E f64
 *     byte 3      rank, 1 to 8 (CORNU_MAX_RANK)
 *     4 bytes     each extent, big-endian
 *
 * Source: "The MNIST database of handwritten digits", section "The IDX file format".
 */
#ifndef CORNU_DATASETS_IDX_H
#define CORNU_DATASETS_IDX_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reads a file, plain or compressed by gzip, into an array whose data are to be freed with free().
 * Memory grows with the bytes read and does not rely on the header.
 * CORNU_ERR_FILE if it cannot be read; CORNU_ERR_FORMAT if it is damaged, truncated, longer than
 * its header declares, or in another format. *array is unchanged on failure.
 */
CornuStatus cornu_idx_load(const char *path, CornuArray *array);

#ifdef __cplusplus
}
#endif
#endif
