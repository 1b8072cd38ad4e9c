/* Losses of steps that are recorded by hand. */
#include "loss_internal.h"

bool cornu__recorded_batch(const char *who, CornuTensor *y_true, CornuTensor *y_pred,
                           CornuTensor *weight, CornuMetricCall *call)
{
    if (!y_true || !y_pred) return false;
    const CornuShape labels = cornu_tensor_shape(y_true), shape = cornu_tensor_shape(y_pred);
    CornuText        a, b;
    if (shape.rank < 1 || labels.rank < 1 || labels.extent[0] != shape.extent[0]) {
        cornu__fail_null(CORNU_ERR_SHAPE, "%s: y_true is %s and y_pred %s, expected the same "
                         "number of rows", who, cornu_shape_print(&a, labels),
                         cornu_shape_print(&b, shape));
        return false;
    }
    CornuGraph     *graph = cornu_tensor_graph(y_pred);
    const CornuType rows = cornu_type(CORNU_I64, shape.extent[0]);
    CornuTensor    *count = cornu_op_constant(graph, cornu_scalar(CORNU_I64),
                                              (double)shape.extent[0]);
    *call = (CornuMetricCall){ .y_true = y_true, .y_pred = cornu_op_convert(y_pred, CORNU_F32),
                               .count = cornu_op_all_reduce(count) };
    call->valid = cornu_op_compare(cornu_op_iota(graph, rows, 0), CORNU_LESS, count);
    call->weight = weight ? cornu_op_convert(weight, CORNU_F32) : NULL;
    return !cornu_error_pending();
}

CornuTensor *cornu__loss_record_masked(const CornuLoss *loss, CornuTensor *y_true,
                                       CornuTensor *y_pred, CornuTensor *sample_weight,
                                       CornuTensor *mask, bool values_alone)
{
    CornuMetricCall call;
    if (!cornu__recorded_batch(loss->name, y_true, y_pred, sample_weight, &call)) return NULL;
    call.mask = mask;
    CornuTensor *values = cornu__loss_values(loss, &call);
    if (!values) return NULL;
    if (!values_alone) return cornu__reduce_loss(loss, values, &call);
    return call.mask ? cornu_op_select(call.mask, values, cornu_op_constant_like(values, 0.0))
                     : values;
}

CornuTensor *cornu_loss_record(const CornuLoss *loss, CornuTensor *y_true, CornuTensor *y_pred,
                               CornuTensor *sample_weight)
{
    CORNU__NEED_TO_MAKE(loss);
    return cornu__loss_record_masked(loss, y_true, y_pred, sample_weight, NULL, false);
}

CornuTensor *cornu_loss_record_values(const CornuLoss *loss, CornuTensor *y_true,
                                      CornuTensor *y_pred)
{
    CORNU__NEED_TO_MAKE(loss);
    return cornu__loss_record_masked(loss, y_true, y_pred, NULL, NULL, true);
}
