#include "image_folder.h"

#include <stdlib.h>

#include "../../device/status_internal.h"
#include "../folders/class_folder_internal.h"

typedef struct {
    CornuImageInterpolation interpolation;
    bool                    crop;
} Settings;

static CornuStatus check(const char *path, void *settings)
{
    (void)settings;
    int64_t height, width;
    return cornu_image_size(path, &height, &width);
}

static CornuStatus read_image(const char *path, const void *settings, CornuArray to)
{
    const Settings *given = settings;
    const int       channels = (int)to.type.shape.extent[2];
    CornuArray      image;
    CORNU__TRY(to.type.dtype == CORNU_F32 ? cornu_image_load_f32(path, channels, &image)
                                          : cornu_image_load(path, channels, &image));
    const CornuStatus status = cornu_image_resize(image, given->interpolation, given->crop, to);
    free(image.data);
    return status;
}

static const CornuFileKind images = {
    .name = "image",
    .suffixes = (const char *const[]){ ".png", ".jpg", ".jpeg", ".bmp", ".gif", ".pbm", ".pgm",
                                       ".ppm", ".pnm", ".dcm", NULL },
    .check = check,
    .read = read_image,
    .settings = sizeof(Settings),
};

static CornuStatus check_config(const CornuImageFolderConfig *config)
{
    const char *directory = config->directory ? config->directory : "image folder";
    for (int i = 0; i < 2; i++)
        if (config->image_size[i] < 0 || config->image_size[i] > CORNU_IMAGE_EXTENT)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .image_size is {%lld, %lld}, expected 1 to "
                               "%d", directory, (long long)config->image_size[0],
                               (long long)config->image_size[1], CORNU_IMAGE_EXTENT);
    if ((unsigned)config->color_mode > CORNU_COLOR_RGBA ||
        (unsigned)config->interpolation > CORNU_IMAGE_NEAREST)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .color_mode %d or .interpolation %d is not "
                           "known, expected CORNU_COLOR_RGB to RGBA and CORNU_IMAGE_BILINEAR or "
                           "NEAREST", directory, (int)config->color_mode,
                           (int)config->interpolation);
    return CORNU_OK;
}

CORNU__IS_CLASS_FOLDER(CornuImageFolderConfig);

CornuDataset *cornu_image_folder_from(const CornuImageFolderConfig *config)
{
    static const int channels[] = { [CORNU_COLOR_RGB] = 3, [CORNU_COLOR_GRAYSCALE] = 1,
                                    [CORNU_COLOR_RGBA] = 4 };
    if (cornu__refused() || check_config(config)) return cornu__null();
    const int64_t *size = config->image_size;
    const int64_t  height = size[0] ? size[0] : 256, width = size[1] ? size[1] : height;
    return cornu__class_folder(
        &images, &(Settings){ config->interpolation, config->crop_to_aspect_ratio },
        cornu_type(config->full_depth ? CORNU_F32 : CORNU_U8, height, width,
                   channels[config->color_mode]),
        &config->directory);
}

const char *const *cornu_image_folder_class_names(const CornuDataset *dataset, int *count)
{
    return cornu__class_folder_names(dataset, &images, count);
}

const char *cornu_image_folder_path(const CornuDataset *dataset, int64_t i)
{
    return cornu__class_folder_path(dataset, &images, i);
}
