/*
 * Zip archives: what Keras' .keras files and NumPy's .npz files are.
 *
 * Members are written stored, dated 1980-01-01, so that equal members give equal bytes; they are
 * read stored or deflated. Archives in parts, encrypted ones, other methods and more than 4 GiB
 * (ZIP64) are refused by name.
 * Source: PKWARE, "APPNOTE.TXT - .ZIP File Format Specification", version 6.3.
 */
#ifndef CORNU_NN_ZIP_INTERNAL_H
#define CORNU_NN_ZIP_INTERNAL_H

#include "file_internal.h"

typedef struct {
    const char *name;
    const void *bytes;
    size_t      size;
} CornuZipMember;

/* Writes a new archive, as cornu_file_write does. */
CornuStatus cornu__zip_write(const char *path, const CornuZipMember *members, int count);

typedef struct CornuZip CornuZip;

/* Reads the archive and checks its directory: sizes and places within the file, members that
 * overlap, names that are given twice, members that declare more than could be packed into what is
 * stored. NULL with a pending error naming the file. */
CornuZip   *cornu__zip_open(const char *path);
void        cornu__zip_close(CornuZip *zip);
int         cornu__zip_count(const CornuZip *zip);
const char *cornu__zip_name(const CornuZip *zip, int i);

/* The number of the member of this name, -1 without one. */
int cornu__zip_find(const CornuZip *zip, const char *name);

/* Member i whole, its checksum checked; the caller releases *bytes by cornu__release. A NUL stands
 * behind the last byte. */
CornuStatus cornu__zip_read(const CornuZip *zip, int i, unsigned char **bytes, size_t *size);

#endif
