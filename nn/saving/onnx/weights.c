/* Weights as constants: onnx_internal.h. */
#include "rules_internal.h"

#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../formats/reorder_internal.h"

/* ---- Forms ---- */

static CornuOnnxForm form_of(const CornuOnnx *to, const CornuLayer *layer, int i)
{
    const CornuShape shape = layer->weights[i]->type.shape;
    int              number = 0;
    while (cornu_model_weight(to->model, number) != layer->weights[i]) number++;
    CornuOnnxForm form = { .numbers = to->weights->arrays[number].array.data, .own = shape,
                           .shape = shape, .factor = 1.0 };
    for (int k = 0; k < shape.rank; k++) form.order[k] = k;
    return form;
}

static bool are_equal(const CornuOnnxForm *a, const CornuOnnxForm *b)
{
    return a->numbers == b->numbers && a->blocks == b->blocks && a->factor == b->factor &&
           cornu_shape_equal(a->own, b->own) && cornu_shape_equal(a->shape, b->shape) &&
           !memcmp(a->order, b->order, (size_t)a->own.rank * sizeof *a->order);
}

int cornu__onnx_form(CornuOnnx *to, CornuOnnxForm form)
{
    for (int i = 0; i < to->form_count; i++)
        if (are_equal(&to->forms[i], &form)) return to->forms[i].value;
    if (cornu__reserve(&to->forms, &to->form_space, to->form_count, 1, sizeof *to->forms)) {
        to->nodes.failed = true;
        return CORNU_ONNX_NONE;
    }
    form.value = cornu__onnx_value(to, (CornuOnnxValue){
        .constant = true, .scalar = form.shape.rank == 0, .pending = true,
        .form = to->form_count + 1 });
    to->forms[to->form_count++] = form;
    return form.value;
}

int cornu__onnx_weight(CornuOnnx *to, const CornuLayer *layer, int i)
{
    return cornu__onnx_form(to, form_of(to, layer, i));
}

int cornu__onnx_weight_as(CornuOnnx *to, const CornuLayer *layer, int i, const int *order,
                          CornuShape shape)
{
    CornuOnnxForm form = form_of(to, layer, i);
    if (order) memcpy(form.order, order, (size_t)form.own.rank * sizeof *order);
    form.shape = shape;
    return cornu__onnx_form(to, form);
}

const CornuOnnxForm *cornu__onnx_form_of(const CornuOnnx *to, int value)
{
    const int form = value < to->count ? to->values[value].form : 0;
    return form ? &to->forms[form - 1] : NULL;
}

/* ---- Forms of forms ---- */

/* Whether the numbers are in their own order. */
static bool is_plain(const CornuOnnxForm *form)
{
    bool plain = !form->blocks && cornu_shape_count(form->own) == cornu_shape_count(form->shape);
    for (int i = 0; i < form->own.rank; i++) plain = plain && form->order[i] == i;
    return plain;
}

/* Whether only the order of the axes differs from that of the numbers. */
static bool is_transpose(const CornuOnnxForm *form)
{
    bool alike = form->own.rank == form->shape.rank;
    for (int i = 0; i < form->own.rank && alike; i++)
        alike = form->shape.extent[i] == form->own.extent[form->order[i]];
    return alike;
}

int cornu__onnx_turned_weight(CornuOnnx *to, int value, const int64_t *order, int rank)
{
    const CornuOnnxForm *from = cornu__onnx_form_of(to, value);
    if (!from || !(is_plain(from) || is_transpose(from))) return CORNU_ONNX_NONE;
    const bool    plain = is_plain(from);
    CornuOnnxForm form = *from;
    if (plain) form.own = form.shape;
    for (int i = 0; i < rank; i++) {
        form.order[i] = plain ? (int)order[i] : from->order[order[i]];
        form.shape.extent[i] = from->shape.extent[order[i]];
    }
    return cornu__onnx_form(to, form);
}

int cornu__onnx_shaped_weight(CornuOnnx *to, int value, CornuShape shape)
{
    const CornuOnnxForm *from = cornu__onnx_form_of(to, value);
    if (!from) return CORNU_ONNX_NONE;
    CornuOnnxForm form = *from;
    form.shape = shape;
    return cornu__onnx_form(to, form);
}

int cornu__onnx_scaled_weight(CornuOnnx *to, int value, double factor)
{
    const CornuOnnxForm *from = cornu__onnx_form_of(to, value);
    if (!from) return CORNU_ONNX_NONE;
    CornuOnnxForm form = *from;
    form.factor *= factor;
    return cornu__onnx_form(to, form);
}

/* ---- Writing ---- */

/* The numbers with the blocks of each row in their order. */
static void put_blocks(const CornuOnnxForm *form, float *values)
{
    const int64_t wide = form->own.extent[form->own.rank - 1], size = wide / form->block_count;
    const int64_t count = cornu_shape_count(form->own);
    for (int64_t row = 0; row < count; row += wide)
        for (int i = 0; i < form->block_count; i++)
            memcpy(values + row + i * size, form->numbers + row + form->blocks[i] * size,
                   (size_t)size * sizeof *values);
}

void cornu__onnx_put_weight(CornuOnnx *to, int value)
{
    const CornuOnnxForm *form = cornu__onnx_form_of(to, value);
    const CornuType      type = cornu_type_from(CORNU_F32, form->shape);
    const size_t         bytes = cornu_type_bytes(type);
    const float         *numbers = form->numbers;
    float *blocks = form->blocks ? cornu__onnx_room(to, form->own) : NULL, *values = NULL;
    if (blocks) put_blocks(form, blocks);
    if (blocks) numbers = blocks;
    if (!is_plain(form) || form->factor != 1.0) values = cornu__onnx_room(to, form->shape);
    if (values) {
        cornu__reorder(numbers, form->own, sizeof *values, form->order, values);
        for (int64_t i = 0; i < cornu_type_count(type) && form->factor != 1.0; i++)
            values[i] *= (float)form->factor;
        numbers = values;
    }
    if (!to->nodes.failed)
        cornu__onnx_put_tensor(to, value, CORNU_ONNX_FLOAT, form->shape, numbers, bytes);
    cornu__release(values);
    cornu__release(blocks);
}
