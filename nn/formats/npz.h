/*
 * NumPy's .npz files: named arrays, as a zip archive of .npy members. numpy.load reads the files
 * written here; those of numpy.savez and savez_compressed are read here, and .npy files, of one
 * array.
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

/* Reads the whole file; the array of a .npy file is named "arr_0". NULL with CORNU_ERR_FILE if it
 * cannot be read, CORNU_ERR_FORMAT naming the defect, CORNU_ERR_UNSUPPORTED for objects (pickles)
 * and ranks that Cornu does not have. Arrays in Fortran's order or of the other byte order become
 * row-major and native; datasets/arrays/npy.h says what other dtypes become. */
CornuNpz *cornu_npz_open(const char *path);
/* With its arrays; NULL is ignored. */
void      cornu_npz_close(CornuNpz *file);

/* The number of arrays. */
int                    cornu_npz_count(const CornuNpz *file);
/* Array i, from 0, in the order of the file, valid until it is closed. */
const CornuNamedArray *cornu_npz_at(const CornuNpz *file, int i);
/* NULL, without an error, if there is no array of that name. */
const CornuNamedArray *cornu_npz_find(const CornuNpz *file, const char *name);

/* Writes the arrays in the given order; the file appears whole or not at all, and equal arguments
 * give equal bytes. CORNU_ERR_DTYPE for bf16, which NumPy does not have; CORNU_ERR_ARGUMENT for a
 * name that is given twice or longer than 65,531 bytes. */
CornuStatus cornu_npz_write(const char *path, const CornuNamedArray *arrays, int count);

#ifdef __cplusplus
}
#endif
#endif
