/*
 * MNIST (handwritten digits) and Fashion-MNIST (garments): 60,000 training and 10,000 test
 * images, 28x28, grey, light on black, in ten classes.
 *
 *     CornuImageData *mnist = cornu_mnist_load(.data = "synthetic", .limit = 1000);
 *
 * Sources: LeCun, Cortes, Burges, "The MNIST database of handwritten digits"; Xiao, Rasul,
 * Vollgraf, "Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms"
 * (arXiv:1708.07747).
 */
#ifndef CORNU_DATASETS_MNIST_H
#define CORNU_DATASETS_MNIST_H

#include "../device/type.h"
#include "dataset.h"
#include "find.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Plain data; cornu_image_data_free frees the arrays that are still there. */
typedef struct {
    CornuArray train_x, test_x; /* u8 (N, 28, 28) */
    CornuArray train_y, test_y; /* u8 (N,), each below classes */
    int                classes;
    const char *const *class_names; /* of each class; the library's, or own_names */
    char             **own_names;   /* those of cornu_image_data_rename, or NULL */
    const char        *name;      /* "mnist", "fashion-mnist" */
    const char        *things;    /* "digits", "garments" */
    bool               synthetic; /* drawn by code, and so said wherever a score is printed */
    char               description[CORNU_PATH_SIZE + 256]; /* one line: what, how many, whence */
} CornuImageData;

typedef struct {
    char        unset;
    const char *data;  /* a data directory; "synthetic"; NULL: search as find.h says     */
    int64_t     limit; /* at most so many images of training, and of test; default all   */
    uint64_t    seed;  /* of synthetic images                                            */
    CornuDownloadProgress *progress; /* default: a download is silent                    */
    void                  *context;  /* for progress                                     */
} CornuImageDataConfig;

/*
 * Loads both parts and checks that images and labels agree in number, that images are 28x28 and
 * labels known. NULL with CORNU_ERR_DATA if files are not to be had, CORNU_ERR_FILE,
 * CORNU_ERR_FORMAT, CORNU_ERR_SHAPE or CORNU_ERR_VALUE if they are not what they should be; the
 * message names the file.
 */
#define cornu_mnist_load(...) \
    cornu_mnist_load_from(&(CornuImageDataConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_fashion_mnist_load(...) \
    cornu_fashion_mnist_load_from(&(CornuImageDataConfig){ .unset = 0, __VA_ARGS__ })
CornuImageData *cornu_mnist_load_from(const CornuImageDataConfig *config);
CornuImageData *cornu_fashion_mnist_load_from(const CornuImageDataConfig *config);

/* Gives the classes other names, as cornu_labels_read (labels.h) reads them: "cat,dog,…" or
 * a file. They belong to the data. Errors as there; then the names stay. */
CornuStatus cornu_image_data_rename(CornuImageData *data, const char *list_or_path);

/* A data set of components x and y. It takes the arrays' memory: their data are NULL then. */
CornuDataset *cornu_image_data_take_train(CornuImageData *data);
CornuDataset *cornu_image_data_take_test(CornuImageData *data);

void cornu_image_data_free(CornuImageData *data);

#ifdef __cplusplus
}
#endif
#endif
