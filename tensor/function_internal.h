/*
 * How a function leaves its name in a program. A function is a formula in ops (tensor/functions/,
 * and here for those of ops.h). In most graphs calling it records its ops and nothing else. A graph
 * that keeps functions is recorded to be described, as a file is, and never trained: there the call
 * is one op CORNU_OP_CUSTOM, which has the name, the operands and the numbers; its body is the
 * formula, which itself may call functions. What writes the program looks the name up, and takes
 * the body where it has nothing of that name.
 *
 *     static CornuTensor *formula(CornuTensor *const *x, int count, const double *numbers) { … }
 *     static const CornuFunction leaky = CORNU__FUNCTION("leaky_relu", .formula = formula);
 *     y = cornu__function(&leaky, &x, 1, &slope, 1);
 *
 * The name and the numbers say what is computed; functions that compute the same by other ops, and
 * so round otherwise, share them. tensor/functions/README.md lists the names.
 */
#ifndef CORNU_TENSOR_FUNCTION_INTERNAL_H
#define CORNU_TENSOR_FUNCTION_INTERNAL_H

#include "../device/definition_internal.h"
#include "ops.h"

/* Records one result of one operand or more, or base.outputs of them; they depend on the operands
 * and on the numbers alone. */
typedef CornuTensor *CornuFormula(CornuTensor *const *x, int count, const double *numbers);
typedef void CornuFormulas(CornuTensor *const *x, int count, const double *numbers,
                           CornuTensor **out);

typedef struct {
    CornuDefinition base;      /* comes first: programs point to it */
    CornuFormula   *formula;   /* or, of one operand and no numbers: */
    CornuTensor  *(*of_one)(CornuTensor *x);
    CornuFormulas  *formulas;  /* or, of several results: */
} CornuFunction;

#define CORNU__FUNCTION(called, ...) CORNU__FUNCTION_OF(called, 1, __VA_ARGS__)
#define CORNU__FUNCTION_OF(called, results, ...)                                                \
    { .base = { .name = (called), .inputs = -1, .outputs = (results), .is_composed = true,      \
                .by_body = true },                                                              \
      __VA_ARGS__ }

/* Calls the function on up to CORNU_MAX_INPUTS operands and CORNU_OP_NUMBERS numbers. NULL,
 * pending, if an operand is NULL or an op of the formula fails. */
CornuTensor *cornu__function(const CornuFunction *function, CornuTensor *const *x, int count,
                             const double *numbers, int number_count);

/* Likewise of several results, base.outputs of them in `out`; false where that returns NULL. */
bool cornu__function_many(const CornuFunction *function, CornuTensor *const *x, int count,
                          const double *numbers, int number_count, CornuTensor **out);

/* Makes a graph, still empty, keep functions. */
void cornu__graph_keep_functions(CornuGraph *graph);

#endif
