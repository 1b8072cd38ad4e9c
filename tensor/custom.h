/*
 * Custom ops: registered once by a definition, then used as any other op, on every device.
 *
 *     static CornuOp *swish;
 *     swish = cornu_op_register(&(CornuOpDefinition){
 *         .name = "my_swish", .composition = composition, .gradient = gradient });
 *     y = cornu_op_custom(swish, &x, 1, (const double[]){ 1.5 }, 1, NULL);
 *
 * A definition says what the op computes by `composition`, the op written with other ops, by
 * `reference`, loops in double, or by both. Devices choose as they do for Cornu's own ops, and
 * cornu_device_place tells (device/placement/placement.h):
 *
 *     given                   cpu, tpu                      reference        pjrt (XLA)
 *     .kernel                 the kernel, where all floats
 *                             are f32 (bf16 is converted)
 *     .composition            its ops, fused                its ops, unless  its ops
 *                                                           there is a
 *     .reference              the reference kernel, slow    reference        refused
 *
 * README.md of tensor/ has a whole example; cornu_op_check tests an op.
 */
#ifndef CORNU_TENSOR_CUSTOM_H
#define CORNU_TENSOR_CUSTOM_H

#include "../device/definition.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuOp CornuOp;

/* Records y[i], the results, with cornu_op_* on x, the operands. It sees neither variables nor
 * other tensors, and depends on the types and numbers of the call alone. A failure of an op in it
 * is that of the call. */
typedef void CornuOpComposition(const CornuOpArguments *call, CornuTensor *const *x,
                                CornuTensor **y);

/* Records d_x[i], the gradient with respect to x[i], of its shape, with cornu_op_* on operands x,
 * results y and their gradients d_y. d_x[i] stays NULL where there is none, and d_y[i] is NULL if
 * the loss does not depend on y[i]. */
typedef void CornuOpGradient(const CornuOpArguments *call, CornuTensor *const *x,
                             CornuTensor *const *y, CornuTensor *const *d_y, CornuTensor **d_x);

typedef struct {
    const char         *name;         /* in messages, printed programs and `explain --check`: small
                                         letters, digits, underscores; no other op's; required */
    int                 inputs;       /* operands; default 1, -1: one or more */
    int                 outputs;      /* results; default 1 */
    CornuOpTypes       *type;         /* default: results have the type of operand 0 */
    CornuOpFlops       *flops;        /* default: those of the composition, else one for each
                                         element of operand 0 */
    CornuOpReference   *reference;    /* default: by the composition */
    CornuOpComposition *composition;  /* default none; required unless there is a reference */
    CornuOpGradient    *gradient;     /* default: that of the composition; without one either the op
                                         cannot be differentiated */
    CornuOpKernel      *kernel;       /* default none */
} CornuOpDefinition;

/* Copies the definition and returns the op's handle, which is valid until the process ends. Any
 * thread may register. NULL and CORNU_ERR_ARGUMENT for a name that is not one or is taken, counts
 * out of range, or if neither .reference nor .composition is given. */
CornuOp *cornu_op_register(const CornuOpDefinition *definition);

/* The op registered by this name; NULL, without an error, if there is none. */
CornuOp *cornu_op_find(const char *name);

/* Records the op with `in_count` operands and up to CORNU_OP_NUMBERS numbers; `numbers` may be NULL
 * if number_count is 0. Fills `out` with the results, which are the graph's, and returns the first;
 * `out` may be NULL. NULL, as for any op, with the name of the op in the message. */
CornuTensor *cornu_op_custom(const CornuOp *op, CornuTensor *const *in, int in_count,
                             const double *numbers, int number_count, CornuTensor **out);

/* What cornu_op_check applies an op to, and how near results must come. */
typedef struct {
    char                 unset;
    const CornuType     *in;            /* types of the operands; required */
    int                  in_count;      /* required */
    const double        *numbers;
    int                  number_count;
    const double *const *values;        /* the elements of each operand; default drawn: floats in
                                           (-2, 2), integers 0, 1 and 2 */
    const char *const   *devices;       /* up to NULL; default cpu and tpu */
    double               near;          /* of devices to the reference, relative to the largest
                                           element; default 1e-5, f16 1/512, bf16 1/64. Integers
                                           must be equal */
} CornuOpCheck;

/* Compares with the reference, which computes in double: the composition, if there is one; the
 * gradient with respect to every float operand, if there is one, with differences of the results;
 * the results on devices, by the kernel or however they place the op. CORNU_ERR_VALUE with the
 * first difference: "my_swish: cpu: element 3 of result 0 is 1.5, the reference gives 1.25". Takes
 * two runs in double for each element, so a few dozen are enough. Each branch of an op needs a
 * check of its own; where the op has a bend, differences are not the gradient. */
CornuStatus cornu_op_check_from(const CornuOp *op, const CornuOpCheck *check);
#define cornu_op_check(op, ...) \
    cornu_op_check_from(op, &(CornuOpCheck){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
