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

typedef struct CornuLiteOnnxRow CornuLiteOnnxRow;

/* A call of a rule. */
typedef struct {
    const CornuLiteOnnx     *of;
    CornuOnnx               *to;
    const CornuLiteOperator *op;
    const CornuLiteOnnxRow  *row;
} CornuLiteStepOnnx;
typedef CornuLiteStepOnnx Step;   /* in this folder */

/* The value of the result before the fused activation, of those of the operands. */
typedef int CornuLiteOnnxValue(const CornuLiteStepOnnx *step, const int *x);

/* Sets the results. CORNU_ERR_UNSUPPORTED or CORNU_ERR_FORMAT; the message does not name the
 * operator. */
typedef CornuStatus CornuLiteOnnxRule(const CornuLiteStepOnnx *step);

/* An operator is ONNX' of the same operands, an elementwise one or not; or the value of a function
 * of theirs; or has a rule, which operators may share that differ in ONNX' name. */
struct CornuLiteOnnxRow {
    CornuLiteCode       code;
    int                 operands;        /* so many must be given; values of no more are taken */
    const char         *each, *whole;    /* ONNX' names */
    CornuLiteOnnxValue *value;
    CornuLiteOnnxRule  *rule;
    int                 rank;            /* of the first operand; 0: any */
    bool                complex;         /* knows that complex numbers are pairs */
};

enum { CORNU_LITE_ONNX_VALUES = 4 };     /* operands of a row without a rule */

/* The tables of families, each ended by a row that says nothing. */
#define FAMILY(name) extern const CornuLiteOnnxRow cornu__lite_onnx_##name[];
#include "families.def"
#undef FAMILY

/* Operand i, which may be omitted: NULL. */
const CornuLiteTensor *cornu__lite_operand(const CornuLiteStepOnnx *step, int i);
const CornuLiteTensor *cornu__lite_result(const CornuLiteStepOnnx *step);

/* Its value; CORNU_ONNX_NONE for an omitted one. */
int cornu__lite_value(const CornuLiteStepOnnx *step, int i);

/* Operand i with its axes in `order`: of a constant, the constant so. */
int cornu__lite_turned(const CornuLiteStepOnnx *step, int i, const int64_t *order);

/* Element i of data of 32 or 64 bits. */
int64_t cornu__lite_whole_at(CornuLiteDtype dtype, const void *data, int64_t i);

/* Operand i as integers that must be constant: at most `most`; or CORNU_ERR_UNSUPPORTED. */
CornuStatus cornu__lite_list(const CornuLiteStepOnnx *step, int i, int most, int64_t *list,
                             int *count);

/* Likewise axes, negative ones counted from the end, as bits; of a tensor of this rank. */
CornuStatus cornu__lite_axes(const CornuLiteStepOnnx *step, int i, int rank, int64_t *axes);
CornuStatus cornu__lite_axis(int64_t given, int rank, int *axis);

/* The only integer of operand i, which must be a constant, as an axis; 0 if there is none. */
CornuStatus cornu__lite_known_axis(const CornuLiteStepOnnx *step, int i, int rank, int *axis);

/* Sets the result, after the fused activation; result i, which has none. */
CornuStatus cornu__lite_give(const CornuLiteStepOnnx *step, int y);
CornuStatus cornu__lite_give_at(const CornuLiteStepOnnx *step, int i, int y);

/* Operands must have at least this many, none a variable. */
CornuStatus cornu__lite_expect(const CornuLiteStepOnnx *step, int operands);

/* A transposed convolution of operand x with the filters, operand 1, by the options. */
CornuStatus cornu__lite_transposed(const CornuLiteStepOnnx *step, int x, int bias);

/* Zeros of the type of the result, of the shape that is a value. */
int cornu__lite_zeros(const CornuLiteStepOnnx *step, int shape);

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

/* The value of a tensor, which may be a constant; 0: not yet computed. */
int cornu__lite_value_of(const CornuLiteOnnx *of, int tensor);

static inline int rank_of(const CornuLiteStepOnnx *step, int i)
{
    return cornu__lite_operand(step, i)->shape.rank;
}

static inline int integers(const CornuLiteStepOnnx *step, const int64_t *list, int count)
{
    return cornu__onnx_integers(step->to, list, count);
}

static inline int whole_scalar(const CornuLiteStepOnnx *step, int64_t value)
{
    return cornu__onnx_constant(step->to, cornu_array_from(&value, cornu_scalar(CORNU_I64)));
}

/* An operator whose second operand is a list of one axis. */
static inline int with_axis(const CornuLiteStepOnnx *step, const char *operator, int x,
                            int64_t axis)
{
    return joined(step->to, operator, x, integers(step, &axis, 1));
}

/* Values one after the other along an axis. */
static inline int concatenated(const CornuLiteStepOnnx *step, const int *x, int count, int axis)
{
    const CornuOnnxAttribute along = { .name = "axis", .whole = axis };
    return cornu__onnx_node(step->to, "Concat", x, count, &along, 1, 1);
}

/* operators.c: adds the nodes of operator i. */
CornuStatus cornu__lite_put_operator(const CornuLiteOnnx *of, int i);

/* states.c: adds those of all operators, in an order in which those that stand between a
 * variable's value and its next one become one node with states. */
CornuStatus cornu__lite_put_operators(const CornuLiteOnnx *of);

#endif
