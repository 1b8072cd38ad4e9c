/* Custom gradients: notes for which value cornu_gradients uses another tensor, and a step. */
#include "../graph_internal.h"

CornuTensor *cornu_op_with_gradient(CornuTensor *y, CornuTensor *instead, CornuGradientStep *step,
                                    void *context)
{
    CornuText a, b;
    if (!y || !instead)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_op_with_gradient: no tensor given");
    CornuGraph *graph = y->graph;
    if (instead->graph != graph)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_op_with_gradient: tensors of two "
                                "graphs, expected one");
    if (!cornu_type_equal(cornu_tensor_type(y), cornu_tensor_type(instead)))
        return cornu__fail_null(CORNU_ERR_SHAPE, "cornu_op_with_gradient: y is %s, the tensor "
                                "whose gradient it has %s, expected the same",
                                cornu_type_print(&a, cornu_tensor_type(y)),
                                cornu_type_print(&b, cornu_tensor_type(instead)));
    if (instead->value > y->value || graph->program->values[y->value].op < 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_op_with_gradient: y is %s, expected the "
                                "result of an op recorded after the other tensor",
                                instead->value > y->value ? "recorded before" : "an input");
    if (cornu__reserve(&graph->customs, &graph->custom_space, graph->custom_count, 1,
                       sizeof *graph->customs))
        return cornu__null();
    graph->customs[graph->custom_count++] = (CornuCustomGradient){ y, instead, step, context };
    return y;
}
