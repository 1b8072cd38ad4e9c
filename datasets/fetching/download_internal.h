/* Downloads one file; see find.h. */
#ifndef CORNU_DATASETS_DOWNLOAD_INTERNAL_H
#define CORNU_DATASETS_DOWNLOAD_INTERNAL_H

#include "find.h"

typedef struct {
    int connect, stall; /* seconds */
} CornuDownloadPatience;

/*
 * Downloads url to folder/file->name, creating the folder. The data go to a temporary file in the
 * same folder, which is renamed if length and checksum are right and removed otherwise; temporary
 * files of killed processes are removed, too.
 * CORNU_ERR_DATA, with the message of curl or wget, if the download fails; CORNU_ERR_FILE if the
 * file cannot be written.
 */
CornuStatus cornu__download(const char *url, const char *folder, const CornuDataFile *file,
                            const CornuDataSearch *search, CornuDownloadPatience patience);

#endif
