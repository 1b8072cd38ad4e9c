/* The image files in a folder of class folders. */
#ifndef CORNU_DATASETS_IMAGE_LIST_INTERNAL_H
#define CORNU_DATASETS_IMAGE_LIST_INTERNAL_H

#include <stdint.h>

#include "../../device/status.h"

typedef struct {
    char   *path;     /* owned */
    int     folder;   /* length of the part before the last slash */
    int32_t label;
} CornuImageFile;

typedef struct {
    char          **classes;   /* owned, as the array is */
    int             class_count, class_space;
    CornuImageFile *files;     /* class after class, sorted by folder and then by name */
    int             count, space;
} CornuImageList;

/* Fills a zeroed list. names: the classes, NULL-terminated, or NULL for all folders. Free the list
 * in any case; on failure it is incomplete. Errors as in image_folder.h. */
CornuStatus cornu__image_list(CornuImageList *list, const char *directory,
                              const char *const *names, bool follow_links);

void cornu__image_list_free(CornuImageList *list);

#endif
