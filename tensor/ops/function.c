/* Functions, by their ops or by name: function_internal.h. */
#include "../function_internal.h"

#include <string.h>

#include "../graph_internal.h"

void cornu__graph_keep_functions(CornuGraph *graph) { graph->keeps_functions = true; }

/* Fills the results; false with a pending error. */
static bool by_ops(const CornuFunction *function, CornuTensor *const *x, int count,
                   const double *numbers, CornuTensor **out)
{
    for (int i = 0; i < function->base.outputs; i++) out[i] = NULL;
    if (function->formulas)    function->formulas(x, count, numbers, out);
    else if (function->of_one) out[0] = function->of_one(x[0]);
    else                       out[0] = function->formula(x, count, numbers);
    for (int i = 0; i < function->base.outputs; i++)
        if (!out[i]) return false;
    return true;
}

/* The formula for operands of these types, in a graph of its own, which the caller frees. */
static CornuGraph *compose(const CornuFunction *function, CornuTensor *const *x, int count,
                           const double *numbers)
{
    CornuTensor *in[CORNU_MAX_INPUTS], *out[CORNU_MAX_OUTPUTS];
    CornuGraph  *body = cornu_graph_create(x[0]->graph->device);
    if (!body) return NULL;
    cornu__graph_keep_functions(body);
    for (int i = 0; i < count; i++)
        if (!(in[i] = cornu__graph_parameter(body, cornu_tensor_type(x[i])))) goto fail;
    if (!by_ops(function, in, count, numbers, out)) goto fail;
    if (!cornu__graph_close(body, count, out, function->base.outputs, function->base.name,
                            "operands"))
        return body;
    cornu__null();
fail:
    cornu_graph_free(body);
    return NULL;
}

bool cornu__function_many(const CornuFunction *function, CornuTensor *const *x, int count,
                          const double *numbers, int number_count, CornuTensor **out)
{
    CornuAttributes attributes = { .custom = { .definition = &function->base,
                                               .number_count = number_count } };
    for (int i = 0; i < count; i++)
        if (!x[i]) {
            cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: operand %d is NULL", function->base.name, i);
            return false;
        }
    if (!x[0]->graph->keeps_functions) return by_ops(function, x, count, numbers, out);
    CornuGraph *body = compose(function, x, count, numbers);
    if (!body) return false;
    if (number_count)
        memcpy(attributes.custom.numbers, numbers, (size_t)number_count * sizeof *numbers);
    attributes.custom.body = body->program;
    const bool done = cornu__record(CORNU_OP_CUSTOM, &attributes, x, count, out) != NULL;
    cornu_graph_free(body);
    return done;
}

CornuTensor *cornu__function(const CornuFunction *function, CornuTensor *const *x, int count,
                             const double *numbers, int number_count)
{
    CornuTensor *out[CORNU_MAX_OUTPUTS];
    return cornu__function_many(function, x, count, numbers, number_count, out) ? out[0] : NULL;
}
