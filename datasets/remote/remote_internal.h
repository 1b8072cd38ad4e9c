/*
 * Files of other machines: https://HOST/PATH, http://HOST/PATH, gs://BUCKET/OBJECT and
 * s3://BUCKET/KEY, wherever a data set takes the path of a file.
 *
 * A file is read in parts of a few megabytes, by requests for ranges of its bytes, which curl
 * sends; the parts are in a folder of the user's cache, of a bounded size, from which what was used
 * longest ago is removed. remote.c is a file, transfer.c a request, parts.c the folder.
 *
 *     CORNU_CACHE        the folder; default ${XDG_CACHE_HOME:-~/.cache}/cornu/remote
 *     CORNU_CACHE_SIZE   the most bytes in it, as 500M or 20G; default 10G
 *
 * A bucket is read as anyone may, and, if the server refuses that, with the user's credentials:
 * `gcloud auth print-access-token` gives a token, `aws s3 presign` an address that is signed. Curl
 * does the transfer then, too: `gcloud storage cat` and `aws s3api get-object` start an interpreter
 * for each range, a second of a processor. Neither token nor signature, nor the query of an
 * address, is in a message or in another program's arguments.
 *
 * AWS_ENDPOINT_URL names another server of S3's protocol, STORAGE_EMULATOR_HOST one of Google
 * Cloud Storage's, as for the programs of both.
 */
#ifndef CORNU_DATASETS_REMOTE_INTERNAL_H
#define CORNU_DATASETS_REMOTE_INTERNAL_H

#include <stdbool.h>

#include "../files/inputs_internal.h"

/* Whether a path is the address of such a file. */
bool cornu__is_remote(const char *path);

/* Writes an address as messages name it: without its query and what is before an @ of the host. */
void cornu__remote_shown(const char *address, char shown[CORNU__SHOWN]);

/*
 * Asks for the size of a file, and whether it is still the one whose parts are in the cache. It is
 * read by several threads at a time; what follows a request that follows another is fetched ahead,
 * in a thread.
 * Errors do not name the address. CORNU_ERR_FILE if it cannot be read, or if it is not the same any
 * more when it is; CORNU_ERR_ARGUMENT for an address that is none; CORNU_ERR_UNSUPPORTED without
 * curl, or for a server that does not say how long the file is.
 */
CornuStatus cornu__remote_open(CornuInput *input, const char *address);

/* Calls `add` for each object of a bucket that a pattern of * ? and [...] stands for, sorted by
 * byte. CORNU_ERR_DATA if there is none. */
CornuStatus cornu__remote_match(const char *pattern,
                                CornuStatus (*add)(void *context, const char *address),
                                void *context);

/* How long servers are waited for. Tests shorten it. */
typedef struct {
    int    connect, stall;   /* seconds without a connection, without a byte */
    int    tries;            /* of a request that brings nothing, one after the other */
    double pause;            /* seconds after the first, twice as long after each other one */
} CornuRemotePatience;

extern CornuRemotePatience cornu__remote_patience;

#endif
