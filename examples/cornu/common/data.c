#include "data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CornuStatus absent(const char *what)
{
    static const char *const names[] = { "synthetic", "mnist", "fashion-mnist", "shakespeare" };
    const char *nearest = cornu_nearest(what, names, sizeof names / sizeof *names);
    return cornu_error_set(CORNU_ERR_FILE, "--data %s: neither a file or folder, nor a set by the "
                           "name of mnist, fashion-mnist, shakespeare or synthetic%s%s%s", what,
                           nearest ? "; did you mean " : "", nearest ? nearest : "",
                           nearest ? "?" : "");
}

/* ---- Memory ---- */

void *data_own(Data *data, size_t bytes)
{
    const bool has_room = data->owned_count < (int)(sizeof data->owned / sizeof *data->owned);
    void      *memory = has_room ? malloc(bytes ? bytes : 1) : NULL;
    if (memory) data->owned[data->owned_count++] = memory;
    else cornu_error_set(CORNU_ERR_MEMORY, "no memory for %zu bytes of data", bytes);
    return memory;
}

void data_free(Data *data)
{
    for (int i = 0; i < data->file_count; i++) arrays_free(&data->files[i]);
    for (int i = 0; i < data->owned_count; i++) free(data->owned[i]);
    cornu_train_test_free(data->set);
    cornu_table_free(data->table);
    cornu_dataset_free(data->folder);
    cornu_dataset_free(data->rows);
    cornu_dataset_free(data->test_rows);
    *data = (Data){ .set = NULL };
}

CornuStatus data_describe(const Data *data, CornuModel *model)
{
    const CornuShape out = cornu_model_output_shape(model);
    char             number[32];
    CornuStatus      status = CORNU_OK;
    if (data->class_names && out.extent[out.rank - 1] == data->classes)
        status = cornu_model_set_class_names(model, data->class_names, (int)data->classes);
    if (!status && data->pictures) status = cornu_model_set_note(model, "images", "resized");
    if (status || !data->scaled) return status;
    snprintf(number, sizeof number, "%.17g", data->scale);
    status = cornu_model_set_note(model, "pixel_scale", number);
    snprintf(number, sizeof number, "%.17g", data->offset);
    return status ? status : cornu_model_set_note(model, "pixel_offset", number);
}

/* ---- Loading ---- */

bool data_given(const Options *options, const DataFlags *flags)
{
    return options->data || flags->x.count;
}

const CornuArray *data_test_x(const Data *data)
{
    return data->test_x[0].data ? data->test_x : data->x;
}

const CornuArray *data_test_y(const Data *data)
{
    return data->test_x[0].data ? data->test_y : data->y;
}

/* Flags that nothing would read. */
static CornuStatus check_flags(const Options *options, const DataFlags *flags)
{
    const DataKind kind = options->data ? data_kind(options->data) : DATA_ARRAYS;
    const bool     scaled = flags->scale != DATA_BY_MODEL || flags->offset != 0.0;
    const char    *what =
        options->data && flags->x.count ? "--data and --x: expected only one of them"
        : !flags->x.count && (flags->y.count || flags->test_x.count || flags->test_y.count)
            ? "--y, --test-x and --test-y come with --x"
        : flags->target && kind != DATA_TABLE && kind != DATA_PARQUET
            ? "--target is for --data FILE.csv and FILE.parquet alone"
        : options->data_dir && kind != DATA_SET && options->data
            ? "--data-dir is for sets by their names alone"
        : scaled && (kind == DATA_TABLE || kind == DATA_PARQUET || kind == DATA_TEXT ||
                     kind == DATA_ARRAYS)
            ? "--scale and --offset are for pictures alone"
        : flags->encoding && kind != DATA_TEXT && kind != DATA_SET && kind != DATA_SYNTHETIC
            ? "--encoding is for texts alone"
        : options->labels && kind != DATA_SET && kind != DATA_SYNTHETIC
            ? "--labels is for sets of digits and garments alone" : NULL;
    return what ? options_refuse("%s", what) : CORNU_OK;
}

static CornuStatus load(Data *data, const Options *options, const DataFlags *flags,
                        const CornuModel *model, DataNeed need)
{
    const char *what = options->data;
    if (flags->x.count) return data_from_arrays(data, flags, model, need);
    if (!what)
        return cornu_error_set(CORNU_ERR_ARGUMENT,
                               "expected --x FILE%s, or --data with a set (mnist), "
                               "a folder of pictures, a .csv, .parquet, .npz or text file",
                               need == DATA_INPUTS ? "" : " and --y FILE");
    data->name = what;
    switch (data_kind(what)) {
    case DATA_SET:
    case DATA_SYNTHETIC: return data_from_set(data, options, flags, model);
    case DATA_PICTURES:  return data_from_folder(data, options, flags, model);
    case DATA_TABLE:
    case DATA_PARQUET:   return data_from_table(data, options, flags, model, need);
    case DATA_ARRAYS:    return data_from_archive(data, what, model, need);
    case DATA_TEXT:      return data_from_text(data, options, flags, model);
    case DATA_SETS:
        return cornu_error_set(CORNU_ERR_ARGUMENT,
                               "--data %s: holds data sets, expected the name of "
                               "one, as --data mnist --data-dir %s",
                               what, what);
    case DATA_EMPTY:
        return cornu_error_set(CORNU_ERR_DATA,
                               "--data %s: has no folders, expected one of pictures for "
                               "each class",
                               what);
    case DATA_ABSENT: break;
    }
    return absent(what);
}

static void limit(CornuArray *arrays, int count, int64_t rows)
{
    for (int i = 0; i < count; i++) {
        int64_t *extent = &arrays[i].type.shape.extent[0];
        if (arrays[i].data && *extent > rows) *extent = rows;
    }
}

CornuStatus data_load(Data *data, const Options *options, const DataFlags *flags,
                      const CornuModel *model, DataNeed need)
{
    *data = (Data){ .set = NULL };
    CornuStatus status = check_flags(options, flags);
    if (!status && need != DATA_INPUTS && cornu_model_is_function(model))
        status = cornu_error_set(CORNU_ERR_UNSUPPORTED, "%s is a function of whole arrays, not of "
                                 "rows: only cornu predict runs it", cornu_model_name(model));
    if (!status) status = load(data, options, flags, model, need);
    if (!status && options->limit && data->rows) {
        data->rows = cornu_dataset_take(data->rows, options->limit);
        if (data->test_rows) data->test_rows = cornu_dataset_take(data->test_rows, options->limit);
        if (!data->rows) status = cornu_error_status();
    } else if (!status && options->limit) {
        limit(data->x, DATA_MOST, options->limit), limit(data->y, DATA_MOST, options->limit);
        limit(data->test_x, DATA_MOST, options->limit);
        limit(data->test_y, DATA_MOST, options->limit);
    }
    enum { LOOK = 256 };   /* rows, as many as a message or a look at them needs */
    const int inputs = cornu_model_input_count(model);
    if (!status && data->rows)
        status = data_rows_first(data, data->rows, inputs, LOOK, data->x, data->y);
    if (!status && data->test_rows)
        status = data_rows_first(data, data->test_rows, inputs, LOOK, data->test_x, data->test_y);
    if (!status && need != DATA_INPUTS) status = data_label_form(data, model);
    return status ? status : data_check(data, model, need);
}
