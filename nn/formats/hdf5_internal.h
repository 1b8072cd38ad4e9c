/*
 * HDF5 files as Keras writes them: nested groups, arrays of numbers, strings as attributes.
 *
 * Read and written by libhdf5, if its header was present when Cornu was built and the library is
 * found when the first file is opened; otherwise cornu__hdf5_open and cornu__hdf5_create fail with
 * CORNU_ERR_UNSUPPORTED and say what to install. Files are read from and written to memory; names
 * are paths from the root, "layers/dense/vars/0". libhdf5 serves one thread at a time: while a file
 * is open, other threads that open or create one wait. The thread that opened a file closes it.
 *
 * Untrusted files: soft and external links, external and virtual arrays, filters of plug-ins, and
 * arrays that declare more than 1 MiB and more than 1032 times what is stored are refused. libhdf5
 * prints nothing while a file is open.
 */
#ifndef CORNU_NN_HDF5_INTERNAL_H
#define CORNU_NN_HDF5_INTERNAL_H

#include "../../device/status_internal.h"
#include "../../device/type.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct CornuHdf5 CornuHdf5;

/* ---- Reading ---- */

/* Opens a file in memory, where it must stay until closed. NULL with a pending error. */
CornuHdf5 *cornu__hdf5_open(const void *bytes, size_t size);
void       cornu__hdf5_close(CornuHdf5 *file);

/* Whether there is an object of this name. CORNU_ERR_UNSUPPORTED for a soft or external link on the
 * way. */
CornuStatus cornu__hdf5_has(CornuHdf5 *file, const char *path, bool *has);

/* The number of members of a group; 0 if there is no such group. */
CornuStatus cornu__hdf5_count(CornuHdf5 *file, const char *group, int64_t *count);

/* The name of member i of a group, in the order of their names. CORNU_ERR_UNSUPPORTED for one of
 * more than CORNU_HDF5_NAME - 1 bytes. */
enum { CORNU_HDF5_NAME = 256 };
CornuStatus cornu__hdf5_member(CornuHdf5 *file, const char *group, int64_t i,
                               char name[CORNU_HDF5_NAME]);

/* The shape of an array and the dtype that holds its numbers. */
CornuStatus cornu__hdf5_type(CornuHdf5 *file, const char *path, CornuType *type);

/* Reads an array of the shape of to->type, converted to its dtype: f32, f64, i32, i64 or u8. If
 * to->data is NULL, memory is allocated once the file is known to hold that much; the caller
 * releases it by cornu__release. */
CornuStatus cornu__hdf5_read(CornuHdf5 *file, const char *path, CornuArray *to);

/* An attribute of a group that is a string or a list of strings; *count is -1 if there is none. The
 * caller releases them by cornu__hdf5_free_texts. */
CornuStatus cornu__hdf5_texts(CornuHdf5 *file, const char *group, const char *attribute,
                              char ***texts, int64_t *count);
void        cornu__hdf5_free_texts(char **texts, int64_t count);

/* String i of an attribute of strings of variable length, of the object whose header is at byte
 * `header`. Does not use libhdf5 (1.10.8), which trusts the lengths that the file states. */
bool cornu__hdf5_find_text(const unsigned char *bytes, size_t size, uint64_t header,
                           const char *attribute, int64_t i, const char **text, size_t *length);

/* ---- Writing ---- */

/* A new file. NULL with a pending error. */
CornuHdf5 *cornu__hdf5_create(void);

/* These create the groups on the way. */
CornuStatus cornu__hdf5_write_group(CornuHdf5 *file, const char *path);
CornuStatus cornu__hdf5_write(CornuHdf5 *file, const char *path, CornuArray array);
/* f32 in fewer bytes: whole numbers from -128 to 127, float16, or bfloat16 as h5py has it: opaque,
 * with the attribute dtype. Values must fit. Reading gives f32 again. */
typedef enum { CORNU_HDF5_I8, CORNU_HDF5_F16, CORNU_HDF5_BF16 } CornuHdf5Narrow;
CornuStatus cornu__hdf5_write_narrow(CornuHdf5 *file, const char *path, CornuArray array,
                                     CornuHdf5Narrow narrow);
CornuStatus cornu__hdf5_write_text(CornuHdf5 *file, const char *group, const char *attribute,
                                   const char *text);
/* A list of strings, of which an attribute takes at most CORNU_HDF5_MOST_TEXTS: else
 * CORNU_ERR_UNSUPPORTED. */
enum { CORNU_HDF5_MOST_TEXTS = 4000 };   /* of 16 bytes each in a header of 64 KiB */
CornuStatus cornu__hdf5_write_texts(CornuHdf5 *file, const char *group, const char *attribute,
                                    const char *const *texts, int64_t count);

/* The file so far; equal contents give equal bytes. The caller releases *bytes by
 * cornu__release. */
CornuStatus cornu__hdf5_bytes(CornuHdf5 *file, unsigned char **bytes, size_t *size);

#endif
