/* Reading what real Keras computed: tests/golden/README.md. */
#ifndef CORNU_TESTS_NN_GOLDEN_H
#define CORNU_TESTS_NN_GOLDEN_H

#include <jansson.h>

#include "../../nn/cornu.h"
#include "../expect.h"

typedef struct {
    CornuSafetensors *file;
    json_t           *about;       /* the string in the metadata */
    json_t           *cases;       /* settings by case name */
    void            **copies;      /* the arrays returned so far */
    int               copy_count;
} Golden;

/* Fails the test if the file cannot be read. */
Golden golden_open(const char *path);
void   golden_close(Golden *golden);

/* Tensor "CASE/NAME", or "NAME" for a NULL case; data is NULL if there is none. */
CornuArray golden_array(Golden *golden, const char *test_case, const char *name);

/* Tensors "CASE/KIND0", "CASE/KIND1", …, at most `most`; returns their number. */
int golden_arrays(Golden *golden, const char *test_case, const char *kind, CornuArray *to,
                  int most);

/* A model of the single layer that a case's settings describe, "layer", for inputs like x. Fails
 * the test if there is none. */
CornuModel *golden_layer(const json_t *settings, CornuType x);

/* Arguments in a case's settings as config values: 0 for one that is missing or None, CORNU_ZERO
 * for 0. */
double  golden_number(const json_t *settings, const char *name);
int64_t golden_integer(const json_t *settings, const char *name);
bool    golden_flag(const json_t *settings, const char *name);

/* Fails the test unless the f32 values in `got` are within tolerance max|want| of `want`. */
void expect_near(const char *what, const float *got, CornuArray want, double tolerance);

/* Fails the test unless `text` is the content of the file `path`; for cornu_summary's print_fn. */
void expect_file(void *path, const char *text);

/* A device of one shard for float32 layers; fails the test if there is none. */
CornuDevice *expect_device(const char *name);

#endif
