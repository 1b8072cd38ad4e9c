/* One file from one address; see find.h. */
#ifndef CORNU_DATASETS_DOWNLOAD_INTERNAL_H
#define CORNU_DATASETS_DOWNLOAD_INTERNAL_H

#include "find.h"

typedef struct {
    int connect, stall; /* seconds */
} CornuDownloadPatience;

/*
 * Fetches url into folder/file->name, making the folder. The bytes arrive in a temporary file
 * beside it, which is renamed when length and checksum are right and removed otherwise; one
 * that a killed process left is removed, too.
 * CORNU_ERR_DATA if they cannot be had, with what curl or wget said; CORNU_ERR_FILE if they
 * cannot be stored.
 */
CornuStatus cornu__download(const char *url, const char *folder, const CornuDataFile *file,
                            const CornuDataSearch *search, CornuDownloadPatience patience);

#endif
