/*
 * Kernels of layers that are quantized: which weights they have, what they stand for, and products
 * with them. The same for all layers, which describe their kernel and their product.
 *
 *     float    NAME
 *     int8     NAME, whole numbers q from -127 to 127, and NAME_scale s: the kernel is q / s
 *     int4     NAME, two numbers q from -8 to 7 in one, and NAME_scale: likewise; or, in blocks,
 *              NAME_scale s, NAME_zero z and g_idx, the block of each row: (q - z) s
 *     float8   the floats, and scales and histories for inputs, kernel and gradients (float8.c)
 *
 * Values of all these weights are f32. Sums of products of whole numbers are exact.
 * Source: keras/src/layers/core/dense.py, einsum_dense.py, embedding.py, reversible_embedding.py.
 */
#ifndef CORNU_NN_LAYERS_QUANTIZED_INTERNAL_H
#define CORNU_NN_LAYERS_QUANTIZED_INTERNAL_H

#include "layer_internal.h"

/* A kernel that can be quantized; members that do not apply to its layer are 0. */
typedef struct CornuQuantizable {
    const char *name;                  /* of the weight: "kernel" */
    CornuShape  shape;                 /* of the floats */
    int         kept[CORNU_MAX_RANK];  /* the axes that have scales of their own, in the order */
    int         kept_count;            /*   of NAME_scale; the others are summed over          */
    CornuShape  scale;                 /* of NAME_scale for int8 */
    int64_t     rows, columns;         /* int4: the matrix that the shape is read as */
    bool        by_row;                /* its scales are those of rows; else of columns */
    bool        packs_rows;            /* two rows, not columns, are in one number */
    bool        follows;               /* another kernel of the layer has the g_idx */
    CornuInitializer initializer;      /* of the floats, and their rules */
    CornuRegularizer regularizer;
    CornuConstraint  constraint;
} CornuQuantizable;

/* The layer's mode by its own policy; and whether a scale spans a block of int4. */
CornuQuantization cornu__quantization(const CornuLayer *layer);
bool              cornu__has_blocks(const CornuLayer *layer);
int64_t           cornu__block(const CornuLayer *layer);   /* CORNU_NONE without */

/* CORNU_ERR_ARGUMENT, or CORNU_ERR_UNSUPPORTED from a file, unless the layer's class can have the
 * quantization of its own policy. */
CornuStatus cornu__check_quantization(const CornuLayer *layer);

/* For kind->build: says which kernels the layer has, at most CORNU_MAX_KERNELS, and declares those
 * that are trained. The second function, called when the layer's other weights are declared, adds
 * those that are not trained, which Keras lists last. */
enum { CORNU_MAX_KERNELS = 2 };
CornuStatus cornu__kernels_declare(CornuLayer *layer, const CornuQuantizable *kernels, int count);
CornuStatus cornu__kernels_finish(CornuLayer *layer);

/* Where the weight of such a layer is among all of them in files, by its name. */
enum { CORNU_WEIGHT_PLACES = 17 };
int cornu__weight_place(const CornuWeight *weight);

/* The whole numbers of an integer kernel, f32: of its shape for int8, (rows, columns) for int4. */
CornuTensor *cornu__kernel_integers(CornuLayer *layer, const CornuCall *call,
                                    const CornuQuantizable *kernel);

/* The floats, in the layer's compute dtype. LoRA is not in those of an integer kernel. */
CornuTensor *cornu__kernel_floats(CornuLayer *layer, const CornuCall *call,
                                  const CornuQuantizable *kernel);

/* A product: of x with a kernel of the same dtype, summed in f32, to `dtype`. */
typedef CornuTensor *CornuKernelProduct(const void *context, CornuTensor *x, CornuTensor *kernel,
                                        CornuDtype dtype);
typedef struct {
    const CornuQuantizable  *kernel;
    CornuKernelProduct *function;
    const void         *context;
    int pairs[CORNU_MAX_RANK][2];      /* axes of x and of the kernel, or -1, that are summed */
    int pair_count;
    int from_x[CORNU_MAX_RANK];        /* for each axis of the result, that of x, or -1 */
    int rank;                          /* of the result */
    bool last_scaled;                  /* scales of int4 without blocks are along its last axis */
} CornuProduct;

/* The product of x with the layer's kernel, in the layer's result dtype, with LoRA. `always`: int4
 * too quantizes the inputs unless a config says otherwise, and gradients pass through their scale
 * alone, as in Keras' ReversibleEmbedding. */
CornuTensor *cornu__kernel_product(CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                                   const CornuProduct *product, bool always);

/* Rows of the kernel, as an embedding looks them up: as Keras' not converted before the end, to the
 * layer's result dtype or, without quantization, in its compute dtype. */
CornuTensor *cornu__kernel_rows(CornuLayer *layer, const CornuCall *call,
                                const CornuQuantizable *kernel, CornuTensor *indices);

/* The bias `name`, as the layer adds it, in the result dtype. */
CornuTensor *cornu__kernel_bias(CornuLayer *layer, const CornuCall *call);

/* x to the nearest whole number, of two the even one; for |x| below 2^22. */
CornuTensor *cornu__round_small(CornuTensor *x);

/* Weight `name` of the layer's own; -1 if there is none. */
int cornu__weight_index(const CornuLayer *layer, const char *name);
/* "kernel_scale" from "kernel". */
int cornu__kernel_weight(const CornuLayer *layer, const CornuQuantizable *kernel,
                         const char *suffix);

/* ---- float8.c ---- */

CornuStatus  cornu__float8_declare(CornuLayer *layer);
/* x or the kernel rounded, and a product whose gradient is rounded; `what` is "inputs", "kernel" or
 * "outputs_grad", the beginning of the names of the weights. */
CornuTensor *cornu__float8_round(CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                                 const char *what);
CornuTensor *cornu__float8_output(CornuLayer *layer, const CornuCall *call, CornuTensor *y);

/* cornu_layer_quantize_weights for a layer without a policy of its own that follows `usual`, or
 * NULL (replace.c). */
CornuStatus cornu__layer_quantize(CornuLayer *layer, const char *mode, const CornuPolicy *usual);

/* ---- quantize.c: on the host ---- */

/* Quantizes floats of kernel->shape into the values of weights; `zero` and `index` are NULL without
 * blocks. */
typedef struct {
    float *packed, *scale, *zero, *index;
} CornuQuantizedValues;
CornuStatus cornu__kernel_quantize(const CornuLayer *layer, const CornuQuantizable *kernel,
                                   const float *from, const CornuQuantizedValues *to);
/* The inverse: the floats that quantized values stand for. */
void        cornu__kernel_dequantize(const CornuLayer *layer, const CornuQuantizable *kernel,
                                     const CornuQuantizedValues *from, float *to);

#endif
