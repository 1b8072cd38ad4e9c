/*
 * HDF5 files as Keras writes them: groups in groups, arrays of numbers, texts as attributes.
 *
 * By libhdf5, if its header was there when Cornu was built and the library is when the first file
 * is opened; without it cornu__hdf5_open and cornu__hdf5_create are CORNU_ERR_UNSUPPORTED and say
 * how to get it. Files are read from and written to memory; names are paths from the root,
 * "layers/dense/vars/0". libhdf5 serves one thread at a time: while a file is open, other threads
 * that open or make one wait, and the thread that opened it closes it.
 *
 * What nobody vouches for: links but plain ones, external and virtual arrays, filters of plug-ins,
 * and arrays that declare more than 1 MiB and more than 1032 times what is stored are refused.
 * libhdf5 prints nothing while a file is open.
 */
#ifndef CORNU_NN_HDF5_INTERNAL_H
#define CORNU_NN_HDF5_INTERNAL_H

#include "../../device/status_internal.h"
#include "../../device/type.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct CornuHdf5 CornuHdf5;

/* ---- Reading ---- */

/* A file in memory, where it stays until it is closed. NULL with a pending error. */
CornuHdf5 *cornu__hdf5_open(const void *bytes, size_t size);
void       cornu__hdf5_close(CornuHdf5 *file);

/* Whether there is something of this name: CORNU_ERR_UNSUPPORTED for a link on the way that is
 * none of the file's own. */
CornuStatus cornu__hdf5_has(CornuHdf5 *file, const char *path, bool *has);

/* How many members a group has; 0 where there is none. */
CornuStatus cornu__hdf5_count(CornuHdf5 *file, const char *group, int64_t *count);

/* The type of an array: the dtype that holds its numbers. */
CornuStatus cornu__hdf5_type(CornuHdf5 *file, const char *path, CornuType *type);

/* The array, converted to the dtype of to->type: f32, f64, i32, i64, u8; of its shape. Data that
 * are NULL get memory, which cornu__release frees, when the file is known to hold so much. */
CornuStatus cornu__hdf5_read(CornuHdf5 *file, const char *path, CornuArray *to);

/* An attribute of a group that is a text, or a list of texts; *count -1 where there is none. They
 * are released by cornu__hdf5_free_texts. */
CornuStatus cornu__hdf5_texts(CornuHdf5 *file, const char *group, const char *attribute,
                              char ***texts, int64_t *count);
void        cornu__hdf5_free_texts(char **texts, int64_t count);

/* Text i of an attribute of the object whose header is at byte `header`, where texts of any length
 * are kept; without libhdf5 (1.10.8), which believes what a file says of them. */
bool cornu__hdf5_find_text(const unsigned char *bytes, size_t size, uint64_t header,
                           const char *attribute, int64_t i, const char **text, size_t *length);

/* ---- Writing ---- */

/* A new file. NULL with a pending error. */
CornuHdf5 *cornu__hdf5_create(void);

/* Groups on the way are made. */
CornuStatus cornu__hdf5_write_group(CornuHdf5 *file, const char *path);
CornuStatus cornu__hdf5_write(CornuHdf5 *file, const char *path, CornuArray array);
CornuStatus cornu__hdf5_write_text(CornuHdf5 *file, const char *group, const char *attribute,
                                   const char *text);

/* The bytes of the file so far, which do not depend on time or place; the caller releases *bytes
 * by cornu__release. */
CornuStatus cornu__hdf5_bytes(CornuHdf5 *file, unsigned char **bytes, size_t *size);

#endif
