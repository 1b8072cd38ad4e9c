/*
 * NumPy's .npy and .npz files as data sets: rows are read from the files when they are asked for,
 * so that arrays larger than memory can be trained on.
 *
 *     CornuDataset *train = cornu_npy_dataset("x.npy", "y.npy");
 *     train = cornu_dataset_shuffle(train, seed);
 *
 * cornu_npz_open (nn/formats/npz.h) reads whole arrays instead.
 */
#ifndef CORNU_DATASETS_NPY_H
#define CORNU_DATASETS_NPY_H

#include "../pipeline/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The rows of arrays, along axis 0, which all of them have as many of: a component for each. A file
 * is "x.npy"; "data.npz:x_train", an array of an archive by its name; or "data.npz", its only one.
 *
 * Arrays are in C's or in Fortran's order, and of either byte order; in Fortran's a row is read in
 * as many pieces as it has elements, unless the rows before it have been read. Elements are f8, f4,
 * f2, i8, i4, u4, u1 and b1 as Cornu's dtype of that name; i2, i1 and u2 are delivered as i32, and
 * u8 as i64, with the same bits. The header of each file is read here.
 *
 * The rows of a member of an archive that is stored, as numpy.savez writes it, are read from the
 * file, without its checksum. One that is deflated, by savez_compressed, is inflated to memory.
 *
 * A file may be on another machine, https://, gs:// or s3://; see ../README.md.
 *
 * NULL and a pending error: CORNU_ERR_FILE for a file that cannot be read, CORNU_ERR_FORMAT naming
 * the defect of one, CORNU_ERR_UNSUPPORTED for other dtypes and more than CORNU_MAX_RANK axes,
 * CORNU_ERR_SHAPE for scalars and for different numbers of rows, CORNU_ERR_DATA for a name that an
 * archive does not have, CORNU_ERR_MEMORY for deflated arrays beyond the limit of memory.h. A file
 * that changes later, or cannot be read, fails the element.
 */
CornuDataset *cornu_npy_dataset_from(const char *const *files, int count);
#define cornu_npy_dataset(...)                                      \
    cornu_npy_dataset_from((const char *const[]){ __VA_ARGS__ },    \
                           (int)(sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *)))

#ifdef __cplusplus
}
#endif
#endif
