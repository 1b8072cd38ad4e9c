#include "class_folder_internal.h"

#include <string.h>

#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"
#include "../pipeline/dataset_internal.h"

typedef struct {
    CornuFileList        list;
    const CornuFileKind *kind;
    void                *settings;
    uint32_t            *order;    /* element i is file order[first + i] */
    int64_t              first;
    CornuLabelMode       label_mode;
} Folder;

static void write_label(const CornuDataset *dataset, int32_t label, void *to)
{
    const Folder *folder = dataset->own;
    float        *numbers = to;
    switch (folder->label_mode) {
    case CORNU_LABELS_INT: *(int32_t *)to = label; break;
    case CORNU_LABELS_BINARY: numbers[0] = (float)label; break;
    case CORNU_LABELS_CATEGORICAL:
        memset(numbers, 0, dataset->bytes[1]);
        numbers[label] = 1.0f;
        break;
    }
}

static CornuStatus folder_fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const CornuDataset    *dataset = stage->dataset;
    const Folder          *folder = dataset->own;
    const CornuListedFile *file = &folder->list.files[folder->order[folder->first + at.index]];
    CORNU__TRY(folder->kind->read(file->path, folder->settings,
                                  cornu_array_from(to[0], dataset->type[0])));
    write_label(dataset, file->label, to[1]);
    *valid = 1;
    return CORNU_OK;
}

static void folder_free(CornuDataset *dataset)
{
    Folder *folder = dataset->own;
    if (!folder) return;
    cornu__file_list_free(&folder->list);
    cornu__release(folder->settings);
    cornu__release(folder->order);
    cornu__release(folder);
}

static const CornuDatasetKind folder_kind = { .name = "class folder", .fetch = folder_fetch,
                                              .free = folder_free };

/* ---- Creation ---- */

static CornuStatus check_config(const CornuFileKind *kind, const CornuClassFolderConfig *config)
{
    const char *directory = config->directory;
    if (!directory || !directory[0])
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s folder: .directory is not given",
                           kind->name);
    if (!(config->validation_split >= 0.0 && config->validation_split < 1.0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .validation_split is %g, expected 0 or more "
                           "and less than 1", directory, config->validation_split);
    if ((config->validation_split > 0.0) != (config->subset != CORNU_SUBSET_ALL))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .validation_split is %g and .subset %s, "
                           "expected both or neither", directory, config->validation_split,
                           config->subset == CORNU_SUBSET_ALL ? "is not given" : "is given");
    if ((unsigned)config->label_mode > CORNU_LABELS_BINARY ||
        (unsigned)config->subset > CORNU_SUBSET_VALIDATION)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .label_mode %d or .subset %d is not known, "
                           "expected CORNU_LABELS_INT to BINARY and CORNU_SUBSET_ALL to VALIDATION",
                           directory, (int)config->label_mode, (int)config->subset);
    return CORNU_OK;
}

static CornuStatus list_files(CornuDataset *dataset, const CornuClassFolderConfig *config)
{
    Folder *folder = dataset->own;
    CORNU__TRY(cornu__file_list(&folder->list, folder->kind, folder->settings, config->directory,
                                config->class_names, config->follow_links));
    const int64_t count = folder->list.count;
    if (config->label_mode == CORNU_LABELS_BINARY && folder->list.class_count != 2)
        return cornu__fail(CORNU_ERR_DATA, "%s: has %d classes, expected 2 for binary labels",
                           config->directory, folder->list.class_count);

    folder->order = cornu__allocate((size_t)count, sizeof *folder->order);
    if (!folder->order) return CORNU_ERR_MEMORY;
    if (config->no_shuffle)
        for (int64_t i = 0; i < count; i++) folder->order[i] = (uint32_t)i;
    else   /* differs from the order of any epoch */
        cornu__shuffle_order(folder->order, count, config->seed, UINT32_MAX);

    const int64_t held_out = (int64_t)(config->validation_split * (double)count);
    if (config->subset == CORNU_SUBSET_VALIDATION) folder->first = count - held_out;
    dataset->count = config->subset == CORNU_SUBSET_VALIDATION ? held_out : count - held_out;
    if (dataset->count) return CORNU_OK;
    return cornu__fail(CORNU_ERR_DATA, "%s: the subset has none of the %lld %ss at a "
                       ".validation_split of %g", config->directory, (long long)count,
                       folder->kind->name, config->validation_split);
}

static void set_types(CornuDataset *dataset, CornuType type)
{
    const Folder *folder = dataset->own;
    dataset->components = 2;
    dataset->type[0] = type;
    dataset->type[1] = folder->label_mode == CORNU_LABELS_INT ? cornu_scalar(CORNU_I32)
                     : folder->label_mode == CORNU_LABELS_BINARY ? cornu_type(CORNU_F32, 1)
                     : cornu_type(CORNU_F32, folder->list.class_count);
    for (int c = 0; c < 2; c++) dataset->bytes[c] = cornu_type_bytes(dataset->type[c]);
}

static CornuStatus copy_settings(Folder *folder, const CornuFileKind *kind, const void *settings)
{
    folder->kind = kind;
    folder->settings = cornu__allocate(1, kind->settings);
    if (!folder->settings) return CORNU_ERR_MEMORY;
    memcpy(folder->settings, settings, kind->settings);
    return CORNU_OK;
}

CornuDataset *cornu__class_folder(const CornuFileKind *kind, const void *settings, CornuType type,
                                  const void *members)
{
    CornuClassFolderConfig config;
    memcpy(&config, members, sizeof config);
    if (check_config(kind, &config)) return cornu__null();
    CornuDataset *dataset = cornu__allocate(1, sizeof *dataset);
    if (!dataset) return cornu__null();
    atomic_init(&dataset->owners, 1);
    dataset->kind = &folder_kind;
    Folder *folder = dataset->own = cornu__allocate(1, sizeof *folder);
    if (folder) folder->label_mode = config.label_mode;
    if (!folder || copy_settings(folder, kind, settings) || list_files(dataset, &config)) {
        cornu_dataset_free(dataset);
        return cornu__null();
    }
    set_types(dataset, type);
    cornu__log(CORNU_LOG_INFO, "%s: %lld %ss of %d classes", config.directory,
               (long long)dataset->count, kind->name, folder->list.class_count);
    return dataset;
}

/* ---- Queries ---- */

/* The folder of this kind that a data set is derived from, or NULL. */
static const CornuDataset *folder_below(const CornuDataset *dataset, const CornuFileKind *kind)
{
    while (dataset && dataset->kind != &folder_kind) dataset = dataset->source;
    return dataset && ((const Folder *)dataset->own)->kind == kind ? dataset : NULL;
}

const char *const *cornu__class_folder_names(const CornuDataset *dataset,
                                             const CornuFileKind *kind, int *count)
{
    dataset = folder_below(dataset, kind);
    const Folder *folder = dataset ? dataset->own : NULL;
    *count = folder ? folder->list.class_count : 0;
    return folder ? (const char *const *)folder->list.classes : NULL;
}

const char *cornu__class_folder_path(const CornuDataset *dataset, const CornuFileKind *kind,
                                     int64_t i)
{
    dataset = folder_below(dataset, kind);
    if (!dataset || i < 0 || i >= dataset->count) return NULL;
    const Folder *folder = dataset->own;
    return folder->list.files[folder->order[folder->first + i]].path;
}
