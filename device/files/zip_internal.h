/*
 * Zip archives: Keras' .keras files and NumPy's .npz files.
 *
 * Members are written stored and dated 1980-01-01, so that equal members give equal bytes; they are
 * read stored or deflated. What exceeds 4 GiB or 65,534 members is written in ZIP64, without which
 * the bytes are those of a plain archive. Split archives, encrypted members and other methods are
 * refused by name.
 * Source: PKWARE, "APPNOTE.TXT - .ZIP File Format Specification", version 6.3.
 */
#ifndef CORNU_DEVICE_ZIP_INTERNAL_H
#define CORNU_DEVICE_ZIP_INTERNAL_H

#include "file_internal.h"
#include "input_internal.h"

#include <stdbool.h>

typedef struct {
    const char *name;
    const void *bytes;
    size_t      size;
} CornuZipMember;

/* Writes a new archive, as cornu_file_write does. */
CornuStatus cornu__zip_write(const char *path, const CornuZipMember *members, int count);

typedef struct CornuZip CornuZip;

/* Opens the archive, from which members are read when they are asked for, and checks its directory:
 * sizes and places within the file, members that overlap, repeated names, members that declare more
 * bytes than what is stored can expand to. NULL with a pending error naming the file. */
CornuZip   *cornu__zip_open(const char *path);
/* The same of an open file, which it takes; `name` is for messages. */
CornuZip   *cornu__zip_open_input(CornuInput *input, const char *name);
void        cornu__zip_close(CornuZip *zip);
int         cornu__zip_count(const CornuZip *zip);
const char *cornu__zip_name(const CornuZip *zip, int i);

/* The index of the member of this name, -1 if there is none. */
int cornu__zip_find(const CornuZip *zip, const char *name);

/* The bytes that member i has once it is inflated; and CORNU_ERR_FORMAT if there are more than
 * `most`, to be asked before such a member is read. */
size_t      cornu__zip_size(const CornuZip *zip, int i);
CornuStatus cornu__zip_check_size(const CornuZip *zip, int i, size_t most);

/* Where in the file the bytes of member i begin; *stored: whether they are there as they are, not
 * deflated. */
size_t cornu__zip_place(const CornuZip *zip, int i, bool *stored);

/* All bytes of member i, its checksum verified, followed by a NUL; the caller releases *bytes by
 * cornu__release. */
CornuStatus cornu__zip_read(const CornuZip *zip, int i, unsigned char **bytes, size_t *size);

#endif
