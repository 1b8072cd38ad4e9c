/* Inputs and outputs by name: Keras' dictionaries of data and of arguments of compile. */
#include <stdio.h>
#include <string.h>

#include "model_internal.h"

typedef const char *NameAt(const CornuModel *model, int i);

const char *cornu__input_name(const CornuModel *model, int i)
{
    return model->input_keys[i] ? model->input_keys[i]
                                : cornu_layer_name(model->inputs[i]->node->layer);
}

const char *cornu__output_name(const CornuModel *model, int output)
{
    return model->output_keys[output] ? model->output_keys[output]
                                      : cornu_layer_name(model->outputs[output]->node->layer);
}

/* "a, b, c", cut where it is too long. */
static const char *list_names(const CornuModel *model, NameAt *name_at, int count, char text[256])
{
    size_t length = 0;
    for (int i = 0; i < count && length < 255; i++)
        length += (size_t)snprintf(text + length, 256 - length, "%s%s", i > 0 ? ", " : "",
                                   name_at(model, i));
    return text;
}

/* The first of `count` names that is `name`; -1 with a pending error that lists them. */
static int find_name(const CornuModel *model, const char *what, const char *name, int count,
                     NameAt *name_at)
{
    char known[256] = "";
    for (int i = 0; i < count; i++)
        if (!strcmp(name_at(model, i), name)) return i;
    cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: has no %s \"%s\", expected one of %s",
                     model->base.name, what, name, list_names(model, name_at, count, known));
    return -1;
}

int cornu__find_output(const CornuModel *model, const char *name)
{
    return find_name(model, "output", name, model->output_count, cornu__output_name);
}

/* ---- Arrays ---- */

static CornuStatus order_some(const CornuModel *model, const char *what,
                              const CornuNamedArray *arrays, int given, int count, NameAt *name_at,
                              CornuArray *to)
{
    for (int i = 0; i < count; i++) to[i] = (CornuArray){ .data = NULL };
    for (int k = 0; k < given && arrays[k].name; k++) {
        const int i = find_name(model, what, arrays[k].name, count, name_at);
        if (i < 0) return cornu_error_take();
        if (to[i].data)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s \"%s\" is given twice",
                               model->base.name, what, arrays[k].name);
        to[i] = arrays[k].array;
    }
    return CORNU_OK;
}

static CornuStatus order(const CornuModel *model, const char *what, const CornuNamedArray *arrays,
                         int given, int count, NameAt *name_at, CornuArray *to)
{
    CORNU__TRY(order_some(model, what, arrays, given, count, name_at, to));
    for (int i = 0; i < count; i++)
        if (!to[i].data)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s \"%s\" is not given", model->base.name,
                               what, name_at(model, i));
    return CORNU_OK;
}

CornuStatus cornu_model_order_inputs(const CornuModel *model, const CornuNamedArray *arrays,
                                     int count, CornuArray *to)
{
    CORNU__NEED(model);
    CORNU__NEED(arrays);
    CORNU__NEED(to);
    return order(model, "input", arrays, count, model->input_count, cornu__input_name, to);
}

CornuStatus cornu_model_order_outputs(const CornuModel *model, const CornuNamedArray *arrays,
                                      int count, CornuArray *to)
{
    CORNU__NEED(model);
    CORNU__NEED(arrays);
    CORNU__NEED(to);
    return order(model, "output", arrays, count, model->output_count, cornu__output_name, to);
}

CornuStatus cornu__order_some_outputs(const CornuModel *model, const CornuNamedArray *arrays,
                                      int count, CornuArray *to)
{
    return order_some(model, "output", arrays, count, model->output_count, cornu__output_name, to);
}

/* ---- Keys ---- */

/* Keras sorts the keys of a dictionary, so that another order would not be that of its files. */
static CornuStatus set(const CornuModel *model, const char *what, const char *const *keys,
                       int count, char **to)
{
    for (int i = 0; i < count && keys[0]; i++) {
        if (!keys[i])
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s are %d, expected %d", model->base.name,
                               what, i, count);
        if (i > 0 && strcmp(keys[i - 1], keys[i]) >= 0)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s has \"%s\" after \"%s\", expected "
                               "ascending keys, as Keras sorts them", model->base.name, what,
                               keys[i], keys[i - 1]);
        if (!(to[i] = cornu__copy_text(keys[i]))) return CORNU_ERR_MEMORY;
    }
    return CORNU_OK;
}

CornuStatus cornu__model_set_keys(CornuModel *model, const char *const *inputs,
                                  const char *const *outputs)
{
    CORNU__TRY(set(model, "input_keys", inputs, model->input_count, model->input_keys));
    return set(model, "output_keys", outputs, model->output_count, model->output_keys);
}

void cornu__model_free_keys(CornuModel *model)
{
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) {
        cornu__release(model->input_keys[i]);
        cornu__release(model->output_keys[i]);
    }
}

/* ---- For programs that ask ---- */

const char *cornu_model_input_name(const CornuModel *model, int i)
{
    return model && model->inputs[0] && i >= 0 && i < model->input_count
               ? cornu__input_name(model, i) : NULL;
}

const char *cornu_model_output_name(const CornuModel *model, int i)
{
    return model && model->outputs[0] && i >= 0 && i < model->output_count
               ? cornu__output_name(model, i) : NULL;
}
