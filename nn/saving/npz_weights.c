/* A model's weights and its optimizer's variables in .npz files, by their names. */
#include "../formats/npz.h"
#include "files_internal.h"

static CornuStatus save_weights(const CornuModel *model, const CornuValues *values,
                                const char *path)
{
    (void)model;
    return cornu_npz_write(path, values->arrays, values->weights + values->variables);
}

static CornuStatus fill(const CornuNpz *file, CornuValues *values)
{
    if (values->variables && !cornu_npz_find(file, values->arrays[values->weights].name))
        values->variables = 0;                     /* none, or of another optimizer */
    for (int i = 0; i < values->weights + values->variables; i++) {
        const CornuNamedArray *to = &values->arrays[i], *from = cornu_npz_find(file, to->name);
        CORNU__TRY(cornu__check_fills(from, to->name, to->array.type));
        cornu__fill_from(to->array, from->array);
    }
    return CORNU_OK;
}

static CornuStatus load_weights(CornuModel *model, const char *path)
{
    CornuValues values, wanted;
    CornuNpz   *file = cornu_npz_open(path);
    if (!file) return cornu_error_status();
    CornuStatus status = cornu__values_create(model, &values);
    wanted = values;
    if (status == CORNU_OK) status = fill(file, &wanted);
    if (status == CORNU_OK) status = cornu__values_write(model, &wanted);
    cornu__values_free(&values);
    cornu_npz_close(file);
    return status;
}

const CornuFormat cornu__npz_format = {
    .suffix = ".npz", .save_weights = save_weights, .load_weights = load_weights,
};
