#include "layer.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "layer_internal.h"
#include "../weights/weight_rules_internal.h"

CornuLayer *cornu_layer_create(const CornuLayerClass *kind, const char *name, const char *dtype)
{
    if (cornu__refused()) return NULL;
    const CornuPolicy *policy = dtype ? cornu_policy(dtype) : NULL;
    if (dtype && !policy) {
        char label[64];
        cornu__snake_case(kind->class_name, label, sizeof label);
        cornu__fail_prefix(cornu_error_take(), name ? name : label);
        return cornu__null();
    }
    CornuLayer *layer = cornu__allocate(1, kind->size);
    if (!layer) return cornu__null();
    layer->kind = kind;
    layer->own_policy = policy;
    layer->compute = layer->result = CORNU_F32;
    layer->takes_integers = kind->takes_integers;
    cornu__snake_case(kind->label ? kind->label : kind->class_name, layer->class_label,
                      sizeof layer->class_label);
    if (name && !(layer->name = cornu__copy_text(name))) {
        cornu__release(layer);
        return cornu__null();
    }
    return layer;
}

static void weight_free(CornuWeight *weight)
{
    cornu_variable_free(weight->variable);
    cornu__release(weight->host);
    cornu__release(weight->path);
    cornu__release(weight);
}

void cornu_layer_free(CornuLayer *layer)
{
    if (!layer || (layer->owners > 0 && --layer->owners > 0)) return;
    if (layer->kind->free) layer->kind->free(layer);
    cornu__layer_free_states(layer);
    for (int i = 0; i < layer->own_count; i++) weight_free(layer->weights[i]);
    for (int i = 0; i < layer->inner_count; i++) {
        if (layer->inner[i]->outer == layer) layer->inner[i]->outer = NULL;
        cornu_layer_free(layer->inner[i]);
    }
    for (int i = 0; i < layer->kept_count; i++) cornu__release(layer->kept[i]);
    cornu__release(layer->kept);
    cornu__release(layer->weights);
    cornu__release(layer->name);
    cornu__release(layer);
}

CornuStatus cornu__layer_keep(CornuLayer *layer, void *memory)
{
    const CornuStatus status = cornu__reserve(&layer->kept, &layer->kept_space, layer->kept_count,
                                              1, sizeof *layer->kept);
    if (status) cornu__release(memory);
    else layer->kept[layer->kept_count++] = memory;
    return status;
}

CornuStatus cornu__layer_copy_numbers(CornuLayer *layer, CornuNumbers *numbers)
{
    const double *from = numbers->values;
    if (!from) return CORNU_OK;
    const size_t count = (size_t)cornu_shape_count(numbers->shape);
    double      *copy = cornu__allocate(count, sizeof *copy);
    numbers->values = NULL;
    if (!copy) return CORNU_ERR_MEMORY;
    memcpy(copy, from, count * sizeof *copy);
    CORNU__TRY(cornu__layer_keep(layer, copy));
    numbers->values = copy;
    return CORNU_OK;
}

const char *cornu_layer_name(const CornuLayer *layer)
{
    CORNU__NEED_OR(layer, NULL);
    return layer->name ? layer->name : layer->class_label;
}

int64_t cornu_layer_parameters(const CornuLayer *layer)
{
    CORNU__NEED_OR(layer, 0);
    int64_t count = 0;
    for (int i = 0; i < layer->weight_count; i++)
        count += cornu_type_count(layer->weights[i]->type);
    return count;
}

/* ---- Weights ---- */

/* "bidirectional/forward_lstm/lstm_cell/kernel" */
static char *path_of(const CornuLayer *layer, const char *name)
{
    size_t length = strlen(name) + 1, at;
    for (const CornuLayer *l = layer; l; l = l->outer) length += strlen(cornu_layer_name(l)) + 1;
    char *path = cornu__allocate(length, 1);
    if (!path) return NULL;
    at = length - strlen(name) - 1;
    memcpy(path + at, name, strlen(name));
    for (const CornuLayer *l = layer; l; l = l->outer) {
        const size_t own = strlen(cornu_layer_name(l));
        path[--at] = '/';
        at -= own;
        memcpy(path + at, cornu_layer_name(l), own);
    }
    return path;
}

CornuStatus cornu_layer_weight(CornuLayer *layer, const char *name, CornuShape shape,
                               CornuInitializer initializer, bool non_trainable)
{
    CornuType type = cornu_type_from(CORNU_F32, shape);
    CornuText text;
    for (int i = 0; i < shape.rank; i++)
        if (shape.extent[i] < 0)   /* or a product with an unknown extent */
            return cornu__fail(CORNU_ERR_SHAPE, "%s would be %s, which depends on an unknown "
                               "extent of the input; expected a known one", name,
                               cornu_shape_print(&text, shape));
    CORNU__TRY(cornu_type_check(type));
    int space = layer->weight_count;
    CORNU__TRY(cornu__reserve(&layer->weights, &space, layer->weight_count, 1,
                              sizeof *layer->weights));
    CornuWeight *weight = cornu__allocate(1, sizeof *weight);
    if (!weight) return CORNU_ERR_MEMORY;
    for (int i = layer->weight_count; i > layer->own_count; i--)   /* those of inner layers */
        layer->weights[i] = layer->weights[i - 1];
    layer->weights[layer->own_count++] = weight;
    layer->weight_count++;
    weight->type = type;
    weight->non_trainable = non_trainable;
    weight->initializer = initializer;
    weight->seed = layer->seed;
    weight->generator = layer->generator + cornu__layer_generators(layer) - 1;

    weight->path = path_of(layer, name);
    if (!weight->path) return CORNU_ERR_MEMORY;
    return cornu__fail_prefix(cornu__initializer_check(&initializer, shape, weight->generator),
                              name);
}

CornuStatus cornu_layer_weight_rules(CornuLayer *layer, CornuRegularizer regularizer,
                                     CornuConstraint constraint)
{
    CornuWeight     *weight = layer->weights[layer->own_count - 1];
    const CornuShape shape = weight->type.shape;
    const char      *name = strrchr(weight->path, '/') + 1;
    CORNU__TRY(cornu__fail_prefix(cornu__regularizer_check(&regularizer, shape), name));
    CORNU__TRY(cornu__fail_prefix(cornu__constraint_check(&constraint, shape), name));
    weight->regularizer = regularizer;
    weight->constraint = constraint;
    return CORNU_OK;
}

static float *new_values(const CornuWeight *weight)
{
    return cornu__allocate((size_t)cornu_type_count(weight->type), sizeof(float));
}

static CornuStatus check_type(const CornuWeight *weight, CornuArray array)
{
    CornuText a, b;
    if (!array.data)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the array's data are NULL", weight->path);
    if (cornu_type_equal(weight->type, array.type)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "%s: the weight is %s, the array %s", weight->path,
                       cornu_type_print(&a, weight->type), cornu_type_print(&b, array.type));
}

CornuStatus cornu_weight_read(const CornuWeight *weight, CornuArray to)
{
    CORNU__NEED(weight);
    CORNU__TRY(check_type(weight, to));
    if (weight->variable) return cornu_variable_read(weight->variable, to);
    if (!weight->host)
        return cornu__fail_prefix(cornu_initialize(weight->initializer, weight->type.shape,
                                                   weight->seed, weight->generator, to.data),
                                  weight->path);
    memcpy(to.data, weight->host, cornu_type_bytes(weight->type));
    return CORNU_OK;
}

CornuStatus cornu_weight_write(CornuWeight *weight, CornuArray from)
{
    CORNU__NEED(weight);
    CORNU__TRY(check_type(weight, from));
    if (weight->variable) return cornu_variable_write(weight->variable, from);
    if (!weight->host && !(weight->host = new_values(weight))) return CORNU_ERR_MEMORY;
    memcpy(weight->host, from.data, cornu_type_bytes(weight->type));
    return CORNU_OK;
}

/* To host memory. If it cannot be allocated, the weight returns to its initial value. */
static void weight_leave(CornuWeight *weight)
{
    const CornuArray values = cornu_array_from(new_values(weight), weight->type);
    if (values.data && cornu_variable_read(weight->variable, values)) {
        cornu__release(values.data);
        weight->host = NULL;
    } else {
        weight->host = values.data;
    }
    cornu_variable_free(weight->variable);
    weight->variable = NULL;
}

void cornu__layer_leave_device(CornuLayer *layer, const CornuDevice *device)
{
    for (int i = 0; i < layer->weight_count && layer->owners > 1 && device; i++) {
        const CornuVariable *variable = layer->weights[i]->variable;
        if (variable && cornu_variable_device(variable) == device)
            weight_leave(layer->weights[i]);
    }
    for (int i = 0; i < layer->inner_count; i++)
        cornu__layer_leave_device(layer->inner[i], device);
}

CornuStatus cornu__weight_move(CornuWeight *weight, CornuDevice *device)
{
    if (weight->variable && cornu_variable_device(weight->variable) == device) return CORNU_OK;
    CornuVariable *variable = cornu_variable_create(device, weight->type, weight->path,
                                                    .use = CORNU_USE_WEIGHTS);
    if (!variable) return cornu_error_take();
    const CornuArray values = cornu_array_from(new_values(weight), weight->type);
    CornuStatus      status = values.data ? cornu_weight_read(weight, values) : CORNU_ERR_MEMORY;
    if (!status) status = cornu_variable_write(variable, values);
    cornu__release(values.data);
    if (status) {
        cornu_variable_free(variable);
        return status;
    }
    cornu_variable_free(weight->variable);
    cornu__release(weight->host);
    weight->variable = variable;
    weight->host = NULL;
    return CORNU_OK;
}

CornuStatus cornu_layer_move(CornuLayer *layer, CornuDevice *device)
{
    for (int i = 0; i < layer->weight_count; i++) {
        const CornuVariable *variable = layer->weights[i]->variable;
        if (layer->compiled && variable && cornu_variable_device(variable) != device)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: is on the device of another model compiled "
                               "with it; expected both on one device, see .device",
                               cornu_layer_name(layer));
        CORNU__TRY(cornu__weight_move(layer->weights[i], device));
    }
    return CORNU_OK;
}

CornuTensor *cornu_layer_read_as(CornuLayer *layer, const CornuCall *call, int i,
                                 CornuDtype dtype)
{
    const CornuWeight *weight = layer->weights[i];
    for (const CornuReplaced *r = call->replaced; r; r = r->next)
        if (r->weight == weight) return cornu_op_convert(r->value, dtype);
    /* A template graph infers shapes only. A layer that is called again sees the statistics that
     * its last call has moved. */
    CornuTensor *value =
        call->weight         ? call->weight(call->weight_context, weight)
        : !weight->variable  ? cornu_op_constant(call->graph, weight->type, 0.0)
        : weight->non_trainable ? cornu_read_assigned(call->graph, weight->variable)
                                : cornu_read(call->graph, weight->variable);
    if (weight->lora_a) value = cornu__layer_with_lora(layer, call, i, value);
    return cornu_op_convert(value, dtype);
}

CornuTensor *cornu_layer_read(CornuLayer *layer, const CornuCall *call, int i)
{
    return cornu_layer_read_as(layer, call, i,
                               layer->kind->normalizes ? CORNU_F32 : layer->compute);
}

CornuTensor *cornu_layer_read_assigned(CornuLayer *layer, const CornuCall *call, int i)
{
    CornuVariable *variable = layer->weights[i]->variable;
    if (!variable) return cornu_layer_read_as(layer, call, i, CORNU_F32);
    return cornu_op_convert(cornu_read_assigned(call->graph, variable), CORNU_F32);
}

CornuStatus cornu_layer_assign(CornuLayer *layer, const CornuCall *call, int i,
                               CornuTensor *value)
{
    (void)call;
    value = cornu_op_convert(value, CORNU_F32);
    if (!value) return cornu_error_status();
    CornuVariable *variable = layer->weights[i]->variable;
    return variable ? cornu_assign(variable, value) : CORNU_OK;
}

/* ---- Losses ---- */

CornuStatus cornu_layer_add_loss(CornuLayer *layer, const CornuCall *call, CornuTensor *loss)
{
    const CornuType wanted = cornu_scalar(CORNU_F32);
    CornuText       text;
    if (!loss) return cornu_error_status();
    if (!cornu_type_equal(cornu_tensor_type(loss), wanted)) {
        cornu__fail_null(CORNU_ERR_DTYPE, "%s: the loss that it adds is %s, expected a scalar f32 "
                         "under any policy; use cornu_op_convert", cornu_layer_name(layer),
                         cornu_type_print(&text, cornu_tensor_type(loss)));
        return cornu_error_status();
    }
    if (call->loss) *call->loss = *call->loss ? cornu_op_add(*call->loss, loss) : loss;
    return CORNU_OK;
}

CornuStatus cornu__layer_penalize_weights(CornuLayer *layer, const CornuCall *call)
{
    const int   shards = cornu_device_shards(cornu_graph_device(call->graph));
    CornuStatus status = cornu_graph_scope(call->graph, "regularizer");
    for (int i = 0; i < layer->weight_count && call->loss && !status; i++) {
        const CornuWeight *weight = layer->weights[i];
        if (!weight->regularizer.kind || !cornu__layer_trains(layer, weight)) continue;
        CornuTensor *w = cornu_layer_read_as(layer, call, i, CORNU_F32);
        CornuTensor *penalty = cornu_regularizer_call(&weight->regularizer, w);
        status = cornu_layer_add_loss(layer, call, cornu_op_scale(penalty, 1.0 / shards));
    }
    cornu_graph_scope(call->graph, NULL);
    return status;
}

/* The valid rows of y (B, …), divided by their number on all shards. */
static CornuStatus penalize_activity(CornuLayer *layer, const CornuCall *call, CornuTensor *y)
{
    if (!call->loss || !layer->activity_regularizer.kind) return CORNU_OK;
    CornuShape rows = cornu_tensor_shape(y);
    for (int i = 1; i < rows.rank; i++) rows.extent[i] = 1;
    y = cornu_op_convert(y, CORNU_F32);
    CornuTensor *row = cornu_op_iota(call->graph, cornu_type_from(CORNU_I64, rows), 0);
    CornuTensor *valid = cornu_op_compare(row, CORNU_LESS, call->count);
    CornuTensor *kept = cornu_op_select(valid, y, cornu_op_constant_like(y, 0.0));
    CornuTensor *count = cornu_op_maximum(call->total, cornu_op_constant_like(call->total, 1.0));
    CornuTensor *penalty = cornu_regularizer_call(&layer->activity_regularizer, kept);
    return cornu_layer_add_loss(layer, call,
                                cornu_op_divide(penalty, cornu_op_convert(count, CORNU_F32)));
}

/* ---- Building and calling ---- */

static CornuStatus check_results(const CornuLayer *layer, CornuTensor *const *y, int count,
                                 CornuType *out)
{
    CornuText text;
    for (int i = 0; i < count; i++) {
        out[i] = cornu_tensor_type(y[i]);
        if (out[i].shape.rank < 1 || out[i].shape.extent[0] != 1)
            return cornu__fail(CORNU_ERR_SHAPE, "%s: the output of a batch of one row is %s, "
                               "expected one row",
                               cornu_layer_name(layer), cornu_shape_print(&text, out[i].shape));
        out[i].shape.extent[0] = CORNU_NONE;
    }
    return CORNU_OK;
}

/* Traces the layer in a graph of the reference device for a batch of one row; unknown extents are
 * replaced by `unknown`. */
static CornuStatus trace(CornuLayer *layer, const CornuType *in, int in_count, int64_t unknown,
                         CornuType *out)
{
    CornuStatus  status = CORNU_OK;
    CornuDevice *device = cornu_device_open("reference");
    CornuGraph  *graph = cornu_graph_create(device);
    const int    out_count = cornu_layer_outputs(layer);
    if (graph) {
        CornuTensor *x[CORNU_MAX_LAYER_TENSORS], *y[CORNU_MAX_LAYER_TENSORS];
        CornuTensor *scalar = cornu_op_constant(graph, cornu_scalar(CORNU_I64), 1.0);
        CornuCall    call = { .graph = graph, .count = scalar, .total = scalar,
                              .seed = scalar, .iteration = scalar, .position = scalar,
                              .shapes_only = true };
        for (int i = 0; i < in_count; i++) {
            CornuType type = in[i];
            type.shape.extent[0] = 1;
            for (int k = 1; k < type.shape.rank; k++)
                if (type.shape.extent[k] == CORNU_NONE) type.shape.extent[k] = unknown;
            x[i] = cornu_op_constant(graph, type, 0.0);
        }
        if (cornu_layer_call_many(layer, &call, x, in_count, y, out_count))
            status = check_results(layer, y, out_count, out);
    }
    const CornuStatus pending = cornu_error_take();
    cornu_graph_free(graph);
    cornu_device_close(device);
    return pending ? pending : status;
}

/* Extents that differ between the outputs of two traces depend on an unknown one. */
static CornuStatus compare(const CornuLayer *layer, CornuType *out, const CornuType *other)
{
    for (int i = 0; i < cornu_layer_outputs(layer); i++) {
        CornuShape *shape = &out[i].shape;
        if (shape->rank != other[i].shape.rank)
            return cornu__fail(CORNU_ERR_SHAPE, "%s: the rank of its output depends on an "
                               "unknown extent", cornu_layer_name(layer));
        for (int k = 1; k < shape->rank; k++)
            if (shape->extent[k] != other[i].shape.extent[k]) shape->extent[k] = CORNU_NONE;
    }
    return CORNU_OK;
}

bool cornu__shape_fits(CornuShape given, CornuShape want)
{
    bool fits = given.rank == want.rank;
    for (int i = 1; i < want.rank && fits; i++)
        fits = want.extent[i] == CORNU_NONE || given.extent[i] == want.extent[i];
    return fits;
}

/* Unknown extents are replaced by two different numbers in turn. As some layers refuse long
 * sequences (position_embedding) and others short ones (a large kernel), several pairs are tried.
 * Powers of two divide by the usual pools and strides. */
CornuStatus cornu__layer_trace(CornuLayer *layer, const CornuType *in, int in_count,
                               CornuType *out)
{
    static const int64_t tried[] = { 64, 512, 8 };
    CornuType    other[CORNU_MAX_LAYER_TENSORS];
    CornuFailure failure = { .status = CORNU_OK };
    bool         known = true;
    if (layer->kind->types)
        return cornu__fail_prefix(layer->kind->types(layer, in, in_count, out),
                                  cornu_layer_name(layer));
    for (int i = 0; i < in_count; i++)
        for (int k = 1; k < in[i].shape.rank; k++) known &= in[i].shape.extent[k] != CORNU_NONE;
    if (known) return trace(layer, in, in_count, 1, out);
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        CornuStatus status = trace(layer, in, in_count, tried[i], out);
        if (!status) status = trace(layer, in, in_count, 2 * tried[i], other);
        if (!status) return compare(layer, out, other);
        if (!failure.status) cornu__failure_keep(&failure, status);
    }
    return cornu__failure_tell(&failure);
}

CornuStatus cornu__layer_declare_weights(CornuLayer *layer, const CornuShape *in, int in_count)
{
    const CornuLayerClass *kind = layer->kind;
    CornuShape             given[CORNU_MAX_LAYER_TENSORS];
    if (layer->built) return CORNU_OK;
    for (int i = 0; i < in_count; i++) given[i] = cornu__shape_channels_last(layer, in[i]);
    CornuStatus status = kind->build_many ? kind->build_many(layer, given, in_count)
                         : kind->build    ? kind->build(layer, given[0]) : CORNU_OK;
    if (!status) status = cornu__layer_add_lora(layer);
    return cornu__fail_prefix(status, cornu_layer_name(layer));
}

CornuStatus cornu_layer_build_many(CornuLayer *layer, const CornuShape *in, int in_count)
{
    CornuType types[CORNU_MAX_LAYER_TENSORS], out[CORNU_MAX_LAYER_TENSORS];
    if (layer->built) return CORNU_OK;
    CORNU__TRY(cornu__layer_declare_weights(layer, in, in_count));
    for (int i = 0; i < in_count; i++) types[i] = cornu_type_from(CORNU_F32, in[i]);
    CORNU__TRY(cornu__layer_trace(layer, types, in_count, out));
    layer->output = out[0].shape;
    layer->built = true;
    return CORNU_OK;
}

CornuStatus cornu_layer_build(CornuLayer *layer, CornuShape input)
{
    return cornu_layer_build_many(layer, &input, 1);
}

/* Of a layer and its inner ones the outermost gives its name. */
static void begin_scope(const CornuLayer *layer, const CornuCall *call)
{
    if (!layer->outer) cornu_graph_scope(call->graph, cornu_layer_name(layer));
}

static void end_scope(const CornuLayer *layer, const CornuCall *call)
{
    if (!layer->outer) cornu_graph_scope(call->graph, NULL);
}

/* The input, converted to the dtype and the order of axes that the layer takes. */
static CornuTensor *converted(const CornuLayer *layer, CornuTensor *x)
{
    x = cornu__to_channels_last(layer, x);
    if (!x || layer->takes_integers || layer->kind->keeps_dtypes) return x;
    if (layer->kind->keeps_integers && !cornu_dtype_is_float(cornu_tensor_type(x).dtype)) return x;
    return cornu_op_convert(x, layer->compute);
}

/* Sets all outputs and their masks; returns the first output. */
static CornuTensor *record(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                           int in_count, CornuTensor *const *masks, CornuTensor **out,
                           CornuTensor **out_masks)
{
    const CornuLayerClass *kind = layer->kind;
    CornuTensor *given[CORNU_MAX_LAYER_TENSORS];
    if (kind->call_masked)
        return kind->call_masked(layer, call, in, in_count, masks, out, out_masks);
    begin_scope(layer, call);
    for (int i = 0; i < in_count; i++)
        if (!(given[i] = converted(layer, in[i]))) {
            end_scope(layer, call);
            return NULL;
        }
    out_masks[0] = call->mask;
    if (kind->mask_many) out_masks[0] = kind->mask_many(layer, call, given, in_count, masks);
    else if (kind->mask) out_masks[0] = kind->mask(layer, call, given[0]);
    out[0] = kind->call_many ? kind->call_many(layer, call, given, in_count, out)
                             : kind->call(layer, call, given[0]);
    CornuStatus status = CORNU_OK;
    for (int i = 0; out[0] && !status && i < cornu_layer_outputs(layer); i++) {
        out[i] = cornu__from_channels_last(layer, out[i]);
        status = penalize_activity(layer, call, out[i]);
    }
    end_scope(layer, call);
    return status ? cornu__null() : out[0];
}

int cornu_layer_outputs(const CornuLayer *layer)
{
    CORNU__NEED_OR(layer, 0);
    return layer->kind->outputs ? layer->kind->outputs(layer) : 1;
}

CornuTensor *cornu__layer_call_masked(CornuLayer *layer, const CornuCall *call,
                                      CornuTensor *const *in, int in_count,
                                      CornuTensor *const *masks, CornuTensor **out,
                                      CornuTensor **out_masks)
{
    const CornuLayerClass *kind = layer->kind;
    const int most = kind->call_many || kind->call_masked ? CORNU_MAX_LAYER_TENSORS : 1;
    const int out_count = cornu_layer_outputs(layer);
    bool      complete = true;
    for (int i = 0; i < out_count; i++) out[i] = out_masks[i] = NULL;
    if (in_count < 1 || in_count > most)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: got %d tensors, expected 1 to %d",
                                cornu_layer_name(layer), in_count, most);
    for (int i = 0; i < in_count; i++) complete = complete && in[i];
    CornuCall own = *call;
    own.mask = masks[0];
    own.masks = masks;
    if (complete && record(layer, &own, in, in_count, masks, out, out_masks)) return out[0];
    for (int i = 0; i < out_count; i++) out[i] = NULL;
    return NULL;
}

CornuTensor *cornu_layer_call_many(CornuLayer *layer, const CornuCall *call,
                                   CornuTensor *const *in, int in_count, CornuTensor **out,
                                   int out_count)
{
    CornuTensor *masks[CORNU_MAX_LAYER_TENSORS] = { call->mask };
    CornuTensor *out_masks[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < out_count; i++) out[i] = NULL;
    if (out_count != cornu_layer_outputs(layer))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: returns %d tensors, not %d",
                                cornu_layer_name(layer), cornu_layer_outputs(layer), out_count);
    return cornu__layer_call_masked(layer, call, in, in_count, masks, out, out_masks);
}

CornuTensor *cornu_layer_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    CornuTensor *masks[] = { call->mask }, *out_masks[CORNU_MAX_LAYER_TENSORS];
    CornuTensor *out[CORNU_MAX_LAYER_TENSORS];
    return cornu__layer_call_masked(layer, call, &x, 1, masks, out, out_masks);
}

CornuTensor *cornu_layer_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    if (!x || !layer->kind->mask) return call->mask;
    begin_scope(layer, call);
    CornuTensor *mask = layer->kind->mask(layer, call, converted(layer, x));
    end_scope(layer, call);
    return mask;
}
