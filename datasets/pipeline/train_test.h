/*
 * What a model is trained and tested with, as arrays: images and their labels, or sequences of
 * characters and those that follow each.
 */
#ifndef CORNU_DATASETS_TRAIN_TEST_H
#define CORNU_DATASETS_TRAIN_TEST_H

#include "../../device/type.h"
#include "dataset.h"
#include "../fetching/find.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Plain data; cornu_train_test_free frees the arrays that are still there. */
typedef struct {
    CornuArray train_x, test_x; /* (N, ..), one row per sample                              */
    CornuArray train_y, test_y; /* integers (N) or (N, T): one or T labels of each sample,
                                   below classes                                            */
    int64_t            classes;
    const char *const *class_names; /* of each class; the data's own_names, or the library's.
                                       NULL: characters, which name themselves              */
    char             **own_names;   /* those of cornu_train_test_rename, or NULL            */
    const char        *name;      /* "mnist", "fashion-mnist", "shakespeare" */
    const char        *things;    /* "digits", "garments", "characters"      */
    bool               synthetic; /* drawn by code, and so said wherever a score is printed */
    char               description[CORNU_PATH_SIZE + 256]; /* one line: what, how many, whence */
} CornuTrainTest;

typedef struct {
    char        unset;
    const char *data;  /* a data directory; "synthetic"; NULL: search as find.h says      */
    int64_t     limit; /* at most so many samples of training, and of test; default all   */
    uint64_t    seed;  /* of synthetic data                                               */
    CornuDownloadProgress *progress; /* default: a download is silent                     */
    void                  *context;  /* for progress                                      */
} CornuTrainTestConfig;

/* A data set of components x and y. It takes the arrays' memory: their data are NULL then. */
CornuDataset *cornu_train_test_take_train(CornuTrainTest *data);
CornuDataset *cornu_train_test_take_test(CornuTrainTest *data);

/* Gives the classes other names, as cornu_labels_read (labels.h) reads them: "cat,dog,…" or
 * a file. They belong to the data. Errors as there; then the names stay. */
CornuStatus cornu_train_test_rename(CornuTrainTest *data, const char *list_or_path);

void cornu_train_test_free(CornuTrainTest *data);

#ifdef __cplusplus
}
#endif
#endif
