/*
 * The versions of a model on disk, laid out as TensorFlow Serving's base_path/VERSION/:
 *
 *     PATH/3/model.keras      version 3: a folder of digits with one file that Cornu loads; of
 *                             several that one is taken whose name begins with "model."
 *     PATH/4.safetensors      version 4: the file itself
 *     PATH                    a file: version 1
 *
 * Names that begin with a dot, and all others, are ignored: files that are being written may lie
 * beside the versions until they are renamed.
 */
#ifndef CORNU_SERVE_FOLDER_H
#define CORNU_SERVE_FOLDER_H

#include <sys/stat.h>

#include "../json/reply.h"

/* A version's file. It is loaded again when its identity differs: it was replaced. */
typedef struct {
    int64_t     number;
    char       *path;
    struct stat identity;
    int         error;                 /* why nothing is known of its file, which may be there: an
                                          errno; 0: it is there */
} FolderVersion;

typedef struct {
    FolderVersion *versions;           /* ascending */
    int            count, space;
} FolderVersions;

/* The versions at `path`, which was read to its end. False with a problem otherwise: then nothing
 * is known of what is there. */
bool folder_list(const char *path, FolderVersions *versions, Problem *problem);
void folder_free(FolderVersions *versions);

bool folder_same_file(const struct stat *a, const struct stat *b);

/* Calls `visit` with the name of each subfolder that a model may have, also of those of which only
 * the name can be read; stops when it returns false. True if all have been visited. */
bool folder_models(const char *path, bool (*visit)(void *context, const char *name), void *context,
                   Problem *problem);

#endif
