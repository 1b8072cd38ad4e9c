#include "layer.h"

#include <stdio.h>
#include <string.h>

#include "../../device/device_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/mesh/layout_map_internal.h"
#include "../../tensor/tensor_internal.h"
#include "quantized_internal.h"
#include "../config/policy_internal.h"
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
    if (dtype && (cornu__policy_block(dtype, &layer->quantized.block) ||
                  cornu__check_quantization(layer))) {
        cornu__release(layer);
        return cornu__null();
    }
    layer->compute = layer->result = layer->variable = CORNU_F32;
    layer->takes_integers = kind->takes_integers;
    const char *label = cornu__keras_class_of(kind)->label;
    cornu__snake_case(label ? label : kind->class_name, layer->class_label,
                      sizeof layer->class_label);
    if (name && !(layer->name = cornu__copy_text(name))) {
        cornu__release(layer);
        return cornu__null();
    }
    layer->remat = cornu__remat_in_scope();
    return layer;
}

CornuLayer *cornu_remat(CornuLayer *layer)
{
    if (!layer) return NULL;
    cornu__remat_release(layer->remat);
    layer->remat = &cornu__remat_full;
    return layer;
}

void cornu__weight_free(CornuWeight *weight)
{
    cornu_variable_free(weight->variable);
    cornu__release(weight->host);
    cornu__release(weight->path);
    cornu__release(weight);
}

void cornu__layer_free_states(CornuLayer *layer)
{
    for (int i = 0; i < CORNU_MAX_LAYER_STATES; i++) {
        cornu_variable_free(layer->states[i]);
        layer->states[i] = NULL;
    }
    for (int i = 0; i < layer->inner_count; i++) cornu__layer_free_states(layer->inner[i]);
}

void cornu__layer_free_states_elsewhere(CornuLayer *layer, const CornuDevice *device)
{
    for (int i = 0; i < CORNU_MAX_LAYER_STATES; i++) {
        CornuVariable **state = &layer->states[i];
        if (!*state || cornu_variable_device(*state) == device) continue;
        cornu_variable_free(*state);
        *state = NULL;
    }
    for (int i = 0; i < layer->inner_count; i++)
        cornu__layer_free_states_elsewhere(layer->inner[i], device);
}

CornuLayer *cornu_layer_take(CornuLayer *layer)
{
    if (layer) layer->owners++;
    return layer;
}

void cornu_layer_free(CornuLayer *layer)
{
    if (!layer || (layer->owners > 0 && --layer->owners > 0)) return;
    if (layer->kind->free) layer->kind->free(layer);
    cornu__layer_free_states(layer);
    for (int i = 0; i < layer->own_count; i++) cornu__weight_free(layer->weights[i]);
    for (int i = 0; i < layer->inner_count; i++) {
        if (layer->inner[i]->outer == layer) layer->inner[i]->outer = NULL;
        cornu_layer_free(layer->inner[i]);
    }
    cornu__remat_release(layer->remat);
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

CornuStatus cornu__layer_copy_text(CornuLayer *layer, const char **text)
{
    if (!*text) return CORNU_OK;
    char *copy = cornu__copy_text(*text);
    *text = NULL;
    if (!copy) return CORNU_ERR_MEMORY;
    CORNU__TRY(cornu__layer_keep(layer, copy));
    *text = copy;
    return CORNU_OK;
}

CornuStatus cornu__layer_copy_texts(CornuLayer *layer, CornuTexts *texts)
{
    const char *const *from = texts->values;
    size_t             bytes = 0;
    if (!from) return CORNU_OK;
    for (int64_t i = 0; i < texts->count; i++) bytes += strlen(from[i]) + 1;
    const size_t pointers = (size_t)texts->count * sizeof *from;
    char        *block = cornu__allocate(1, pointers + bytes), *next = block + pointers;
    texts->values = NULL;
    if (!block) return CORNU_ERR_MEMORY;
    CORNU__TRY(cornu__layer_keep(layer, block));
    const char **copy = (void *)block;
    for (int64_t i = 0; i < texts->count; i++) {
        const size_t size = strlen(from[i]) + 1;
        copy[i] = memcpy(next, from[i], size);
        next += size;
    }
    texts->values = copy;
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

int64_t cornu__layer_generators(const CornuLayer *layer)
{
    int64_t count = 1;
    for (int i = 0; i < layer->inner_count; i++) count += cornu__layer_generators(layer->inner[i]);
    return count + layer->own_count;
}

char *cornu__layer_path(const CornuLayer *layer, const char *name)
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
    weight->layer = layer;
    weight->non_trainable = non_trainable;
    weight->initializer = initializer;
    weight->seed = layer->seed;
    weight->generator = layer->generator + cornu__layer_generators(layer) - 1;

    weight->path = cornu__layer_path(layer, name);
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

CornuDtype cornu__weight_stored(const CornuWeight *weight, const CornuPolicy *usual)
{
    const CornuPolicy *policy = weight->layer->own_policy ? weight->layer->own_policy : usual;
    if (weight->stored != CORNU_STORED_BY_POLICY) return CORNU_F32;
    if (weight->layer->variable != CORNU_F32 || !policy) return weight->layer->variable;
    return policy->variable;
}

/* No layer of the library that only predicts keeps 8 bits. */
static inline CornuKept kept_as(const CornuWeight *weight)
{
    return CORNU__FULL(weight->kept, CORNU_KEPT_F32);
}

static CornuType kept_type(const CornuWeight *weight)
{
    return cornu_type_from(kept_as(weight) ? CORNU_U8 : CORNU_F32, weight->type.shape);
}

/* A new array of the weight's elements; data NULL with CORNU_ERR_MEMORY. */
static CornuArray new_values(CornuType type)
{
    return cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
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

/* Reads what is kept, of which initial values are f32 or zeros. */
static CornuStatus read_kept(const CornuWeight *weight, CornuArray to)
{
    if (weight->variable) return cornu_variable_read(weight->variable, to);
    if (weight->host) memcpy(to.data, weight->host, cornu_type_bytes(to.type));
    else if (kept_as(weight)) memset(to.data, kept_as(weight) == CORNU_KEPT_U8 ? 128 : 0,
                                  cornu_type_bytes(to.type));
    else return cornu__fail_prefix(cornu_initialize(weight->initializer, weight->type.shape,
                                                    weight->seed, weight->generator, to.data),
                                   weight->path);
    return CORNU_OK;
}

static CornuStatus write_kept(CornuWeight *weight, CornuArray from)
{
    if (weight->variable) return cornu_variable_write(weight->variable, from);
    if (!weight->host && !(weight->host = new_values(from.type).data)) return CORNU_ERR_MEMORY;
    memcpy(weight->host, from.data, cornu_type_bytes(from.type));
    return CORNU_OK;
}

/* The least number of 8 bits, whose byte is 128. */
static float least_kept(const CornuWeight *weight)
{
    return kept_as(weight) == CORNU_KEPT_U8 ? 0.0f : -128.0f;
}

static void widen_kept(const CornuWeight *weight, CornuArray bytes, float *to)
{
    const int64_t  count = cornu_type_count(bytes.type);
    const float    least = least_kept(weight);
    const uint8_t *from = bytes.data;
    for (int64_t i = 0; i < count; i++) to[i] = (float)(from[i] ^ 128) + least;
}

static CornuStatus narrow_kept(const CornuWeight *weight, const float *from, CornuArray bytes)
{
    const int64_t count = cornu_type_count(bytes.type);
    const float   least = least_kept(weight);
    uint8_t      *to = bytes.data;
    for (int64_t i = 0; i < count; i++) {
        const float above = from[i] - least;
        if (!(above >= 0.0f && above <= 255.0f) || (float)(uint8_t)above != above)
            return cornu__fail(CORNU_ERR_VALUE, "%s: element %lld is %g, expected a whole number "
                               "from %g to %g", weight->path, (long long)i, from[i], least,
                               least + 255.0f);
        to[i] = (uint8_t)above ^ 128;
    }
    return CORNU_OK;
}

CornuStatus cornu_weight_read(const CornuWeight *weight, CornuArray to)
{
    CORNU__NEED(weight);
    CORNU__TRY(check_type(weight, to));
    if (!kept_as(weight)) return read_kept(weight, to);
    const CornuArray bytes = new_values(kept_type(weight));
    CornuStatus      status = bytes.data ? read_kept(weight, bytes) : CORNU_ERR_MEMORY;
    if (!status) widen_kept(weight, bytes, to.data);
    cornu__release(bytes.data);
    return status;
}

CornuStatus cornu_weight_write(CornuWeight *weight, CornuArray from)
{
    CORNU__NEED(weight);
    CORNU__TRY(check_type(weight, from));
    if (!kept_as(weight)) return write_kept(weight, from);
    const CornuArray bytes = new_values(kept_type(weight));
    CornuStatus      status = bytes.data ? narrow_kept(weight, from.data, bytes)
                                         : CORNU_ERR_MEMORY;
    if (!status) status = write_kept(weight, bytes);
    cornu__release(bytes.data);
    return status;
}

CornuStatus cornu__weight_copy(CornuWeight *to, const CornuWeight *from)
{
    const bool      alike = kept_as(to) == kept_as(from);
    const CornuType type = alike ? kept_type(from) : from->type;
    if (CORNU__FULL(alike && from->host, false))
        return write_kept(to, cornu_array_from(from->host, type));
    const CornuArray values = new_values(type);
    CornuStatus      status = values.data ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status) status = alike ? read_kept(from, values) : cornu_weight_read(from, values);
    if (!status) status = alike ? write_kept(to, values) : cornu_weight_write(to, values);
    cornu__release(values.data);
    return status;
}

/* To host memory. If it cannot be allocated, the weight returns to its initial value. */
static void weight_leave(CornuWeight *weight)
{
    const CornuArray values = new_values(kept_type(weight));
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
    const bool leaves = device && layer->owners > 1 && !layer->compiled;
    for (int i = 0; i < layer->weight_count && leaves; i++) {
        const CornuVariable *variable = layer->weights[i]->variable;
        if (variable && cornu_variable_device(variable) == device)
            weight_leave(layer->weights[i]);
    }
    for (int i = 0; i < layer->inner_count; i++)
        cornu__layer_leave_device(layer->inner[i], device);
}

/* f32 to the nearest values of the precision. */
static void round_values(CornuArray values, CornuDtype precision)
{
    float *x = values.data;
    for (int64_t i = 0; i < cornu_type_count(values.type) && precision != CORNU_F32; i++)
        x[i] = precision == CORNU_BF16 ? cornu_bf16_to_float(cornu_bf16_from_float(x[i]))
                                       : cornu_f16_to_float(cornu_f16_from_float(x[i]));
}

static CornuStatus copy_values(const CornuWeight *weight, CornuVariable *to, CornuDtype precision)
{
    const CornuArray values = new_values(kept_type(weight));
    CornuStatus      status = values.data ? read_kept(weight, values) : CORNU_ERR_MEMORY;
    if (!status) round_values(values, precision);
    if (!status) status = cornu_variable_write(to, values);
    cornu__release(values.data);
    return status;
}

static CornuStatus weight_layout(const CornuWeight *weight, const CornuDevice *device,
                                 CornuLayout *layout)
{
    return cornu__device_layout(device, weight->path, weight->type,
                                weight->sparse_gradient || weight->sliced, weight->blocks, layout);
}

/* The initial values, as copy_values writes them. */
static CornuStatus draw_weight(const void *of, CornuArray to)
{
    const CornuWeight *weight = of;
    CORNU__TRY(cornu_initialize(weight->initializer, weight->type.shape, weight->seed,
                                weight->generator, to.data));
    round_values(to, cornu__weight_stored(weight, NULL));
    return CORNU_OK;
}

/* The variable has the weight's values; initial ones are drawn once it has memory. */
static CornuStatus give_values(const CornuWeight *weight, CornuVariable *to, CornuDtype precision)
{
    if (weight->variable || weight->host || kept_as(weight) || !cornu__variable_waits(to))
        return copy_values(weight, to, precision);
    cornu__variable_draw_later(to, draw_weight, weight);
    return CORNU_OK;
}

CornuStatus cornu__weight_move(CornuWeight *weight, CornuDevice *device)
{
    const CornuDtype precision = cornu__weight_stored(weight, NULL);
    if (weight->variable && cornu_variable_device(weight->variable) == device &&
        cornu_variable_precision(weight->variable) == precision)
        return CORNU_OK;
    CornuLayout layout;
    CORNU__TRY(weight_layout(weight, device, &layout));
    CornuVariable *variable = cornu_variable_create(device, kept_type(weight), weight->path,
                                                    .use = CORNU_USE_WEIGHTS,
                                                    .precision = precision,
                                                    .sparse_gradient = weight->sparse_gradient,
                                                    .spread = weight->sliced ? CORNU_SLICED
                                                                             : CORNU_SHARED,
                                                    .layout = &layout);
    if (!variable) return cornu_error_take();
    CornuStatus status = device->plans ? CORNU_OK : give_values(weight, variable, precision);
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

CornuStatus cornu__layer_check_move(const CornuLayer *layer, const CornuDevice *device, int own)
{
    CornuLayout layout;
    for (int i = 0; i < layer->weight_count; i++) {
        const CornuVariable *variable = layer->weights[i]->variable;
        if (layer->compiled > own && variable && cornu_variable_device(variable) != device)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: is on the device of another model compiled "
                               "with it; expected both on one device, see .device",
                               cornu_layer_name(layer));
        CORNU__TRY(weight_layout(layer->weights[i], device, &layout));
    }
    return CORNU_OK;
}

CornuStatus cornu_layer_move(CornuLayer *layer, CornuDevice *device)
{
    CORNU__TRY(cornu__layer_check_move(layer, device, 0));
    for (int i = 0; i < layer->weight_count; i++)
        CORNU__TRY(cornu__weight_move(layer->weights[i], device));
    return CORNU_OK;
}

static int index_of(const CornuLayer *layer, const CornuWeight *weight)
{
    int i = 0;
    while (layer->weights[i] != weight) i++;
    return i;
}

CornuTensor *cornu__layer_lora(CornuLayer *layer, const CornuCall *call, int i, CornuShape shape)
{
    const CornuWeight *weight = layer->weights[i];
    const int64_t      rank = weight->lora_b->type.shape.extent[0];
    CornuTensor *a = cornu_layer_read_as(layer, call, index_of(layer, weight->lora_a), CORNU_F32);
    CornuTensor *b = cornu_layer_read_as(layer, call, index_of(layer, weight->lora_b), CORNU_F32);
    CornuTensor *ab = cornu_op_matmul(cornu_op_reshape(a, cornu_shape(CORNU_NONE, rank)), b);
    return cornu_op_reshape(cornu_op_scale(ab, weight->lora_scale), shape);
}

/* A template graph infers shapes only. A layer that is called again sees the statistics that its
 * last call has moved. */
static CornuTensor *read_variable(const CornuWeight *weight, const CornuCall *call)
{
    return !weight->variable       ? cornu_op_constant(call->graph, kept_type(weight), 0.0)
           : weight->non_trainable ? cornu_read_assigned(call->graph, weight->variable)
                                   : cornu_read(call->graph, weight->variable);
}

CornuTensor *cornu__layer_read_plain(CornuLayer *layer, const CornuCall *call, int i,
                                     CornuDtype dtype)
{
    const CornuWeight      *weight = layer->weights[i];
    const CornuDescription *description = call->description;
    if (description)
        return cornu_op_convert(description->weight(description->context, weight), dtype);
    CornuTensor *value = read_variable(weight, call);
    if (!kept_as(weight)) return cornu_op_convert(value, dtype);
    value = cornu__signed_bytes(value);
    if (kept_as(weight) == CORNU_KEPT_U8) value = cornu_op_shift(value, 128.0);
    return cornu_op_convert(value, dtype);
}

CornuTensor *cornu__layer_read_bytes(CornuLayer *layer, const CornuCall *call, int i)
{
    const CornuWeight *weight = layer->weights[i];
    if (!call->description && !call->replaced) return read_variable(weight, call);
    CornuTensor *value = cornu_layer_read_as(layer, call, i, CORNU_F32);
    if (kept_as(weight) == CORNU_KEPT_U8) value = cornu_op_shift(value, -128.0);
    CornuTensor *below = cornu_op_step(cornu_op_negative(value));
    return cornu_op_convert(cornu_op_add(value, cornu_op_scale(below, 256.0)), CORNU_U8);
}

CornuTensor *cornu_layer_read_as(CornuLayer *layer, const CornuCall *call, int i,
                                 CornuDtype dtype)
{
    const CornuWeight *weight = layer->weights[i];
    for (const CornuReplaced *r = call->replaced; r; r = r->next)
        if (r->weight == weight) return cornu_op_convert(r->value, dtype);
    if (!weight->lora_a || call->description)
        return cornu__layer_read_plain(layer, call, i, dtype);
    CornuTensor *value = cornu__layer_read_plain(layer, call, i, CORNU_F32);
    CornuTensor *ab = cornu__layer_lora(layer, call, i, weight->type.shape);
    return cornu_op_convert(cornu_op_add(value, ab), dtype);
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
    CornuVariable *variable = layer->weights[i]->variable;
    if (variable && cornu_variable_precision(variable) != CORNU_F32)
        value = cornu_op_convert(value, cornu_variable_precision(variable));
    value = cornu_op_convert(value, CORNU_F32);
    if (!value) return cornu_error_status();
    return variable ? cornu_assign(variable, value) : CORNU_OK;
}

/* Whether some path to the layer that owns the weight has no frozen layer. */
bool cornu__layer_trains_next(const CornuLayer *layer, const CornuWeight *weight, int *inner)
{
    if (layer->frozen || weight->non_trainable) return false;
    for (int k = 0; k < layer->inner_count; k++) {
        const int i = (*inner + k) % layer->inner_count;
        if (!cornu_layer_trains(layer->inner[i], weight)) continue;
        *inner = i;
        return true;
    }
    for (int i = 0; i < layer->own_count; i++)
        if (layer->weights[i] == weight) return true;
    return false;
}

bool cornu_layer_trains(const CornuLayer *layer, const CornuWeight *weight)
{
    return cornu__layer_trains_next(layer, weight, &(int){ 0 });
}
