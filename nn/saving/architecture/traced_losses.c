/* Losses of the program's own, which are layers where the program is not there: beside what Keras
 * has of them, "traced". */
#include "../../fields/own_objects_internal.h"
#include "../../model/traced/loss_layer_internal.h"
#include "../keras_internal.h"
#include "architecture_internal.h"

#include <string.h>

static const char *const reductions[] = {
    [CORNU_MEAN] = "sum_over_batch_size", [CORNU_SUM] = "sum",
    [CORNU_MEAN_WITH_SAMPLE_WEIGHT] = "mean_with_sample_weight",
};

static CornuStatus read_reduction(const json_t *value, CornuReduction *reduction)
{
    const char *name = json_string_value(value);
    for (size_t i = 0; name && i < sizeof reductions / sizeof *reductions; i++)
        if (!strcmp(name, reductions[i])) {
            *reduction = (CornuReduction)i;
            return CORNU_OK;
        }
    return cornu__unexpected("reduction", "\"sum_over_batch_size\", \"sum\" or "
                             "\"mean_with_sample_weight\"");
}

CornuLoss *cornu__traced_loss_from_json(const json_t *value)
{
    const json_t  *traced = json_object_get(value, "traced");
    const json_t  *json = json_object_get(traced, "layer");
    CornuReduction reduction = CORNU_MEAN;
    CornuLayer    *layer = NULL;
    CornuStatus    status = read_reduction(json_object_get(traced, "reduction"), &reduction);
    if (!status && !cornu__is_traced_json(json)) status = cornu__unexpected("layer", "a layer");
    if (!status) status = cornu__traced_from_json(json, &layer);
    char *record = status ? NULL : cornu__json_text(value);
    if (!status && record)
        return cornu__layer_loss(layer, reduction,
                                 json_is_true(json_object_get(traced, "each_row")), record);
    cornu_layer_free(layer);
    cornu__fail_prefix(status ? status : CORNU_ERR_MEMORY, cornu__record_name(value));
    return cornu__null();
}
