/*
 * Ops of one's own: registered once by a definition, then used as any other op, on every device.
 *
 *     static CornuOp *swish;
 *     swish = cornu_op_register(&(CornuOpDefinition){
 *         .name = "my_swish", .composition = composition, .gradient = gradient });
 *     y = cornu_op_custom(swish, &x, 1, (const double[]){ 1.5 }, 1, NULL);
 *
 * A definition says what the op computes by `composition`, the op written with other ops, by
 * `reference`, loops in double, or by both. Devices choose as they do for Cornu's own ops, and
 * cornu_device_place tells (placement.h):
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

#ifdef __cplusplus
}
#endif
#endif
