/*
 * The .npy format, and how its elements become a host array's.
 *
 *     6 bytes    "\x93NUMPY"            2 bytes    version, 1 0
 *     2 bytes    N, little-endian       (version 2 and 3: 4 bytes)
 *     N bytes    {'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }, blanks, a newline
 *     the rest   the array, row-major, or column-major with fortran_order
 *
 * Source: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays".
 */
#ifndef CORNU_DATASETS_NPY_INTERNAL_H
#define CORNU_DATASETS_NPY_INTERNAL_H

#include <stdbool.h>

#include "../../device/type.h"

/* What precedes the bytes whose number is in the file, and the most that a header may have. */
enum { CORNU__NPY_MAGIC = 6, CORNU__NPY_START = 12, CORNU__NPY_MOST = 1 << 16 };
extern const char cornu__npy_magic[];

/* A dtype of NumPy's. `to` is the dtype of the host array: its own, or one that holds it. */
typedef struct {
    char       name[3];      /* "f4": without the byte order */
    CornuDtype to;
    size_t     size;         /* bytes of an element in the file */
    bool       is_signed;    /* of those that are converted */
} CornuNpyDtype;

typedef struct {
    CornuType            type;            /* of the host array */
    const CornuNpyDtype *dtype;
    bool                 swapped;         /* in the byte order that is not this machine's */
    bool                 column_major;
} CornuNpy;

/* The row of Cornu's dtype, NULL for bf16. */
const CornuNpyDtype *cornu__npy_dtype(CornuDtype dtype);

/* The bytes that the header has in all, from the first CORNU__NPY_START bytes of an array, of which
 * `size` are there; CORNU_ERR_FORMAT if these are not the beginning of one. */
CornuStatus cornu__npy_header_size(const unsigned char *bytes, size_t size, size_t *header);

/* Parses a header of that size. CORNU_ERR_FORMAT naming the defect, CORNU_ERR_UNSUPPORTED for
 * objects (pickles), strings, structures, complex numbers, dates, and ranks that Cornu lacks. */
CornuStatus cornu__npy_parse(const unsigned char *bytes, size_t header, CornuNpy *array);

/* Bytes of the elements in the file; they fit an int64_t. */
int64_t cornu__npy_bytes(const CornuNpy *array);

/* Whether elements in the file are those of the host array, in the same order. */
bool cornu__npy_is_exact(const CornuNpy *array);

/* Converts `count` elements; `from` need not be aligned. */
void cornu__npy_convert(const CornuNpy *array, const void *from, int64_t count, void *to);

/* Copies row-major elements of a shape, each of `size` bytes, from a column-major array in which
 * neighbours along the first of these axes are `stride` elements apart. */
void cornu__npy_transpose(CornuShape shape, size_t size, const void *from, int64_t stride,
                          void *to);

#endif
