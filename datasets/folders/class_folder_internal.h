/*
 * Class folders as a data set: an element is x, what a kind reads from a file, and y, its class.
 * Source: keras/src/utils/dataset_utils.py.
 */
#ifndef CORNU_DATASETS_CLASS_FOLDER_INTERNAL_H
#define CORNU_DATASETS_CLASS_FOLDER_INTERNAL_H

#include <stddef.h>

#include "../pipeline/dataset.h"
#include "class_folder.h"
#include "file_list_internal.h"

/* Those of the settings that a config has, which lie there as in CornuClassFolderConfig:
 * CORNU__IS_CLASS_FOLDER checks it. */
#define CORNU__IS_CLASS_FOLDER(Config)                                             \
    _Static_assert(offsetof(Config, follow_links) - offsetof(Config, directory) == \
                   offsetof(CornuClassFolderConfig, follow_links), "the settings of " #Config)

/* A data set of a kind's files, x of this type. settings, of the kind, are copied; `members`
 * is the address of the member `directory` of a config.
 * NULL and a pending error: CORNU_ERR_DATA if there are no classes or no files, or a named class is
 * missing; CORNU_ERR_FILE if a folder cannot be read; CORNU_ERR_FORMAT, naming the files, if some
 * cannot be read; CORNU_ERR_ARGUMENT for settings out of range. */
CornuDataset *cornu__class_folder(const CornuFileKind *kind, const void *settings, CornuType type,
                                  const void *members);

/* The names of the classes of a data set of this kind, or one derived from it, *count of them; NULL
 * for others. Likewise the path of element i of the original order. */
const char *const *cornu__class_folder_names(const CornuDataset *dataset,
                                             const CornuFileKind *kind, int *count);
const char        *cornu__class_folder_path(const CornuDataset *dataset, const CornuFileKind *kind,
                                            int64_t i);

#endif
