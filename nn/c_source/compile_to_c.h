/*
 * A model as C source: one .c file and its header, C99 and C++17, for machines without an operating
 * system. Nothing is allocated and nothing global written; what the functions need beside their
 * arguments are <stdint.h>, <stddef.h> and a few functions of <math.h>, each behind a macro that
 * can name another one.
 *
 *     cornu_compile_to_c(model, "digits.c")
 *
 * writes digits.c and digits.h:
 *
 *     extern const digits_weights digits_trained;         constants: on a controller, in flash
 *     void digits_predict(const digits_weights *weights, void *scratch, const float *x, float *y);
 *
 * `scratch` has DIGITS_SCRATCH_BYTES, aligned to 8. The numbers are those of cornu_predict, but
 * that sums may be added in another order, and that <math.h> is the machine's. With .train, of a
 * model that is compiled,
 *
 *     void digits_init(digits_state *state);
 *     void digits_step(digits_state *state, void *scratch, const float *x, const int32_t *y);
 *     void digits_save(const digits_state *state, unsigned char *bytes);
 *     void digits_load(digits_state *state, const unsigned char *bytes);
 *
 * too: a step is one of fit with a batch of .batch_size rows, forward, backward and the optimizer's
 * update, with the same random numbers; metrics are in the state as well. Weights that are not
 * trained stay constants. The optimizer begins anew.
 *
 * Compilers need some 50 bytes for each byte of constants. .weights writes those of a large model
 * into a file of its own, the bytes of a digits_weights in the order of this machine: a program
 * reads or maps it, and there is no digits_trained; digits_init leaves the weights to digits_load.
 * Weights that are not trained are in that file and in the state, too.
 */
#ifndef CORNU_NN_COMPILE_TO_C_H
#define CORNU_NN_COMPILE_TO_C_H

#include "../lite/quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char        unset;
    CornuModel *model;        /* built */
    const char *path;         /* "digits.c"; the header lies beside it */
    const char *name;         /* of all that is in them; default that of the file */
    bool        train;        /* the model is compiled */
    int64_t     batch_size;   /* rows of a step of training; default 32 */
    int64_t     rows;         /* of a prediction; default 1 */
    int64_t     extent;       /* of axes that the model leaves open; 0: such a model is refused */
    const char *weights;      /* "digits.weights": a file with the weights; NULL: in the .c file */
} CornuCompileToCConfig;

/* The files appear whole or not at all.
 *   CORNU_ERR_ARGUMENT      a model that is not built, or with .train not compiled; a path that
 *                           does not end in .c, a name that cannot be an identifier; .weights that
 *                           are the source or its header
 *   CORNU_ERR_SHAPE         extents that the model leaves open
 *   CORNU_ERR_UNSUPPORTED   an op or dtype without C source, named with its layer; a layer whose
 *                           state goes on from batch to batch
 *   CORNU_ERR_FILE          a file that cannot be written */
CornuStatus cornu_compile_to_c_from(const CornuCompileToCConfig *config);
#define cornu_compile_to_c(...) \
    cornu_compile_to_c_from(&(CornuCompileToCConfig){ .unset = 0, __VA_ARGS__ })

/*
 * A model of 8 bits likewise, with the bits of cornu_int8_predict_integers; name NULL is that of
 * the file. `x` and `y` are int8, of one row; SCALE and ZERO of both are in the header.
 *
 *     void digits_predict(void *scratch, const int8_t *x, int8_t *y);
 *
 * CORNU_ERR_UNSUPPORTED names an operator that has no C source.
 */
CornuStatus cornu_int8_compile_to_c(const CornuInt8Model *model, const char *path,
                                    const char *name);

#ifdef __cplusplus
}
#endif
#endif
