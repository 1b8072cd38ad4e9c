/* Functions, by their ops or by name: function_internal.h. */
#include "../function_internal.h"

#include <string.h>

#include "../graph_internal.h"

void cornu__graph_keep_functions(CornuGraph *graph) { graph->keeps_functions = true; }

static CornuTensor *by_ops(const CornuFunction *function, CornuTensor *const *x, int count,
                           const double *numbers)
{
    return function->of_one ? function->of_one(x[0]) : function->formula(x, count, numbers);
}

/* The formula for operands of these types, in a graph of its own, which the caller frees. */
static CornuGraph *compose(const CornuFunction *function, CornuTensor *const *x, int count,
                           const double *numbers)
{
    CornuTensor *in[CORNU_MAX_INPUTS], *y;
    CornuGraph  *body = cornu_graph_create(x[0]->graph->device);
    if (!body) return NULL;
    cornu__graph_keep_functions(body);
    for (int i = 0; i < count; i++)
        if (!(in[i] = cornu__graph_parameter(body, cornu_tensor_type(x[i])))) goto fail;
    if (!(y = by_ops(function, in, count, numbers))) goto fail;
    if (!cornu__graph_close(body, count, &y, 1, function->base.name, "operands")) return body;
    cornu__null();
fail:
    cornu_graph_free(body);
    return NULL;
}

CornuTensor *cornu__function(const CornuFunction *function, CornuTensor *const *x, int count,
                             const double *numbers, int number_count)
{
    CornuAttributes attributes = { .custom = { .definition = &function->base,
                                               .number_count = number_count } };
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    for (int i = 0; i < count; i++)
        if (!x[i])
            return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: operand %d is NULL",
                                    function->base.name, i);
    if (!x[0]->graph->keeps_functions) return by_ops(function, x, count, numbers);
    CornuGraph *body = compose(function, x, count, numbers);
    if (!body) return NULL;
    if (number_count)
        memcpy(attributes.custom.numbers, numbers, (size_t)number_count * sizeof *numbers);
    attributes.custom.body = body->program;
    CornuTensor *y = cornu__record(CORNU_OP_CUSTOM, &attributes, x, count, out);
    cornu_graph_free(body);
    return y;
}
