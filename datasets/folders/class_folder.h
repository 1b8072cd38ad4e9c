/* What data sets of class folders share: a folder for each class, with its files. */
#ifndef CORNU_DATASETS_CLASS_FOLDER_H
#define CORNU_DATASETS_CLASS_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    CORNU_LABELS_INT,          /* y i32 (): the index of the class */
    CORNU_LABELS_CATEGORICAL,  /* y f32 (classes): 1 for the class, else 0 */
    CORNU_LABELS_BINARY        /* y f32 (1): 0 or 1, of two classes */
} CornuLabelMode;

typedef enum { CORNU_SUBSET_ALL, CORNU_SUBSET_TRAINING, CORNU_SUBSET_VALIDATION } CornuSubset;

/* The members of CornuClassFolderConfig, which the configs of such data sets begin with:
 *
 *     directory         required
 *     class_names       folders, NULL-terminated, in the order of their indices; default all, in
 *                       byte order
 *     no_shuffle        class by class, files sorted by path; else in a random order by the seed,
 *                       which is not Keras'
 *     validation_split  0 to 1: the fraction for validation, the last files in the order; both
 *                       subsets need the same seed
 *     subset            required with a split, else not allowed
 *     follow_links      descend into linked folders
 */
#define CORNU_CLASS_FOLDER_MEMBERS       \
    const char        *directory;        \
    CornuLabelMode     label_mode;       \
    const char *const *class_names;      \
    bool               no_shuffle;       \
    uint64_t           seed;             \
    double             validation_split; \
    CornuSubset        subset;           \
    bool               follow_links

typedef struct {
    CORNU_CLASS_FOLDER_MEMBERS;
} CornuClassFolderConfig;

enum { CORNU_MAX_FOLDER_CLASSES = 65536, CORNU_MAX_FOLDER_DEPTH = 32 };

#endif
