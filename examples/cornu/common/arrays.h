/* Data of the command line: arrays in .npy and .npz files. */
#ifndef CORNU_EXAMPLES_ARRAYS_H
#define CORNU_EXAMPLES_ARRAYS_H

#include <cornu/cornu.h>
#include <cornu/nn/formats/npz.h>

/* An open file, and the array that was asked for. */
typedef struct {
    CornuNpz  *file;
    CornuArray array;   /* .data is NULL where none was asked for */
} Loaded;

/* "x.npy"; "data.npz:x_train"; "data.npz" alone is its array `usual`, or its only one. NULL leaves
 * it empty. Errors name the file, and what arrays it has. */
CornuStatus arrays_load(Loaded *to, const char *what, const char *usual);
void        arrays_free(Loaded *loaded);

/* CORNU_ERR_SHAPE unless `array` has rows of the model's input or output `i`, naming both types. */
CornuStatus arrays_fit(const char *what, CornuArray array, CornuType rows);

#endif
