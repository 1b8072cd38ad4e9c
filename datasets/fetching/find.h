/*
 * Finding the files of a published data set.
 *
 * A data directory has one folder per set (mnist/, fashion-mnist/, ...) with the files under their
 * published names. A file NAME.gz may also be there uncompressed, as NAME, which then takes
 * precedence. The files of a set must be
 *
 *     in the given directory, or else in the one that CORNU_DATA names.
 *     Without either they are searched for in ./data, then in the user's cache
 *     ($XDG_CACHE_HOME/cornu or ~/.cache/cornu), and finally downloaded into that cache, or into
 *     ./data if there is none.
 *
 * Downloads use curl or else wget, give up after 3 seconds without a connection or 10 seconds
 * without data, and keep a file only if its length and checksum are right. CORNU_DATA_URL replaces
 * the published addresses: FOLDER/NAME is appended to it.
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

/* A published set. File names are appended to an address; addresses are tried in order. */
typedef struct {
    const char          *folder;
    const char *const   *addresses; /* NULL-terminated */
    const CornuDataFile *files;
    int                  count;
    const char          *otherwise; /* for messages: what to do without the files */
} CornuDataSource;

/* Called several times a second with the number of bytes received, and once when the file is
 * complete. Returns whether to continue; false ends the search with CORNU_ERR_INTERRUPTED. */
typedef bool CornuDownloadProgress(void *context, const CornuDataFile *file, int64_t received);

typedef struct {
    const char            *data;     /* the data directory; NULL: search */
    CornuDownloadProgress *progress; /* NULL: a download is silent       */
    void                  *context;  /* for progress                     */
} CornuDataSearch;

enum { CORNU_PATH_SIZE = 4096 };

/*
 * Writes the path of the folder with all files of the set, without a trailing slash.
 * CORNU_ERR_DATA names the missing file, where it was looked for, its address and checksum, and
 * what to do about it.
 */
CornuStatus cornu_data_find(const CornuDataSource *source, const CornuDataSearch *search,
                            char folder[CORNU_PATH_SIZE]);

/* Writes the path of a file of a set in its folder, uncompressed if there is such a file. Returns
 * whether it can be read. */
bool cornu_data_path(const char *folder, const CornuDataFile *file,
                     char path[2 * CORNU_PATH_SIZE]);

/* Writes the path of any file: `name` itself if it exists, else in the data directories, which are
 * searched as for a set, but without downloading. CORNU_ERR_DATA if it is not found. */
CornuStatus cornu_data_find_file(const char *name, const CornuDataSearch *search,
                                 char path[2 * CORNU_PATH_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
