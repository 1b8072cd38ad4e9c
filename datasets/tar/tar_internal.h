/* Shared by the files of tar archives. */
#ifndef CORNU_DATASETS_TAR_INTERNAL_H
#define CORNU_DATASETS_TAR_INTERNAL_H

#include "../files/inputs_internal.h"
#include "../records/feature_internal.h"
#include "tar.h"

enum { CORNU__TAR_BLOCK = 512, CORNU__TAR_NAME = 4096 };

/* A file of an archive. */
typedef struct {
    char    name[CORNU__TAR_NAME];   /* NUL-terminated */
    bool    is_file;                 /* not a folder, link or device */
    int64_t header;                  /* where its own header is */
    int64_t at, size;                /* its bytes */
    int64_t next;                    /* the header after it */
} CornuTarMember;

/* Reads the member whose header, with those that extend it, is at byte `at`; *end: the archive ends
 * there. CORNU_ERR_FORMAT, CORNU_ERR_UNSUPPORTED, not naming the file. */
CornuStatus cornu__tar_member(CornuReader *reader, int file, int64_t at, CornuTarMember *member,
                              bool *end);

/* A file of a sample; at -1: it has none. */
typedef struct { int64_t at, size; } CornuTarPlace;

typedef struct {
    CornuInputs      *inputs;
    CornuFeatureTable table;
    int64_t          *start;    /* owned: of each sample, its first header */
    CornuTarPlace    *places;   /* owned: of each sample one for each row of the table */
    int64_t          *first;    /* owned: of each file the number of its first sample, then the
                                   count of all */
} CornuTar;

/* Finds all samples. Errors name file, member and byte. */
CornuStatus cornu__tar_index(CornuTar *tar);

/* The extension that a row takes numbers or strings from, of those that its name lists. */
typedef enum { CORNU__TAR_TEXT, CORNU__TAR_NPY, CORNU__TAR_JSON } CornuTarSource;
CornuTarSource cornu__tar_source(const CornuFeatureRow *row);

/* Writes a file of a sample to the components of a row. Errors do not name it. */
CornuStatus cornu__tar_decode(const CornuFeatureRow *row, const unsigned char *bytes, size_t size,
                              void *const *to);

#endif
