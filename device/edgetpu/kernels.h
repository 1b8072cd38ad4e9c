/*
 * The operators of 8-bit models on plain arrays: real value = scale (integer - zero point).
 *
 * Each gives the integers of LiteRT's reference kernels, bit for bit, on every instruction set;
 * tests/device/edgetpu compares with what the interpreter gives. Sources: "LiteRT 8-bit
 * quantization specification" for scales and zero points, tflite/kernels/internal/reference for
 * the order of operations and rounding.
 *
 * Arrays are dense, images (B, H, W, C). Shapes arrive checked. Nothing here allocates but what
 * ends in _create; int32 sums wrap around where they overflow.
 */
#ifndef CORNU_DEVICE_EDGETPU_KERNELS_H
#define CORNU_DEVICE_EDGETPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fixed.h"

enum { CORNU_INT8_MIN = -128, CORNU_INT8_MAX = 127, CORNU_INT8_RANK = 6 };

/* The number that an int8 q stands for is scale (q - zero). */
typedef struct {
    float   scale;
    int32_t zero;   /* in [-128, 127] */
} CornuAffine;

/* Bounds of a result: the whole of int8, or what a fused activation leaves. */
typedef struct {
    int32_t low, high;
} CornuBounds;

typedef enum { CORNU_FUSED_NONE, CORNU_FUSED_RELU, CORNU_FUSED_RELU_N1_TO_1, CORNU_FUSED_RELU6 }
    CornuFused;   /* numbers as in LiteRT's schema, ActivationFunctionType */

CornuBounds cornu__int8_bounds(CornuFused activation, CornuAffine y);

/* ---- Windows that move over images: convolutions and pools ---- */

typedef struct {
    int64_t batch, in_height, in_width, in_channels, out_height, out_width, out_channels;
    int64_t height, width;              /* of the window */
    int64_t stride_height, stride_width, dilation_height, dilation_width;
    int64_t pad_height, pad_width;      /* in front; behind follows from the extents */
} CornuInt8Window;

/* y[f] = scale(sum of filter (x - x zero) + bias[f]) + y zero, within the bounds. What lies outside
 * the image counts as real 0. The operands stay the caller's. */
typedef struct {
    CornuInt8Window        window;
    int64_t                filter_channels;   /* conv2d: C of the filter; in_channels, or less by
                                                 the number of groups */
    int32_t                x_zero, y_zero;
    CornuBounds            bounds;
    bool                   pooled;       /* packed conv2d that is_monotonic: y has the largest of
                                            each 2 x 2 outputs side by side */
    const int8_t          *filter;       /* conv2d, transpose_conv: (F, h, w, C);
                                            depthwise: (h, w, F), F a multiple of C */
    const int32_t         *bias;         /* (F) in units of x scale * filter scale, or NULL */
    const CornuMultiplier *multipliers;  /* (F): x scale * filter scale / y scale */
    const double          *factors;      /* the same for fully_connected, else NULL */
} CornuInt8Conv;

void cornu__int8_conv2d_reference(const CornuInt8Conv *conv, const int8_t *x, int8_t *y);
void cornu__int8_depthwise_reference(const CornuInt8Conv *conv, const int8_t *x, int8_t *y);

/* In scratch (cornu__int8_transpose_conv_scratch): the sums of one image. Without dilation; padding
 * is that of the convolution that goes the other way. */
size_t cornu__int8_transpose_conv_scratch(const CornuInt8Conv *conv);   /* bytes */
void   cornu__int8_transpose_conv(const CornuInt8Conv *conv, const int8_t *x, int8_t *y,
                                  void *scratch);

/* Of `count` threads that share a call, each with scratch of its own: which one it is. */
typedef struct {
    int64_t index, count;
} CornuInt8Part;

/* conv2d, and fully_connected as one of an image of 1 x 1 a row, by packed products (products.c).
 * The packed filter is the caller's to free; NULL with CORNU_ERR_MEMORY. With factors, outputs are
 * scaled in double and rounded to nearest, halves away from zero: LiteRT's reference kernel of
 * fully_connected does so since 1.3, which differs from fixed point where that rounds twice. */
typedef struct CornuInt8Packed CornuInt8Packed;
CornuInt8Packed *cornu__int8_pack_create(const CornuInt8Conv *conv);
void             cornu__int8_pack_free(CornuInt8Packed *packed);
/* Whether a larger sum never gives a smaller output, as none can overflow while it is scaled. */
bool             cornu__int8_is_monotonic(const CornuInt8Packed *packed);
size_t           cornu__int8_conv2d_scratch(const CornuInt8Packed *packed);   /* bytes */
void cornu__int8_conv2d(const CornuInt8Packed *packed, int64_t batch, const int8_t *x, int8_t *y,
                        void *scratch, CornuInt8Part part);

/*
 * Products of u8 by int8 that end as sums: y[m, f] = sum of (x - x_zero) (w - zeros[f]), in int32,
 * of windows of an image (B, H, W, C) that has its padding. Panels have the filter (h, w, C, F) as
 * (columns / 16, segments, groups, 16, 4): segments are the window's rows of width C elements or,
 * where columns of it are apart, its pixels of C, each filled up with zeros to whole groups of 4;
 * columns are filled up likewise. totals[f]: the sum of w - zeros[f]. Up to 3 bytes past the image
 * are read where a segment is not whole groups.
 */
typedef struct {
    CornuInt8Window window;   /* without padding */
    int32_t         x_zero;
    const uint8_t  *panels;   /* in two's complement */
    const int32_t  *zeros, *totals;
} CornuInt8Sums;

enum { CORNU_INT8_MOST_SEGMENTS = 64 };
int64_t cornu__int8_segments(const CornuInt8Window *window, int64_t *elements);

/* Whether this processor has loops for it, which need VNNI. */
bool    cornu__int8_sums_run(void);
/* The work is cut into blocks, of the shape alone, which any threads compute. */
int64_t cornu__int8_sums_blocks(const CornuInt8Sums *sums);
void    cornu__int8_sums(const CornuInt8Sums *sums, int64_t block, const uint8_t *x, int32_t *y);

/* Likewise, depthwise with as many outputs as channels (depthwise.c). The filter is read by the
 * instruction set that packed it. */
typedef struct CornuInt8Channels CornuInt8Channels;
CornuInt8Channels *cornu__int8_channels_create(const CornuInt8Conv *conv);
void               cornu__int8_channels_free(CornuInt8Channels *packed);
size_t             cornu__int8_depthwise_scratch(const CornuInt8Channels *packed);   /* bytes */
void cornu__int8_depthwise(const CornuInt8Channels *packed, int64_t batch, const int8_t *x,
                           int8_t *y, void *scratch, CornuInt8Part part);

/* x and y of the same scale and zero point. An average over pixels within the image is rounded to
 * nearest, halves away from zero. */
void cornu__int8_max_pool(const CornuInt8Window *window, CornuBounds bounds, const int8_t *x,
                          int8_t *y);
void cornu__int8_average_pool(const CornuInt8Window *window, CornuBounds bounds, const int8_t *x,
                              int8_t *y);

/* ---- Element by element ---- */

/* y = x1 + x2 or x1 - x2; x1 x2; the larger; the smaller (these two: one scale for all); x1, or
 * x1 x2 where x1 is negative. */
typedef enum {
    CORNU_INT8_ADD, CORNU_INT8_SUB, CORNU_INT8_MUL, CORNU_INT8_MAXIMUM, CORNU_INT8_MINIMUM,
    CORNU_INT8_PRELU
} CornuInt8Binary;

/* One of these, prepared: */
typedef struct {
    CornuInt8Binary op;
    int32_t         zero1, zero2, y_zero;
    CornuMultiplier by_y, by_x1;                /* from the product, or x1 alone, to y */
    CornuBounds     bounds;
    CornuMultiplier by_terms[2];                /* of a sum, from each operand */
} CornuInt8Arithmetic;

/* What x, as operand 0 or 1, adds to a sum. */
int32_t cornu__int8_term(const CornuInt8Arithmetic *a, int operand, int32_t x);
void cornu__int8_arithmetic(CornuInt8Binary op, CornuAffine x1, CornuAffine x2, CornuAffine y,
                            CornuFused activation, CornuInt8Arithmetic *to);

/* Operands of `rank` extents, at most CORNU_INT8_RANK, which are y's or 1: those are broadcast. */
void cornu__int8_binary(const CornuInt8Arithmetic *arithmetic, int rank, const int64_t *extents,
                        const int64_t *extents1, const int8_t *x1, const int64_t *extents2,
                        const int8_t *x2, int8_t *y);

/* A function of one int8 is a table of 256, from x = -128 on. */
typedef struct {
    int8_t y[256];
} CornuInt8Table;

typedef float CornuInt8Function(float x);
void cornu__int8_table_of(CornuInt8Function *function, CornuAffine x, CornuAffine y,
                          CornuInt8Table *table);
void cornu__int8_table_logistic(CornuAffine x, CornuAffine y, CornuInt8Table *table);
void cornu__int8_table_tanh(CornuAffine x, CornuAffine y, CornuInt8Table *table);
void cornu__int8_table_exp(CornuAffine x, CornuAffine y, CornuInt8Table *table);
void cornu__int8_table_elu(CornuAffine x, CornuAffine y, CornuInt8Table *table);   /* alpha 1 */
void cornu__int8_table_gelu(bool approximate, CornuAffine x, CornuAffine y, CornuInt8Table *table);
void cornu__int8_table_relu(CornuFused activation, CornuAffine x, CornuAffine y,
                            CornuInt8Table *table);
void cornu__int8_table_leaky_relu(float alpha, CornuAffine x, CornuAffine y,
                                  CornuInt8Table *table);
void cornu__int8_table_requantize(CornuAffine x, CornuAffine y, CornuInt8Table *table);
void cornu__int8_map(const CornuInt8Table *table, int64_t count, const int8_t *x, int8_t *y);

/* Rows of `depth` elements, at most CORNU_INT8_SOFTMAX, whose sum has 12 integer bits. y: scale
 * 1/256, zero point -128. */
enum { CORNU_INT8_SOFTMAX = 4095 };
void cornu__int8_softmax(CornuAffine x, float beta, int64_t rows, int64_t depth, const int8_t *in,
                         int8_t *y);
/* exps[d]: of an element that is d less than the largest, in 2^-31; -1: counts as 0. */
void cornu__int8_softmax_exps(CornuAffine x, float beta, int32_t exps[256]);

/* y = the largest over the axes where `reduced`; of one scale. */
void cornu__int8_reduce_max(int rank, const int64_t *extents, const bool *reduced,
                            const int8_t *in, int8_t *out);

/* y = the mean over the axes where `reduced`, of `rank` extents; scratch: an int32 for each y. */
void cornu__int8_mean(CornuAffine x, CornuAffine y, int rank, const int64_t *extents,
                      const bool *reduced, const int8_t *in, int8_t *out, int32_t *scratch);
/* From sums of `count` numbers, each less the zero point, to means. */
CornuMultiplier cornu__int8_mean_multiplier(CornuAffine x, CornuAffine y, int64_t count);

/* From real values, rounded to nearest, halves away from zero, saturated, and back. NaN gives the
 * zero point; what LiteRT's conversion gives for it depends on the processor. */
void cornu__int8_quantize(CornuAffine y, int64_t count, const float *in, int8_t *out);
void cornu__int8_dequantize(CornuAffine x, int64_t count, const int8_t *in, float *out);

/* ---- Moved ---- */

/* x of `rank` extents within y, `before` elements from its start along each axis. */
void cornu__int8_pad(int rank, const int64_t *x_extents, const int64_t *before,
                     const int64_t *y_extents, int8_t value, const int8_t *x, int8_t *y);

/* y[i, j, ...] = x[begin + i stride, ...], strides other than 0. */
void cornu__int8_strided_slice(int rank, const int64_t *x_extents, const int64_t *begin,
                               const int64_t *strides, const int64_t *y_extents, const int8_t *x,
                               int8_t *y);

/* Axis i of y is axis permutation[i] of x. */
void cornu__int8_transpose(int rank, const int64_t *x_extents, const int32_t *permutation,
                           const int8_t *x, int8_t *y);

/* Copies x, `inner` elements for each of `outer`, into y's rows of `y_inner` from `at` on. */
void cornu__int8_place(int64_t outer, int64_t inner, int64_t y_inner, int64_t at, const int8_t *x,
                       int8_t *y);

/* The window has the extents of x and y; its own height and width are not read. */
void cornu__int8_resize_nearest(const CornuInt8Window *window, bool align_corners,
                                bool half_pixel_centers, const int8_t *x, int8_t *y);
/* The row or column that row or column i is of. */
int64_t cornu__int8_nearest(int64_t i, int64_t in, int64_t out, bool align_corners,
                            bool half_pixel);

#endif
