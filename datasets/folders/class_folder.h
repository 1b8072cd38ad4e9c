/* What data sets of class folders share: a folder for each class, with its files. */
#ifndef CORNU_DATASETS_CLASS_FOLDER_H
#define CORNU_DATASETS_CLASS_FOLDER_H

typedef enum {
    CORNU_LABELS_INT,          /* y i32 (): the index of the class */
    CORNU_LABELS_CATEGORICAL,  /* y f32 (classes): 1 for the class, else 0 */
    CORNU_LABELS_BINARY        /* y f32 (1): 0 or 1, of two classes */
} CornuLabelMode;

typedef enum { CORNU_SUBSET_ALL, CORNU_SUBSET_TRAINING, CORNU_SUBSET_VALIDATION } CornuSubset;

enum { CORNU_MAX_FOLDER_CLASSES = 65536, CORNU_MAX_FOLDER_DEPTH = 32 };

#endif
