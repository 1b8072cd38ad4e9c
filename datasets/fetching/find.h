/*
 * Finding the files of a published data set.
 *
 * A data directory holds one folder per set (mnist/, fashion-mnist/, ...) with the files under
 * their published names; a file NAME.gz may also lie there unpacked, as NAME, which is then the
 * one that is read. The files of a set are looked for
 *
 *     in the directory that is given, or else named by CORNU_DATA: there they must be;
 *     without either: in ./data; in the user's cache ($XDG_CACHE_HOME/cornu or ~/.cache/cornu);
 *     and at last they are downloaded into that cache, or into ./data if there is none.
 *
 * A download is made by curl or else wget, gives up after 3 seconds without a connection or 10
 * without a byte, and keeps only a file of the right length and checksum. CORNU_DATA_URL
 * replaces the published addresses: FOLDER/NAME is appended to it.
 */
#ifndef CORNU_DATASETS_FIND_H
#define CORNU_DATASETS_FIND_H

#include <stddef.h>
#include <stdint.h>

#include "../../device/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *name;
    int64_t     bytes;
    const char *sha256; /* 64 hexadecimal digits, lower case */
} CornuDataFile;

/* A published set. The file's name is appended to an address; they are tried in their order. */
typedef struct {
    const char          *folder;
    const char *const   *addresses; /* up to a NULL */
    const CornuDataFile *files;
    int                  count;
    const char          *otherwise; /* for messages: what does without the files */
} CornuDataSource;

/* Told several times a second how much of a file has come, and once when it is complete. What
 * it returns: whether to go on; false ends the search with CORNU_ERR_INTERRUPTED. */
typedef bool CornuDownloadProgress(void *context, const CornuDataFile *file, int64_t received);

typedef struct {
    const char            *data;     /* the data directory; NULL: search */
    CornuDownloadProgress *progress; /* NULL: a download is silent       */
    void                  *context;  /* for progress                     */
} CornuDataSearch;

enum { CORNU_PATH_SIZE = 4096 };

/*
 * Writes the folder that holds all files of source, without a slash at its end.
 * CORNU_ERR_DATA names the missing file, where it was looked for, its address and checksum, and
 * what to do about it.
 */
CornuStatus cornu_data_find(const CornuDataSource *source, const CornuDataSearch *search,
                            char folder[CORNU_PATH_SIZE]);

/* Writes the path of a file of a set in its folder, the unpacked one if there is one. Whether it
 * is there to read. */
bool cornu_data_path(const char *folder, const CornuDataFile *file,
                     char path[2 * CORNU_PATH_SIZE]);

/* Writes the path of a file of anybody's: `name` itself, if there is such a file, else in the data
 * directory, where it is looked for as those of a set but not downloaded. CORNU_ERR_DATA. */
CornuStatus cornu_data_find_file(const char *name, const CornuDataSearch *search,
                                 char path[2 * CORNU_PATH_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
