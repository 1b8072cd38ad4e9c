/* Operators prepared to run: for run.c and the files steps_*.c, a family of operators each. */
#ifndef CORNU_NN_LITE_STEPS_H
#define CORNU_NN_LITE_STEPS_H

#include "../../../device/edgetpu/kernels.h"
#include "../../../device/status_internal.h"
#include "../graph/graph.h"

/* Where the tensors of a run are: by number; those of `batch` rows at a time, constants, NULL where
 * an operator does not need it. */
typedef struct {
    int64_t  batch;
    void   **tensors;
    void    *scratch;
} CornuLiteBound;

typedef struct CornuLiteStep CornuLiteStep;

struct CornuLiteStep {
    const CornuLiteGraph    *graph;
    const CornuLiteOperator *op;
    void (*run)(const CornuLiteStep *step, const CornuLiteBound *bound);
    size_t (*scratch)(const CornuLiteStep *step, int64_t batch);   /* bytes; NULL: none */
    CornuAffine         x, y;
    CornuBounds         bounds;
    CornuInt8Window     window;           /* its batch is not used */
    CornuInt8Conv       conv;
    CornuMultiplier    *multipliers;      /* owned */
    double             *factors;          /* owned */
    CornuInt8Packed    *packed;           /* owned */
    CornuInt8Arithmetic arithmetic;
    CornuInt8Table      table;
    int64_t             at[CORNU_INT8_RANK];   /* where a slice begins, or x in padding */
    int64_t             steps[CORNU_INT8_RANK], counts[CORNU_INT8_RANK];   /* of a slice */
    int32_t             permutation[CORNU_INT8_RANK];
    bool                reduced[CORNU_INT8_RANK];
    int                 axis;
    int8_t              fill;
};

/* Fills a step with its op: CORNU_OK, or a message without the operator's name. */
typedef CornuStatus CornuLitePrepare(CornuLiteStep *step);

CornuLitePrepare cornu__step_prepare_conv2d, cornu__step_prepare_depthwise,
    cornu__step_prepare_transpose_conv, cornu__step_prepare_fully_connected,
    cornu__step_prepare_pool, cornu__step_prepare_mean, cornu__step_prepare_resize,
    cornu__step_prepare_binary, cornu__step_prepare_table, cornu__step_prepare_softmax,
    cornu__step_prepare_quantize, cornu__step_prepare_dequantize, cornu__step_prepare_reshape,
    cornu__step_prepare_pad, cornu__step_prepare_transpose, cornu__step_prepare_concatenation,
    cornu__step_prepare_strided_slice, cornu__step_prepare_integers;

/* CORNU_ERR_UNSUPPORTED for an operator without kernel; messages name the operator. */
CornuStatus cornu__step_prepare(const CornuLiteGraph *graph, int op, CornuLiteStep *step);
void        cornu__lite_step_free(CornuLiteStep *step);   /* what it owns */

/* ---- What steps ask of the graph; those with a status fail with a message ---- */

/* Operand or result `i`. NULL for an omitted operand. */
const CornuLiteTensor *cornu__step_in(const CornuLiteStep *step, int i);
const CornuLiteTensor *cornu__step_out(const CornuLiteStep *step, int i);
const void *cornu__step_in_data(const CornuLiteStep *step, const CornuLiteBound *bound, int i);
void       *cornu__step_out_data(const CornuLiteStep *step, const CornuLiteBound *bound, int i);

/* That there are so many operands, at most `most`, and results. */
CornuStatus cornu__step_expect(const CornuLiteStep *step, int least, int most, int results);

/* An int8 tensor of one scale and zero point, of at most CORNU_INT8_RANK extents. */
CornuStatus cornu__step_affine(const CornuLiteTensor *tensor, CornuAffine *affine);
CornuStatus cornu__step_expect_rank(const CornuLiteTensor *tensor, int rank);

/* That both have one scale and zero point, which operators that only move values need. */
CornuStatus cornu__step_expect_same_scale(CornuAffine x, CornuAffine y);

/* A constant i32 of `count` values, any number for -1; NULL with CORNU_ERR_UNSUPPORTED. */
const int32_t *cornu__step_integers(const CornuLiteTensor *tensor, int64_t count);

/* Extents with `batch` for unknown ones. */
void    cornu__step_extents(const CornuLiteTensor *tensor, int64_t batch, int64_t *extents);
int64_t cornu__step_tensor_count(const CornuLiteTensor *tensor, int64_t batch);

/* CORNU_ERR_SHAPE unless the extents are those of the tensor; CORNU_NONE matches itself. */
CornuStatus cornu__step_expect_extents(const CornuLiteTensor *tensor, int rank,
                                       const int64_t *extents);

/* That an option for fused activations is one of CornuFused. */
CornuStatus cornu__step_fused(const CornuLiteStep *step, CornuAffine y, CornuBounds *bounds);

/* ---- Windows ---- */

/* Sets x, y, bounds and the window of images (B, H, W, C), of which the extents are positive. */
CornuStatus cornu__step_window(CornuLiteStep *step, const CornuLiteTensor *in,
                               const CornuLiteTensor *out, int64_t height, int64_t width);

/* That y has the extents that the window and the padding give. */
CornuStatus cornu__step_expect_window(const CornuLiteStep *step, const CornuLiteTensor *in,
                                      const CornuLiteTensor *out);

/* Padding in front: half of what outputs need beyond the input, rounded down. */
int64_t cornu__step_pad_before(int64_t in, int64_t out, int64_t size, int64_t stride,
                               int64_t dilation);

/* Images of the result. */
int64_t cornu__step_batch(const CornuLiteStep *step, const CornuLiteBound *bound);

#endif
