/* Losses that are layers, as JSON. Not Keras': its add_loss is in the code of a class. */
#include "../../model/traced/loss_layer_internal.h"
#include "../keras_internal.h"
#include "architecture_internal.h"

#include <string.h>

json_t *cornu__loss_layer_to_json(const CornuLayer *layer)
{
    const CornuLossLayer *self = cornu__as_loss_layer(layer);
    return json_pack("{s:s, s:s, s:{s:s, s:o, s:b}, s:n}", "module", "cornu", "class_name",
                     layer->kind->class_name, "config", "name", cornu_layer_name(layer), "loss",
                     cornu__loss_to_json(self->loss), "values", self->values, "registered_name");
}

bool cornu__is_loss_layer_json(const json_t *value)
{
    const char *module = json_string_value(json_object_get(value, "module"));
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    return module && class_name && !strcmp(module, "cornu") &&
           !strcmp(class_name, cornu__loss_layer_class.class_name);
}

CornuStatus cornu__loss_layer_from_json(const json_t *value, CornuLayer **layer)
{
    const json_t *config = json_object_get(value, "config");
    CornuLoss    *loss = cornu__loss_from_json(json_object_get(config, "loss"));
    if (!loss) return cornu_error_take();
    *layer = cornu_loss_layer(loss, json_is_true(json_object_get(config, "values")),
                              json_string_value(json_object_get(config, "name")));
    if (!*layer) return cornu_error_take();
    (*layer)->owners = 1;
    return CORNU_OK;
}
