/* The files of one kind in a folder of class folders. */
#ifndef CORNU_DATASETS_FILE_LIST_INTERNAL_H
#define CORNU_DATASETS_FILE_LIST_INTERNAL_H

#include <stdint.h>

#include "../../device/type.h"

/* A kind of files that data sets read, such as images. */
typedef struct {
    const char        *name;       /* "image", for messages */
    const char *const *suffixes;   /* NULL-terminated, in lower case: ".png" */
    /* Reads the header of a file, in the order of the list; may write to the settings. */
    CornuStatus      (*check)(const char *path, void *settings);
    /* Writes x, an array of the data set's type. */
    CornuStatus      (*read)(const char *path, const void *settings, CornuArray to);
    size_t             settings;   /* their bytes */
} CornuFileKind;

typedef struct {
    char   *path;     /* owned */
    int     folder;   /* length of the part before the last slash */
    int32_t label;
} CornuListedFile;

typedef struct {
    char           **classes;   /* owned, as the array is */
    int              class_count, class_space;
    CornuListedFile *files;     /* class after class, sorted by folder and then by name */
    int              count, space;
} CornuFileList;

/* Fills a zeroed list. names: the classes, NULL-terminated, or NULL for all folders. Free the list
 * in any case; on failure it is incomplete. Errors as in class_folder.h. */
CornuStatus cornu__file_list(CornuFileList *list, const CornuFileKind *kind, void *settings,
                             const char *directory, const char *const *names, bool follow_links);

void cornu__file_list_free(CornuFileList *list);

#endif
