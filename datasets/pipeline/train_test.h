/*
 * Training and test data as arrays: images and their labels, or sequences of characters and the
 * characters that follow.
 */
#ifndef CORNU_DATASETS_TRAIN_TEST_H
#define CORNU_DATASETS_TRAIN_TEST_H

#include "../../device/type.h"
#include "dataset.h"
#include "../fetching/find.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Plain data; cornu_train_test_free frees the arrays that have not been taken. */
typedef struct {
    CornuArray train_x, test_x; /* (N, ..), one row per sample                              */
    CornuArray train_y, test_y; /* integers (N) or (N, T): one or T labels per sample, less
                                   than `classes`                                           */
    int64_t            classes;
    const char *const *class_names; /* of each class: own_names, or names from the library.
                                       NULL: classes are characters                         */
    char             **own_names;   /* from cornu_train_test_rename, or NULL                */
    const char        *name;      /* "mnist", "fashion-mnist", "shakespeare" */
    const char        *things;    /* "digits", "garments", "characters"      */
    bool               synthetic; /* drawn by code; say so wherever a score is printed */
    char               description[CORNU_PATH_SIZE + 256]; /* one line: content, size, source */
} CornuTrainTest;

typedef struct {
    char        unset;
    const char *data;  /* a data directory; "synthetic"; NULL: search as find.h says      */
    int64_t     limit; /* at most so many training and test samples; default all          */
    uint64_t    seed;  /* of synthetic data                                               */
    CornuDownloadProgress *progress; /* default: a download is silent                     */
    void                  *context;  /* for progress                                      */
} CornuTrainTestConfig;

/* A data set of the training samples, components x and y, that takes the arrays' memory: their data
 * become NULL. The caller frees it. */
CornuDataset *cornu_train_test_take_train(CornuTrainTest *data);
/* Likewise of the test samples. */
CornuDataset *cornu_train_test_take_test(CornuTrainTest *data);

/* Renames the classes, as cornu_labels_read (labels.h) reads names: "cat,dog,…" or a file. The data
 * own the names. Errors as there, which leave the names unchanged. */
CornuStatus cornu_train_test_rename(CornuTrainTest *data, const char *list_or_path);

/* With the arrays that it still has; NULL is ignored. */
void cornu_train_test_free(CornuTrainTest *data);

#ifdef __cplusplus
}
#endif
#endif
