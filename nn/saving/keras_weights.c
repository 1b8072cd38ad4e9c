/* Weights and optimizers in Keras' HDF5 files. */
#include "keras_internal.h"
#include "keras2/keras2_weights_internal.h"
#include "../config/naming_internal.h"
#include "../optimizers/optimizer_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PATH = 1200 };

static const char *const optimizer_group = "optimizer/vars";
static const char *const inner_group = "optimizer/inner_optimizer/vars";

/* ---- Writing ---- */

static CornuStatus write_group(CornuHdf5 *file, const char *path, const char *name)
{
    CORNU__TRY(cornu__hdf5_write_group(file, path));
    return cornu__hdf5_write_text(file, path, "name", name);
}

static CornuStatus write_array(CornuHdf5 *file, const char *group, int i, CornuArray array)
{
    char path[MAX_PATH];
    snprintf(path, sizeof path, "%s/%d", group, i);
    return cornu__hdf5_write(file, path, array);
}

/* In the dtype in which Keras keeps the weight. */
static CornuStatus write_weight(CornuHdf5 *file, const char *group, int i, const CornuModel *model,
                                int number, CornuArray array)
{
    const CornuWeight *weight = cornu_model_weight(model, number);
    const CornuDtype   dtype = cornu__weight_stored(weight, model->base.own_policy);
    char               path[MAX_PATH];
    snprintf(path, sizeof path, "%s/%d", group, i);
    if (weight->stored == CORNU_STORED_I8)
        return cornu__hdf5_write_narrow(file, path, array, CORNU_HDF5_I8);
    if (dtype == CORNU_F32) return cornu__hdf5_write(file, path, array);
    return cornu__hdf5_write_narrow(file, path, array, dtype == CORNU_BF16 ? CORNU_HDF5_BF16
                                                                           : CORNU_HDF5_F16);
}

/* "layers/words/vars/idf_weights", or "layers/words/PART/vars/idf_weights". */
static void array_path(char path[MAX_PATH], const CornuKerasGroup *group, bool in_part)
{
    const CornuKerasClass *keras = cornu__keras_class(group->layer);
    const int              above = (int)(strlen(group->path) - strlen("/vars"));
    snprintf(path, MAX_PATH, "%.*s%s%s/vars/%s", above, group->path, in_part ? "/" : "",
             in_part ? keras->array_folder : "", keras->array);
}

/* What a layer keeps beside its weights. */
static CornuStatus write_beside(CornuHdf5 *file, const CornuKerasGroup *group)
{
    if (!group->layer) return CORNU_OK;
    const CornuKerasClass *keras = cornu__keras_class(group->layer);
    const CornuNumbers     numbers = keras->get_array(group->layer);
    char                   path[MAX_PATH];
    if (!numbers.values) return CORNU_OK;
    const CornuType type = cornu_type_from(CORNU_F32, numbers.shape);
    CornuArray      array = cornu_array_from(cornu__allocate(1, cornu_type_bytes(type)), type);
    if (!array.data) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < cornu_type_count(type); i++)
        cornu_array_set(array, i, numbers.values[i]);
    array_path(path, group, false);
    CornuStatus status = cornu__hdf5_write(file, path, array);
    if (!status && keras->array_folder) {
        array_path(path, group, true);
        *strrchr(path, '/') = '\0';
        status = write_group(file, path, keras->array_folder);
        array_path(path, group, true);
        if (!status) status = cornu__hdf5_write(file, path, array);
    }
    cornu__release(array.data);
    return status;
}

static CornuStatus write_weights(CornuHdf5 *file, const CornuModel *model,
                                 const CornuValues *values)
{
    CornuKerasLayout layout;
    CORNU__TRY(cornu__keras_layout(model, "layers", NULL, &layout));
    CornuStatus status = CORNU_OK;
    for (int g = 0; g < layout.count && status == CORNU_OK; g++) {
        const CornuKerasGroup *group = &layout.groups[g];
        status = write_group(file, group->path, group->name);
        for (int i = 0; i < group->count && status == CORNU_OK; i++)
            status = write_weight(file, group->path, i, model, layout.order[group->first + i],
                                  values->arrays[layout.order[group->first + i]].array);
        if (status == CORNU_OK) status = write_beside(file, group);
    }
    cornu__keras_layout_free(&layout);
    return status;
}

/* Keras' LossScaleOptimizer has four variables of its own before those of the optimizer inside,
 * which it repeats. */
enum { OUTER_SCALARS = 4 };

static const char *name_of(const CornuOptimizer *optimizer)
{
    return optimizer->scales_loss ? optimizer->scale_name : cornu_optimizer_name(optimizer);
}

static CornuStatus write_variables(CornuHdf5 *file, const char *group, const char *name,
                                   const CornuNamedArray *variables, int count)
{
    CORNU__TRY(write_group(file, group, name));
    for (int i = 0; i < count; i++) CORNU__TRY(write_array(file, group, i, variables[i].array));
    return CORNU_OK;
}

/* ---- Optimizers made of others ---- */

/* One of them, and its variables. */
typedef struct {
    const CornuOptimizer  *optimizer;
    const char            *path;        /* NULL: the default one */
    const CornuNamedArray *variables;
} Inner;

/* By path, as the JSON of an OptimizerMap is written; the default one is the last. */
static int by_path(const void *a, const void *b)
{
    const char *x = ((const Inner *)a)->path, *y = ((const Inner *)b)->path;
    return x && y ? strcmp(x, y) : !x - !y;
}

static int sort_inner(const CornuOptimizer *optimizer, const CornuNamedArray *variables,
                      Inner inner[CORNU_MAX_OPTIMIZERS + 1])
{
    int count = 0, at = CORNU__COMPOSITE_VARIABLES;
    for (const CornuOptimizer *o; (o = cornu__optimizer_inner(optimizer, count)); count++) {
        inner[count] = (Inner){ o, optimizer->kind->composite->path(optimizer, count),
                                variables + at };
        at += o->variable_count;
    }
    qsort(inner, (size_t)count, sizeof *inner, by_path);
    return count;
}

/* The variables of each go into the common group and, once more, into one of its own,
 * "optimizer/optimizers/sgd_1/vars": named by class, counted. */
static CornuStatus write_composite(CornuHdf5 *file, const CornuOptimizer *optimizer,
                                   const CornuNamedArray *variables)
{
    Inner     inner[CORNU_MAX_OPTIMIZERS + 1];
    const int count = sort_inner(optimizer, variables, inner);
    int       at = CORNU__COMPOSITE_VARIABLES;
    CORNU__TRY(write_variables(file, optimizer_group, cornu_optimizer_name(optimizer), variables,
                               CORNU__COMPOSITE_VARIABLES));
    for (int i = 0; i < count; i++) {
        const CornuOptimizer *of = inner[i].optimizer;
        char label[64], group[160], number[16] = "";
        int  same = 0;
        for (int k = 0; k < of->variable_count; k++)
            CORNU__TRY(write_array(file, optimizer_group, at++, inner[i].variables[k].array));
        for (int k = 0; k < i; k++) same += inner[k].optimizer->kind == of->kind;
        cornu__snake_case(of->kind->class_name, label, sizeof label);
        if (same > 0) snprintf(number, sizeof number, "_%d", same);
        snprintf(group, sizeof group, "optimizer/optimizers/%s%s/vars", label, number);
        CORNU__TRY(write_variables(file, group, cornu_optimizer_name(of), inner[i].variables,
                                   of->variable_count));
    }
    return CORNU_OK;
}

static CornuStatus write_optimizer(CornuHdf5 *file, const CornuOptimizer *optimizer,
                                   const CornuNamedArray *variables, int count)
{
    if (optimizer->kind->composite) return write_composite(file, optimizer, variables);
    CORNU__TRY(write_variables(file, optimizer_group, name_of(optimizer), variables, count));
    if (!optimizer->scales_loss) return CORNU_OK;
    return write_variables(file, inner_group, cornu_optimizer_name(optimizer),
                           variables + OUTER_SCALARS, count - OUTER_SCALARS);
}

CornuStatus cornu__keras_write_values(CornuHdf5 *file, const CornuModel *model,
                                      const CornuValues *values)
{
    const int variables = cornu_model_optimizer_variable_count(model);
    CORNU__TRY(write_weights(file, model, values));
    if (variables == 0) return CORNU_OK;
    return write_optimizer(file, cornu_model_optimizer(model), values->arrays + values->weights,
                           variables);
}

/* ---- Reading ---- */

/* Reads an array; messages name the weight. */
static CornuStatus read_array(CornuHdf5 *file, const char *path, CornuNamedArray *to)
{
    return cornu__fail_prefix(cornu__hdf5_read(file, path, &to->array), to->name);
}

static CornuStatus read_member(CornuHdf5 *file, const char *group, int i, CornuNamedArray *to)
{
    char path[MAX_PATH];
    snprintf(path, sizeof path, "%s/%d", group, i);
    return read_array(file, path, to);
}

/* The weights of the group as they are before training. */
static CornuStatus initial_values(const CornuModel *model, const CornuKerasLayout *layout,
                                  const CornuKerasGroup *group, CornuValues *values)
{
    for (int i = 0; i < group->count; i++) {
        const int   at = layout->order[group->first + i];
        CornuArray *array = &values->arrays[at].array;
        if (!array->data && !(array->data = cornu__allocate(cornu_type_bytes(array->type), 1)))
            return CORNU_ERR_MEMORY;
        CORNU__TRY(cornu_weight_read(cornu_model_weight(model, at), *array));
    }
    return CORNU_OK;
}

/* *count: how many arrays that are, 0 or 1. */
static CornuStatus read_beside(CornuHdf5 *file, const CornuKerasGroup *group, int64_t *count)
{
    char       path[MAX_PATH];
    bool       has = false;
    CornuArray array = { .data = NULL };
    *count = 0;
    if (!group->layer) return CORNU_OK;
    array_path(path, group, false);
    CORNU__TRY(cornu__hdf5_has(file, path, &has));
    if (!has) return CORNU_OK;
    *count = 1;
    CORNU__TRY(cornu__hdf5_type(file, path, &array.type));
    array.type.dtype = CORNU_F32;
    CornuStatus status = cornu__hdf5_read(file, path, &array);
    if (!status)
        status = cornu__keras_class(group->layer)->set_array((CornuLayer *)(uintptr_t)group->layer,
                                                             array);
    cornu__release(array.data);
    return cornu__fail_prefix(status, path);
}

static CornuStatus read_group(CornuHdf5 *file, const CornuModel *model,
                              const CornuKerasLayout *layout,
                              const CornuKerasGroup *group, CornuValues *values)
{
    int64_t count, beside;
    CORNU__TRY(cornu__hdf5_count(file, group->path, &count));
    CORNU__TRY(read_beside(file, group, &beside));
    count -= beside;
    if (group->may_lack && count == 0) return initial_values(model, layout, group, values);
    if (count != group->count)
        return cornu__fail(CORNU_ERR_SHAPE, "\"%s\" has %lld weights, the model's layer %s has %d",
                           group->path, (long long)count, group->name, group->count);
    for (int i = 0; i < group->count; i++)
        CORNU__TRY(read_member(file, group->path, i,
                               &values->arrays[layout->order[group->first + i]]));
    return CORNU_OK;
}

/* Checks for groups of layers that the model does not have. Keras ignores them; here they show that
 * the file belongs to another model. */
static CornuStatus check_layers(CornuHdf5 *file, const CornuModel *model, const char *layers)
{
    int64_t count;
    CORNU__TRY(cornu__hdf5_count(file, layers, &count));
    /* Keras 2 did not write groups for layers without weights. */
    if (count <= cornu_model_layer_count(model)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "\"%s\" has %lld layers, the model %s has %d", layers,
                       (long long)count, cornu_model_name(model), cornu_model_layer_count(model));
}

/* The factors of low-rank adaptation, which are part of the kernels in a file. */
static CornuStatus clear_lora(const CornuModel *model, CornuValues *values)
{
    for (int i = 0; i < values->weights; i++) {
        CornuArray *array = &values->arrays[i].array;
        if (!cornu_model_weight(model, i)->is_lora) continue;
        if (!array->data && !(array->data = cornu__allocate(cornu_type_bytes(array->type), 1)))
            return CORNU_ERR_MEMORY;
        memset(array->data, 0, cornu_type_bytes(array->type));
    }
    return CORNU_OK;
}

static CornuStatus read_groups(CornuHdf5 *file, const CornuModel *model, const char *layers,
                               const CornuKerasFinder *finder, CornuValues *values)
{
    CornuKerasLayout layout;
    CORNU__TRY(cornu__keras_layout(model, layers, finder, &layout));
    CornuStatus status = CORNU_OK;
    for (int g = 0; g < layout.count && status == CORNU_OK; g++)
        status = read_group(file, model, &layout, &layout.groups[g], values);
    cornu__keras_layout_free(&layout);
    return status ? status : clear_lora(model, values);
}

/* "layers" or, in files of Keras 2.13, its former name; or the names of attributes. */
static CornuStatus read_weights(CornuHdf5 *file, const CornuModel *model, CornuValues *values)
{
    static const char *const former = "_layer_checkpoint_dependencies";
    CornuKerasGroups *groups;
    bool              has;
    CORNU__TRY(cornu__keras_groups(file, &groups));
    if (groups) {
        const CornuKerasFinder finder = cornu__keras_finder(groups);
        CornuStatus            status = read_groups(file, model, "layers", &finder, values);
        if (!status) status = cornu__keras_check_read(file, groups);
        cornu__keras_groups_free(groups);
        return status;
    }
    CORNU__TRY(cornu__hdf5_has(file, former, &has));
    const char *layers = has ? former : "layers";
    CORNU__TRY(check_layers(file, model, layers));
    return read_groups(file, model, layers, NULL, values);
}

/* Whether the group belongs to an optimizer of this name; true if it does not say. */
static CornuStatus is_named(CornuHdf5 *file, const char *group, const char *name, bool *named)
{
    char  **texts;
    int64_t count;
    CORNU__TRY(cornu__hdf5_texts(file, group, "name", &texts, &count));
    *named = count != 1 || !strcmp(texts[0], name);
    cornu__hdf5_free_texts(texts, count);
    return CORNU_OK;
}

/* Keras creates the variables of weights in the first step: before it there are only the iteration
 * and, without a schedule, the learning rate, which is also in the optimizer's config. */
static int first_variables(const CornuOptimizer *optimizer)
{
    int             count = (optimizer->schedule ? 1 : 2) + (optimizer->scales_loss ? 2 : 0);
    CornuOptimizer *inner;
    for (int i = 0; (inner = cornu__optimizer_inner(optimizer, i)); i++)
        count += first_variables(inner);
    return count;
}

static bool is_unused(const CornuOptimizer *optimizer, int64_t count)
{
    return count == first_variables(optimizer) && optimizer->variable_count > count;
}

static CornuStatus read_optimizer(CornuHdf5 *file, const CornuModel *model, CornuValues *values)
{
    const CornuOptimizer *optimizer = cornu_model_optimizer(model);
    CornuNamedArray      *variables = values->arrays + values->weights;
    int64_t               count;
    bool                  same;
    CORNU__TRY(cornu__hdf5_count(file, optimizer_group, &count));
    CORNU__TRY(is_named(file, optimizer_group, name_of(optimizer), &same));
    if (count == 0 || !same || is_unused(optimizer, count)) {
        values->variables = 0;
        return CORNU_OK;
    }
    int lacking = 0;
    for (int i = 0; i < values->variables; i++) lacking += cornu__keras2_lacks(model, i);
    if (count != values->variables && count != values->variables - lacking)
        return cornu__fail(CORNU_ERR_SHAPE, "its optimizer has %lld variables, the model's has %d: "
                           "their settings differ", (long long)count, values->variables);
    const bool old = count != values->variables;
    int        at = 0;
    for (int i = 0; i < values->variables; i++)
        CORNU__TRY(old && cornu__keras2_lacks(model, i)
                       ? cornu__keras2_complete(model, i, values)
                       : read_member(file, optimizer_group, at++, &variables[i]));
    return CORNU_OK;
}

CornuStatus cornu__keras_read_values(CornuHdf5 *file, const CornuModel *model, CornuValues *values)
{
    CORNU__TRY(read_weights(file, model, values));
    return values->variables ? read_optimizer(file, model, values) : CORNU_OK;
}
