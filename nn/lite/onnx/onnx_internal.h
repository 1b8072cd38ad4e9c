/*
 * A graph of LiteRT operators as an ONNX graph: to read .tflite files as models, which
 * saving/onnx_read/ makes of them, and to export quantized graphs.
 *
 * A rule translates an operator. Values are ONNX' (saving/onnx/): images for operators that need
 * channels first are transposed there and back, and what cancels is never written. All integers are
 * 64 bits wide.
 * Sources: tensorflow.org/mlir/tfl_ops; github.com/onnx/onnx, docs/Operators.md.
 */
#ifndef CORNU_NN_LITE_ONNX_INTERNAL_H
#define CORNU_NN_LITE_ONNX_INTERNAL_H

#include "../../saving/onnx/rules_internal.h"
#include "../graph/graph.h"

typedef struct {
    CornuOnnx            *to;
    const CornuLiteGraph *graph;
    int                  *values;     /* of each tensor, real numbers; 0: not yet */
    int                  *quantized;  /* of those that are, their stored numbers */
    bool                  loads;      /* for the reader of this library alone: to_onnx.h */
} CornuLiteOnnx;

/* A call of a rule. */
typedef struct {
    const CornuLiteOnnx     *of;
    CornuOnnx               *to;
    const CornuLiteOperator *op;
} CornuLiteStepOnnx;

/* CORNU_ERR_UNSUPPORTED or CORNU_ERR_FORMAT; the message does not name the operator. */
typedef CornuStatus CornuLiteOnnxRule(const CornuLiteStepOnnx *step);
typedef struct { CornuLiteCode code; CornuLiteOnnxRule *rule; } CornuLiteOnnxRow;

/* The tables of families, each ended by a row without a rule. */
#define FAMILY(name) extern const CornuLiteOnnxRow cornu__lite_onnx_##name[];
#include "families.def"
#undef FAMILY

/* Whether a rule knows that complex numbers are pairs. */
bool cornu__lite_takes_complex(CornuLiteCode code);

/* Operand i, which may be omitted: NULL. */
const CornuLiteTensor *cornu__lite_operand(const CornuLiteStepOnnx *step, int i);
const CornuLiteTensor *cornu__lite_result(const CornuLiteStepOnnx *step);

/* Its value; CORNU_ONNX_NONE for an omitted one. */
int cornu__lite_value(const CornuLiteStepOnnx *step, int i);

/* Operand i with its axes in `order`: of a constant, the constant so. */
int cornu__lite_turned(const CornuLiteStepOnnx *step, int i, const int64_t *order);

/* Operand i as integers that must be constant: at most `most`; or CORNU_ERR_UNSUPPORTED. */
CornuStatus cornu__lite_list(const CornuLiteStepOnnx *step, int i, int most, int64_t *list,
                             int *count);

/* Likewise axes, negative ones counted from the end, as bits; of a tensor of this rank. */
CornuStatus cornu__lite_axes(const CornuLiteStepOnnx *step, int i, int rank, int64_t *axes);
CornuStatus cornu__lite_axis(int64_t given, int rank, int *axis);

/* Sets the result, after the fused activation; result i, which has none. */
CornuStatus cornu__lite_give(const CornuLiteStepOnnx *step, int y);
CornuStatus cornu__lite_give_at(const CornuLiteStepOnnx *step, int i, int y);

/* Operands must have at least this many, and the first one this rank; -1: any. */
CornuStatus cornu__lite_expect(const CornuLiteStepOnnx *step, int operands, int rank);

/* A transposed convolution of operand x with the filters, operand 1, by the options. */
CornuStatus cornu__lite_transposed(const CornuLiteStepOnnx *step, int x, int bias);

/* How values of this type are kept: as f32, i64 or bool. And how inputs and outputs are,
 * TensorProto.DataType. */
CornuDtype cornu__lite_onnx_dtype(CornuLiteDtype dtype);
int        cornu__lite_onnx_stored(CornuLiteDtype dtype);

/* Whether it has numbers of 8 bits, or of 16, or is the bias of a product of those. */
bool cornu__lite_onnx_quantized(const CornuLiteTensor *tensor);

/* quantities.c: the real numbers of x, stored as the tensor is; and the stored ones of real
 * numbers. */
int cornu__lite_dequantize(const CornuLiteOnnx *of, const CornuLiteTensor *tensor, int x);
int cornu__lite_quantize(const CornuLiteOnnx *of, const CornuLiteTensor *tensor, int x);

/* The stored numbers of `to`, of those of another quantized tensor, as its kernel of integers has
 * them; for the reader of this library alone. */
int cornu__lite_requantize(const CornuLiteOnnx *of, const CornuLiteTensor *from,
                           const CornuLiteTensor *to, int stored);

/* Sets the result, given its stored numbers. */
CornuStatus cornu__lite_give_stored(const CornuLiteStepOnnx *step, int stored);

/* A constant tensor, with its axes in `order`; NULL for their own. */
int cornu__lite_constant_of(const CornuLiteOnnx *of, const CornuLiteTensor *tensor,
                            const int64_t *order);

/* The value of a tensor, which may be a constant. */
int cornu__lite_value_of(const CornuLiteOnnx *of, int tensor);

/* operators.c: adds the nodes of operator i. */
CornuStatus cornu__lite_put_operator(const CornuLiteOnnx *of, int i);

/* states.c: adds those of all operators, in an order in which those that stand between a
 * variable's value and its next one become one node with states. */
CornuStatus cornu__lite_put_operators(const CornuLiteOnnx *of);

#endif
