/* Whether data fit a model: shapes, labels and losses, numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data.h"

static const char *loss_name(const CornuModel *model, int output)
{
    const CornuLoss *loss = cornu_model_compiled(model) ? cornu_model_loss(model, output) : NULL;
    return loss ? loss->name : NULL;
}

static bool is_sparse(const char *loss)
{
    return loss && !strcmp(loss, "sparse_categorical_crossentropy");
}

/* ---- One-hot ---- */

static CornuStatus one_hot(Data *data, CornuArray *labels, int64_t classes)
{
    const int64_t   rows = labels->type.shape.extent[0];
    const CornuType type = cornu_type(CORNU_F32, rows, classes);
    float          *to = data_own(data, cornu_type_bytes(type));
    if (!to) return cornu_error_status();
    memset(to, 0, cornu_type_bytes(type));
    for (int64_t i = 0; i < rows; i++) {
        const int64_t label = (int64_t)cornu_array_get(*labels, i);
        if (label >= 0 && label < classes) to[i * classes + label] = 1.0F;
    }
    *labels = cornu_array_from(to, type);
    return CORNU_OK;
}

bool data_wants_one_hot(const CornuModel *model, int64_t classes)
{
    const CornuShape out = cornu_model_output_shape(model);
    const char      *loss = loss_name(model, 0);
    return loss && !is_sparse(loss) && classes > 1 && out.rank == 2 && out.extent[1] == classes;
}

CornuStatus data_label_form(Data *data, const CornuModel *model)
{
    const bool numbers = data->y[0].type.shape.rank < 3 &&
                         cornu_type_count(data->y[0].type) == data->y[0].type.shape.extent[0];
    if (!numbers || !data_wants_one_hot(model, data->classes)) return CORNU_OK;
    CornuStatus status = one_hot(data, &data->y[0], data->classes);
    if (!status && data->test_y[0].data) status = one_hot(data, &data->test_y[0], data->classes);
    return status;
}

/* ---- Checks ---- */

/* `first`: the number of the first row. */
static CornuStatus check_finite(const char *name, const char *what, CornuArray array, int64_t first)
{
    if (!cornu_dtype_is_float(array.type.dtype)) return CORNU_OK;
    const int64_t count = cornu_type_count(array.type), rows = array.type.shape.extent[0];
    const int64_t width = rows > 0 && count > rows ? count / rows : 1;
    for (int64_t i = 0; i < count; i++) {
        const double value = cornu_array_get(array, i);
        if (!isfinite(value))
            return cornu_error_set(
                CORNU_ERR_VALUE, "%s: %s has %s in row %lld, expected numbers alone", name, what,
                isnan(value) ? "NaN" : "an infinity", (long long)(first + i / width));
    }
    return CORNU_OK;
}

/* Class numbers below the classes of the last axis. */
static CornuStatus check_classes(const char *name, CornuArray y, CornuShape out, int64_t first)
{
    const int64_t classes = out.extent[out.rank - 1], count = cornu_type_count(y.type);
    CornuShape    expected = out;
    CornuText     a, b;
    expected.rank--;
    expected.extent[expected.rank] = 0;
    const bool column = y.type.shape.rank == out.rank && y.type.shape.extent[out.rank - 1] == 1;
    if (y.type.shape.rank != expected.rank && !column)
        return cornu_error_set(CORNU_ERR_SHAPE,
                               "%s: the labels are %s, expected class numbers of shape "
                               "%s for outputs of %lld classes",
                               name, cornu_type_print(&a, y.type), cornu_shape_print(&b, expected),
                               (long long)classes);
    for (int64_t i = 0; i < count; i++) {
        const double label = cornu_array_get(y, i);
        if (label != floor(label))
            return cornu_error_set(CORNU_ERR_VALUE, "%s: label %g in row %lld, expected a whole "
                                   "number, the class", name, label,
                                   (long long)(first + i / (count / y.type.shape.extent[0])));
        if (label >= (double)classes || label < 0.0)
            return cornu_error_set(CORNU_ERR_VALUE, "%s: label %g in row %lld is not a class of "
                                   "the model's output, whose %lld classes are 0 to %lld", name,
                                   label,
                                   (long long)(first + i / (count / y.type.shape.extent[0])),
                                   (long long)classes, (long long)classes - 1);
    }
    return CORNU_OK;
}

/* The shape of the output; a trailing axis of 1 may be missing or added. */
static bool same_rows(CornuShape y, CornuShape out)
{
    while (out.rank > 1 && out.extent[out.rank - 1] == 1 && out.rank != y.rank) out.rank--;
    while (y.rank > 1 && y.extent[y.rank - 1] == 1 && out.rank < y.rank) y.rank--;
    bool same = y.rank == out.rank;
    for (int i = 1; same && i < out.rank; i++)
        same = out.extent[i] == CORNU_NONE || out.extent[i] == y.extent[i];
    return same;
}

static CornuStatus check_labels(const char *name, const CornuModel *model, int output, CornuArray y,
                                int64_t rows, int64_t first)
{
    const char      *loss = loss_name(model, output);
    const CornuShape out = cornu_symbol_type(cornu_model_output(model, output)).shape;
    CornuText        a, b;
    if (!y.data || !loss) return CORNU_OK;
    if (y.type.shape.extent[0] != rows)
        return cornu_error_set(CORNU_ERR_SHAPE,
                               "%s: %lld rows of data and %lld of labels, expected as "
                               "many",
                               name, (long long)rows, (long long)y.type.shape.extent[0]);
    if (is_sparse(loss)) return check_classes(name, y, out, first);
    if (same_rows(y.type.shape, out)) return CORNU_OK;
    return cornu_error_set(CORNU_ERR_SHAPE, "%s: the labels are %s, expected %s for %s%s", name,
                           cornu_type_print(&a, y.type), cornu_shape_print(&b, out), loss,
                           y.type.shape.rank < out.rank && strstr(loss, "crossentropy")
                               ? "; class numbers are for --loss sparse_categorical_crossentropy"
                               : "");
}

static CornuStatus check_side(const Data *data, const CornuModel *model, const CornuArray *x,
                              const CornuArray *y, DataNeed need, int64_t first)
{
    const char *name = data->name, *labels = data->labels ? data->labels : name;
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < cornu_model_input_count(model) && !status; i++) {
        status = arrays_fit(name, x[i], cornu_symbol_type(cornu_model_input(model, i)));
        if (!status && cornu_model_is_function(model)) continue; /* whole arrays, of any extents */
        if (!status && x[i].type.shape.extent[0] == 0)
            status = cornu_error_set(CORNU_ERR_DATA, "%s: has no rows", name);
        if (!status && x[i].type.shape.extent[0] != x[0].type.shape.extent[0])
            status = cornu_error_set(CORNU_ERR_SHAPE, "%s: input %s has %lld rows, the first %lld",
                                     name, cornu_model_input_name(model, i),
                                     (long long)x[i].type.shape.extent[0],
                                     (long long)x[0].type.shape.extent[0]);
        if (!status) status = check_finite(name, cornu_model_input_name(model, i), x[i],
                                           first);
    }
    for (int i = 0; i < cornu_model_output_count(model) && need != DATA_INPUTS && !status; i++) {
        status = check_labels(labels, model, i, y[i], x[0].type.shape.extent[0], first);
        if (!status && y[i].data) status = check_finite(labels, "y", y[i], first);
    }
    return status;
}

typedef struct {
    const Data       *data;
    const CornuModel *model;
    DataNeed          need;
} Checked;

static CornuStatus check_block(void *context, const CornuArray *arrays, int64_t first, bool *more)
{
    const Checked *checked = context;
    (void)more;
    return check_side(checked->data, checked->model, arrays,
                      arrays + cornu_model_input_count(checked->model), checked->need, first);
}

/* All rows: of files, in a pass over them. */
static CornuStatus check_part(const Data *data, const CornuModel *model, CornuDataset *rows,
                              const CornuArray *x, const CornuArray *y, DataNeed need)
{
    if (!rows) return check_side(data, model, x, y, need, 0);
    return data_rows_each(rows, data_rows_block(rows), check_block,
                          &(Checked){ data, model, need });
}

CornuStatus data_check(const Data *data, const CornuModel *model, DataNeed need)
{
    const CornuStatus status = check_part(data, model, data->rows, data->x, data->y, need);
    return status || !data->test_x[0].data
               ? status
               : check_part(data, model, data->test_rows, data->test_x, data->test_y, need);
}
