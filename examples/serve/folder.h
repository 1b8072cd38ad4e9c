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

#include "reply.h"

/* A version's file. It is loaded again when its identity differs: it was replaced. */
typedef struct {
    int64_t     number;
    char       *path;
    struct stat identity;
} FolderVersion;

typedef struct {
    FolderVersion *versions;           /* ascending */
    int            count, space;
} FolderVersions;

/* The versions at `path`; none if it does not exist. False when memory runs out. */
bool folder_list(const char *path, FolderVersions *versions, Problem *problem);
void folder_free(FolderVersions *versions);

bool folder_same_file(const struct stat *a, const struct stat *b);

/* Calls `visit` with the name of each subfolder that a model may have; stops when it returns
 * false. */
bool folder_models(const char *path, bool (*visit)(void *context, const char *name), void *context,
                   Problem *problem);

#endif
