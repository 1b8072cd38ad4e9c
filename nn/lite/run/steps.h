/* Operators prepared to run: for run.c and the files of families of operators. */
#ifndef CORNU_NN_LITE_STEPS_H
#define CORNU_NN_LITE_STEPS_H

#include "../../../device/edgetpu/kernels.h"
#include "../../../device/status_internal.h"
#include "../int8/scales.h"

/* The most rows that a thread takes through all operators at once. */
enum { CORNU_LITE_BLOCK_ROWS = 128 };

/* A block of rows on its way: where the tensors are, by number; and of the operator that runs, its
 * operand `in` and its result, whose extents are those for this batch. */
typedef struct {
    int64_t     batch;
    void      **tensors;
    void       *scratch;
    CornuInt8Part part;                   /* of the outputs, for steps with `work` */
    const void *x;
    void       *y;
    int64_t     x_extents[CORNU_MAX_RANK], y_extents[CORNU_MAX_RANK];
    int64_t     count;                    /* elements of y */
} CornuLiteBound;

typedef struct CornuLiteStep CornuLiteStep;

struct CornuLiteStep {
    const CornuLiteGraph    *graph;
    const CornuLiteOperator *op;
    const CornuLiteTensor   *in, *out;    /* the operand that is computed with, and the result */
    int                 to;               /* the tensor that is written; CORNU_LITE_NONE: nothing
                                             is, as another step has done it (fuse.c) */
    int64_t             work;             /* of a row, as the time of so many multiply-adds; 0 if
                                             threads do not share a call of `run` */
    void (*run)(const CornuLiteStep *step, const CornuLiteBound *bound);
    size_t              scratch;          /* bytes */
    CornuAffine         x, y;             /* of both, where they are int8 */
    CornuLiteProduct    product;
    CornuBounds         bounds;
    CornuInt8Window     window;           /* its batch is not used */
    CornuInt8Conv       conv;
    CornuMultiplier    *multipliers;      /* owned */
    double             *factors;          /* owned */
    CornuInt8Packed    *packed;           /* owned */
    CornuInt8Channels  *channels;         /* owned */
    CornuInt8Arithmetic arithmetic;
    CornuInt8Table      table;
    int64_t             at[CORNU_INT8_RANK];   /* where a slice begins, or x in padding */
    int64_t             steps[CORNU_INT8_RANK], counts[CORNU_INT8_RANK];   /* of a slice */
    int32_t             permutation[CORNU_INT8_RANK];
    bool                reduced[CORNU_INT8_RANK];
    int                 axis;
    int8_t              fill;
};

/* Fills a step whose operands have been counted, and whose `in`, `out`, `x` and `y` are set:
 * CORNU_OK, or a message without the operator's name. */
typedef CornuStatus CornuLitePrepare(CornuLiteStep *step);

CornuLitePrepare cornu__step_prepare_conv2d, cornu__step_prepare_depthwise,
    cornu__step_prepare_transpose_conv, cornu__step_prepare_fully_connected,
    cornu__step_prepare_pool, cornu__step_prepare_mean, cornu__step_prepare_resize,
    cornu__step_prepare_binary, cornu__step_prepare_table, cornu__step_prepare_softmax,
    cornu__step_prepare_quantize, cornu__step_prepare_dequantize, cornu__step_prepare_reshape,
    cornu__step_prepare_pad, cornu__step_prepare_transpose, cornu__step_prepare_concatenation,
    cornu__step_prepare_strided_slice;

/* Makes one step of several where it can. CORNU_ERR_MEMORY. */
CornuStatus cornu__steps_fuse(const CornuLiteGraph *graph, CornuLiteStep *steps);

/* Whether a step is a function of each element, by `table`. */
bool cornu__step_is_table(const CornuLiteStep *step);

/* CORNU_ERR_UNSUPPORTED for an operator without kernel; messages name the operator. */
CornuStatus cornu__step_find(const CornuLiteGraph *graph, int op, int *kernel);
CornuStatus cornu__step_prepare(const CornuLiteGraph *graph, int op, CornuLiteStep *step);
void        cornu__lite_step_run(const CornuLiteStep *step, CornuLiteBound *bound);
void        cornu__lite_step_free(CornuLiteStep *step);   /* what it owns */

/* ---- What steps ask of the graph; those with a status fail with a message ---- */

/* Operand `i`. NULL for an omitted one. */
const CornuLiteTensor *cornu__step_in(const CornuLiteStep *step, int i);

/* An int8 tensor of one scale and zero point, of at most CORNU_INT8_RANK extents. */
CornuStatus cornu__step_affine(const CornuLiteTensor *tensor, CornuAffine *affine);
CornuStatus cornu__step_expect_rank(const CornuLiteTensor *tensor, int rank);

/* That a tensor has the scale and zero point of the result. */
CornuStatus cornu__step_expect_scale(const CornuLiteStep *step, const CornuLiteTensor *tensor);

/* A constant i32 of `count` values, any number for -1; NULL with CORNU_ERR_UNSUPPORTED. */
const int32_t *cornu__step_integers(const CornuLiteTensor *tensor, int64_t count);

/* Extents with `batch` for unknown ones. */
void cornu__step_extents(const CornuLiteTensor *tensor, int64_t batch, int64_t *extents);

/* CORNU_ERR_SHAPE unless the extents are those of the tensor; CORNU_NONE matches itself. */
CornuStatus cornu__step_expect_extents(const CornuLiteTensor *tensor, int rank,
                                       const int64_t *extents);

/* That the option for fused activations is one of CornuFused; sets the bounds. */
CornuStatus cornu__step_fused(CornuLiteStep *step);

/* ---- Windows ---- */

/* Sets the bounds and the window of images (B, H, W, C), of which the extents are positive. */
CornuStatus cornu__step_window(CornuLiteStep *step, int64_t height, int64_t width);

/* That y has the extents that the window and the padding give. */
CornuStatus cornu__step_expect_window(const CornuLiteStep *step);

/* Padding in front: half of what outputs need beyond the input, rounded down. */
int64_t cornu__step_pad_before(int64_t in, int64_t out, int64_t size, int64_t stride,
                               int64_t dilation);

/* The extent that the padding gives the result. */
int64_t cornu__step_out_extent(const CornuLiteStep *step, int64_t in, int64_t size, int64_t stride,
                               int64_t dilation);

#endif
