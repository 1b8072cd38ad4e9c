#include "image_folder.h"

#include <stdlib.h>
#include <string.h>

#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"
#include "../pipeline/dataset_internal.h"
#include "image_list_internal.h"

typedef struct {
    CornuImageList          list;
    uint32_t               *order;    /* element i is file order[first + i] */
    int64_t                 first;
    CornuLabelMode          label_mode;
    CornuImageInterpolation interpolation;
    bool                    crop;
} Images;

static void write_label(const CornuDataset *dataset, int32_t label, void *to)
{
    const Images *images = dataset->own;
    float        *numbers = to;
    switch (images->label_mode) {
    case CORNU_LABELS_INT: *(int32_t *)to = label; break;
    case CORNU_LABELS_BINARY: numbers[0] = (float)label; break;
    case CORNU_LABELS_CATEGORICAL:
        memset(numbers, 0, dataset->bytes[1]);
        numbers[label] = 1.0f;
        break;
    }
}

static CornuStatus images_fetch(CornuStage *stage, CornuSample at, void *const *to,
                                int64_t *valid)
{
    const CornuDataset   *dataset = stage->dataset;
    const Images         *images = dataset->own;
    const CornuImageFile *file = &images->list.files[images->order[images->first + at.index]];
    const CornuType       type = dataset->type[0];
    CornuArray            image;
    const int             channels = (int)type.shape.extent[2];
    CORNU__TRY(type.dtype == CORNU_F32 ? cornu_image_load_f32(file->path, channels, &image)
                                       : cornu_image_load(file->path, channels, &image));
    const CornuStatus status = cornu_image_resize(image, images->interpolation, images->crop,
                                                  cornu_array_from(to[0], type));
    free(image.data);
    CORNU__TRY(status);
    write_label(dataset, file->label, to[1]);
    *valid = 1;
    return CORNU_OK;
}

static void images_free(CornuDataset *dataset)
{
    Images *images = dataset->own;
    if (!images) return;
    cornu__image_list_free(&images->list);
    cornu__release(images->order);
    cornu__release(images);
}

static const CornuDatasetKind images_kind = { .name = "image folder", .fetch = images_fetch,
                                              .free = images_free };

/* ---- Creation ---- */

static CornuStatus check_image_folder(const CornuImageFolderConfig *config)
{
    const char *directory = config->directory;
    if (!directory || !directory[0])
        return cornu__fail(CORNU_ERR_ARGUMENT, "image folder: .directory is not given");
    for (int i = 0; i < 2; i++)
        if (config->image_size[i] < 0 || config->image_size[i] > CORNU_IMAGE_EXTENT)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .image_size is {%lld, %lld}, expected 1 to "
                               "%d", directory, (long long)config->image_size[0],
                               (long long)config->image_size[1], CORNU_IMAGE_EXTENT);
    if (!(config->validation_split >= 0.0 && config->validation_split < 1.0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .validation_split is %g, expected 0 or more "
                           "and less than 1", directory, config->validation_split);
    if ((config->validation_split > 0.0) != (config->subset != CORNU_SUBSET_ALL))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .validation_split is %g and .subset %s, "
                           "expected both or neither", directory, config->validation_split,
                           config->subset == CORNU_SUBSET_ALL ? "is not given" : "is given");
    if ((unsigned)config->label_mode > CORNU_LABELS_BINARY ||
        (unsigned)config->color_mode > CORNU_COLOR_GRAYSCALE ||
        (unsigned)config->subset > CORNU_SUBSET_VALIDATION ||
        (unsigned)config->interpolation > CORNU_IMAGE_NEAREST)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .label_mode %d, .color_mode %d, .subset %d or "
                           ".interpolation %d is not known", directory, (int)config->label_mode,
                           (int)config->color_mode, (int)config->subset,
                           (int)config->interpolation);
    return CORNU_OK;
}

static CornuStatus list_images(CornuDataset *dataset, const CornuImageFolderConfig *config)
{
    Images *images = dataset->own;
    CORNU__TRY(cornu__image_list(&images->list, config->directory, config->class_names,
                                 config->follow_links));
    const int64_t count = images->list.count;
    if (config->label_mode == CORNU_LABELS_BINARY && images->list.class_count != 2)
        return cornu__fail(CORNU_ERR_DATA, "%s: has %d classes, expected 2 for binary labels",
                           config->directory, images->list.class_count);

    images->order = cornu__allocate((size_t)count, sizeof *images->order);
    if (!images->order) return CORNU_ERR_MEMORY;
    if (config->no_shuffle)
        for (int64_t i = 0; i < count; i++) images->order[i] = (uint32_t)i;
    else   /* differs from the order of any epoch */
        cornu__shuffle_order(images->order, count, config->seed, UINT32_MAX);

    const int64_t held_out = (int64_t)(config->validation_split * (double)count);
    if (config->subset == CORNU_SUBSET_VALIDATION) images->first = count - held_out;
    dataset->count = config->subset == CORNU_SUBSET_VALIDATION ? held_out : count - held_out;
    if (dataset->count) return CORNU_OK;
    return cornu__fail(CORNU_ERR_DATA, "%s: the subset has none of the %lld images at a "
                       ".validation_split of %g", config->directory, (long long)count,
                       config->validation_split);
}

static void set_types(CornuDataset *dataset, const CornuImageFolderConfig *config)
{
    const int64_t *size = config->image_size;
    const int64_t  height = size[0] ? size[0] : 256, width = size[1] ? size[1] : height;
    const int64_t  classes = ((const Images *)dataset->own)->list.class_count;
    dataset->components = 2;
    dataset->type[0] = cornu_type(config->full_depth ? CORNU_F32 : CORNU_U8, height, width,
                                  config->color_mode == CORNU_COLOR_RGB ? 3 : 1);
    dataset->type[1] = config->label_mode == CORNU_LABELS_INT ? cornu_scalar(CORNU_I32)
                     : config->label_mode == CORNU_LABELS_BINARY ? cornu_type(CORNU_F32, 1)
                                                                 : cornu_type(CORNU_F32, classes);
    for (int c = 0; c < 2; c++) dataset->bytes[c] = cornu_type_bytes(dataset->type[c]);
}

CornuDataset *cornu_image_folder_from(const CornuImageFolderConfig *config)
{
    if (cornu__refused() || check_image_folder(config)) return cornu__null();
    CornuDataset *dataset = cornu__allocate(1, sizeof *dataset);
    if (!dataset) return cornu__null();
    atomic_init(&dataset->owners, 1);
    dataset->kind = &images_kind;
    Images *images = dataset->own = cornu__allocate(1, sizeof *images);
    if (!images || list_images(dataset, config)) {
        cornu_dataset_free(dataset);
        return cornu__null();
    }
    images->label_mode = config->label_mode;
    images->interpolation = config->interpolation;
    images->crop = config->crop_to_aspect_ratio;
    set_types(dataset, config);
    cornu__log(CORNU_LOG_INFO, "%s: %lld images of %d classes", config->directory,
               (long long)dataset->count, images->list.class_count);
    return dataset;
}

/* ---- Queries ---- */

/* The image folder that a data set is derived from, or NULL. */
static const CornuDataset *images_below(const CornuDataset *dataset)
{
    while (dataset && dataset->kind != &images_kind) dataset = dataset->source;
    return dataset;
}

const char *const *cornu_image_folder_class_names(const CornuDataset *dataset, int *count)
{
    dataset = images_below(dataset);
    const Images *images = dataset ? dataset->own : NULL;
    *count = images ? images->list.class_count : 0;
    return images ? (const char *const *)images->list.classes : NULL;
}

const char *cornu_image_folder_path(const CornuDataset *dataset, int64_t i)
{
    dataset = images_below(dataset);
    if (!dataset || i < 0 || i >= dataset->count) return NULL;
    const Images *images = dataset->own;
    return images->list.files[images->order[images->first + i]].path;
}
