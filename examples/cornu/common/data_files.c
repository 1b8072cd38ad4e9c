/* Data in files of arrays and tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data.h"

/* ---- Arrays ---- */

static Loaded *next_file(Data *data)
{
    return &data->files[data->file_count++];   /* there is room for one for each array */
}

/* The inputs, or the outputs, of a model. */
typedef struct {
    const char *flag;        /* "x" */
    int         count;
    const char *names[DATA_MOST];
} Side;

static Side inputs_of(const CornuModel *model, const char *flag)
{
    Side side = { .flag = flag, .count = cornu_model_input_count(model) };
    for (int i = 0; i < side.count; i++) side.names[i] = cornu_model_input_name(model, i);
    return side;
}

static Side outputs_of(const CornuModel *model, const char *flag)
{
    Side side = { .flag = flag, .count = cornu_model_output_count(model) };
    for (int i = 0; i < side.count; i++) side.names[i] = cornu_model_output_name(model, i);
    return side;
}

/* "a, b" */
static void list_names(const Side *side, char *to, size_t size)
{
    size_t at = 0;
    to[0] = '\0';
    for (int i = 0; i < side->count && at < size; i++)
        at += (size_t)snprintf(to + at, size - at, "%s%s", i ? ", " : "", side->names[i]);
}

/* The place of "NAME=FILE", whose FILE is set; else that of the order, for a FILE. -1: there is no
 * such name, nor a file that is called so. */
static int place_of(const Side *side, const char *text, int order, const char **file)
{
    const char *equals = strchr(text, '=');
    *file = text;
    for (int i = 0; equals && i < side->count; i++)
        if (strlen(side->names[i]) == (size_t)(equals - text) &&
            !strncmp(side->names[i], text, (size_t)(equals - text))) {
            *file = equals + 1;
            return i;
        }
    return equals && access(text, F_OK) != 0 && !strstr(text, ".npz:") ? -1 : order;
}

static CornuStatus wrong_count(const Side *side, int given)
{
    char names[400];
    list_names(side, names, sizeof names);
    return cornu_error_set(CORNU_ERR_ARGUMENT, "expected --%s FILE %d times, for %s, got %d",
                           side->flag, side->count, names, given);
}

static CornuStatus wrong_name(const Side *side, const char *given)
{
    char names[400];
    list_names(side, names, sizeof names);
    return options_refuse("--%s %s: the model has no %s of that name, and "
                          "there is no such file; expected one of %s", side->flag, given,
                          strchr(side->flag, 'x') ? "input" : "output", names);
}

/* What an array is called in an archive that has several. */
static const char *usual_name(const Side *side, int place)
{
    return side->count > 1 ? side->names[place] : strchr(side->flag, 'x') ? "x" : "y";
}

/* The file of each of a side: one archive with all of them by their names, or a file for each. */
static CornuStatus find_files(const Side *side, const OptionTexts *given, char **files,
                              const char **usual)
{
    const bool whole = given->count == 1 && side->count > 1 && !strchr(given->text[0], '=') &&
                       strstr(given->text[0], ".npz");
    if (!whole && given->count != side->count) return wrong_count(side, given->count);
    for (int i = 0; i < side->count; i++) {
        const char *file = given->text[whole ? 0 : i];
        const int   place = whole ? i : place_of(side, file, i, &file);
        if (place < 0) return wrong_name(side, given->text[i]);
        if (files[place])
            return options_refuse("--%s %s: %s has a file already", side->flag,
                                  given->text[i], side->names[place]);
        files[place] = (char *)file;
        usual[place] = usual_name(side, place);
    }
    return CORNU_OK;
}

/* The rows of both sides, which stay in their files; of y none if there are no labels. */
static CornuStatus open_rows(const Side *x, const OptionTexts *given, const Side *y,
                             const OptionTexts *labels, CornuDataset **rows)
{
    char       *files[2 * DATA_MOST] = { NULL };
    const char *usual[2 * DATA_MOST];
    if (find_files(x, given, files, usual) ||
        (labels && find_files(y, labels, files + x->count, usual + x->count)))
        return cornu_error_status();
    *rows = data_rows_open(files, usual, x->count + (labels ? y->count : 0));
    return *rows ? CORNU_OK : cornu_error_status();
}

/* Whole arrays, of any extents, which a function takes. */
static CornuStatus load_side(Data *data, const Side *side, const OptionTexts *given, CornuArray *to)
{
    char       *files[DATA_MOST] = { NULL };
    const char *usual[DATA_MOST];
    if (find_files(side, given, files, usual)) return cornu_error_status();
    for (int i = 0; i < side->count; i++) {
        Loaded *loaded = next_file(data);
        if (arrays_load(loaded, files[i], usual[i])) return cornu_error_status();
        to[i] = loaded->array;
    }
    return CORNU_OK;
}

CornuStatus data_from_arrays(Data *data, const DataFlags *flags, const CornuModel *model,
                             DataNeed need)
{
    const Side         x = inputs_of(model, "x"), y = outputs_of(model, "y");
    const Side         test_x = inputs_of(model, "test-x"), test_y = outputs_of(model, "test-y");
    const OptionTexts *labels = flags->y.count ? &flags->y : &flags->x;   /* x.npz may have both */
    data->name = flags->x.text[0];
    data->labels = labels->text[0];
    snprintf(data->about, sizeof data->about, "%s", data->name);
    if (cornu_model_is_function(model)) return load_side(data, &x, &flags->x, data->x);
    if (need == DATA_INPUTS)
        return open_rows(&x, &flags->x, &y, flags->y.count ? labels : NULL, &data->rows);
    if (!flags->y.count && !(flags->x.count == 1 && strstr(flags->x.text[0], ".npz")))
        return cornu_error_set(CORNU_ERR_ARGUMENT, "expected --y FILE, the labels of --x %s",
                               flags->x.text[0]);
    if (!flags->test_x.count != !flags->test_y.count)
        return options_refuse("--test-x and --test-y go together");
    if (open_rows(&x, &flags->x, &y, labels, &data->rows)) return cornu_error_status();
    return !flags->test_x.count ? CORNU_OK : open_rows(&test_x, &flags->test_x, &test_y,
                                                       &flags->test_y, &data->test_rows);
}

/* The array of the first of these names that the archive has. */
static CornuArray find(const CornuNpz *file, const char *const *names)
{
    for (; *names; names++) {
        const CornuNamedArray *found = cornu_npz_find(file, *names);
        if (found) return found->array;
    }
    return (CornuArray){ .data = NULL };
}

static CornuStatus missing(const Data *data, const char *path, const char *name, const char *part)
{
    char   names[400] = "";
    size_t at = 0;
    for (int i = 0; i < cornu_npz_count(data->files[0].file) && i < 8 && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%.40s", i ? ", " : "",
                               cornu_npz_at(data->files[0].file, i)->name);
    return cornu_error_set(CORNU_ERR_FORMAT,
                           "%s: no array \"%s\", nor \"%s\", nor \"%s_train\"; it "
                           "has %s",
                           path, name, part, part, names);
}

CornuStatus data_from_archive(Data *data, const char *path, const CornuModel *model, DataNeed need)
{
    const Side x = inputs_of(model, "x"), y = outputs_of(model, "y");
    Loaded    *loaded = next_file(data);
    snprintf(data->about, sizeof data->about, "%s", path);
    if (!(loaded->file = cornu_npz_open(path))) return cornu_error_status();
    for (int i = 0; i < x.count; i++) {
        const bool  one = x.count == 1;
        const char *names[] = { x.names[i], one ? "x" : NULL, "x_train", NULL };
        data->x[i] = find(loaded->file, names);
        if (!data->x[i].data && one && cornu_npz_count(loaded->file) == 1)
            data->x[i] = cornu_npz_at(loaded->file, 0)->array;
        if (!data->x[i].data) return missing(data, path, x.names[i], "x");
        if (one) data->test_x[i] = find(loaded->file, (const char *const[]){ "x_test", NULL });
    }
    for (int i = 0; i < y.count; i++) {
        const bool  one = y.count == 1;
        const char *names[] = { y.names[i], one ? "y" : NULL, "y_train", NULL };
        data->y[i] = find(loaded->file, names);
        if (!data->y[i].data && need != DATA_INPUTS) return missing(data, path, y.names[i], "y");
        if (one) data->test_y[i] = find(loaded->file, (const char *const[]){ "y_test", NULL });
    }
    if (!data->test_x[0].data || (need != DATA_INPUTS && !data->test_y[0].data))
        data->test_x[0].data = data->test_y[0].data = NULL;
    return CORNU_OK;
}

/* ---- Tables ---- */

/* The columns of a model that cornu table made, with their categories, or NULL. Its target comes
 * last where labels are wanted. */
static CornuTable *columns_of(const CornuModel *model, DataNeed need)
{
    const char *inputs = cornu_model_note(model, "inputs"),
               *target = cornu_model_note(model, "target");
    if (!inputs || !target) return NULL;
    const size_t size = strlen(inputs) + strlen(target) + 2;
    char        *both = malloc(size);
    if (both) snprintf(both, size, "%s%s%s", inputs, inputs[strlen(inputs) - 1] == '\n' ? "" : "\n",
                       need != DATA_INPUTS ? target : "");
    CornuTable *columns = both ? cornu_table_schema_parse(both) : NULL;
    free(both);
    return columns;
}

static bool is_parquet(const char *path) { return data_kind(path) == DATA_PARQUET; }

CornuTable *data_table_load(const CornuTableConfig *config)
{
    return is_parquet(config->file) ? cornu_parquet_table_from(config)
                                    : cornu_table_load_from(config);
}

/* Sets target to --target, or to that of a model which cornu table made. */
static CornuStatus open_table(Data *data, const Options *options, const DataFlags *flags,
                              const CornuModel *model, char target[256], DataNeed need)
{
    CornuTable *like = columns_of(model, need);
    const int   last = like && need != DATA_INPUTS ? cornu_table_columns(like) - 1 : -1;
    snprintf(target, 256, "%s", flags->target ? flags->target
                                : last >= 0   ? cornu_table_column_name(like, last) : "");
    if (need != DATA_INPUTS && !*target)
        options_refuse("--data %s: expected --target COLUMN, what the model is "
                       "to predict",
                       options->data);
    else
        data->table = data_table_load(&(CornuTableConfig){ .file = options->data, .like = like,
                                                           .on_disk = true });
    cornu_table_free(like);
    return data->table ? CORNU_OK : cornu_error_status();
}

CornuStatus data_from_table(Data *data, const Options *options, const DataFlags *flags,
                            const CornuModel *model, DataNeed need)
{
    char              target[256];
    const char *const columns[] = { target, NULL };
    int               classes = 0;
    if (open_table(data, options, flags, model, target, need)) return cornu_error_status();
    const int at = *target ? cornu_table_find(data->table, target) : -1;
    if (at < 0 && flags->target) return cornu_error_status();
    cornu_error_take();   /* of a table to predict from, which need not have the target */
    if (at >= 0) data->class_names = cornu_table_categories(data->table, at, &classes);
    data->classes = classes;
    if (at < 0 && need != DATA_INPUTS)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "%s: no column %s", options->data, target);
    const CornuTableTakeConfig take[] = {
        { .except = at < 0 ? NULL : columns, .one_hot = true },
        { .columns = columns, .dtype = classes ? CORNU_I32 : CORNU_F32,
          .one_hot = classes && data_wants_one_hot(model, classes) } };
    CornuDataset *rows = cornu_table_dataset(data->table, take, at < 0 ? 1 : 2);
    if (!rows) return cornu_error_status();
    snprintf(data->about, sizeof data->about, "%s: %lld rows of %lld numbers", options->data,
             (long long)cornu_dataset_count(rows),
             (long long)cornu_dataset_type(rows, 0).shape.extent[0]);
    data->order = is_parquet(options->data) ? DATA_ANY_ORDER : DATA_BLOCKS;
    data->rows = data->order == DATA_ANY_ORDER ? rows : data_rows_fast(rows, &data->order);
    return data->rows ? CORNU_OK : cornu_error_status();
}
