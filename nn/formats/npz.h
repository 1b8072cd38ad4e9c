/*
 * NumPy's .npz files: named arrays, a zip archive of .npy members. numpy.load reads what is written
 * here, and what numpy.savez and savez_compressed wrote is read here.
 *
 *     6 bytes    "\x93NUMPY"            2 bytes    version, 1 0
 *     2 bytes    N, little-endian       (version 2 and 3: 4 bytes)
 *     N bytes    {'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }, blanks, a newline
 *     the rest   the array, row-major
 *
 * Source: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays".
 */
#ifndef CORNU_NN_NPZ_H
#define CORNU_NN_NPZ_H

#include "safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuNpz CornuNpz;

/* Reads all of it. NULL with CORNU_ERR_FILE if the file cannot be read, CORNU_ERR_FORMAT naming
 * what is wrong, CORNU_ERR_UNSUPPORTED for objects (pickles), column-major arrays, big-endian ones,
 * and dtypes or ranks that Cornu lacks. */
CornuNpz *cornu_npz_open(const char *path);
void      cornu_npz_close(CornuNpz *file);

/* Arrays in the order of the file; they live until it is closed. */
int                    cornu_npz_count(const CornuNpz *file);
const CornuNamedArray *cornu_npz_at(const CornuNpz *file, int i);
/* NULL, without an error, if there is none of that name. */
const CornuNamedArray *cornu_npz_find(const CornuNpz *file, const char *name);

/* Writes the arrays in their order; the file appears whole or not at all, and equal arguments give
 * equal bytes. CORNU_ERR_DTYPE for bf16, which NumPy does not have; CORNU_ERR_ARGUMENT for a name
 * given twice, or of more than 65,531 bytes. */
CornuStatus cornu_npz_write(const char *path, const CornuNamedArray *arrays, int count);

#ifdef __cplusplus
}
#endif
#endif
