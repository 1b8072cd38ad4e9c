/*
 * Class folders of images as a data set, as keras.utils.image_dataset_from_directory:
 *
 *     pets/cat/a.jpg  pets/cat/b.png  pets/dog/c.jpg  …
 *
 *     CornuDataset *train = cornu_image_folder("pets", .image_size = { 64, 64 },
 *                                              .validation_split = 0.2,
 *                                              .subset = CORNU_SUBSET_TRAINING);
 *     train = cornu_dataset_cache(train);
 *
 * An element is x, u8 (height, width, channels), with pixels 0 to 255, and y, its class; x is f32
 * with .full_depth, such as 0 to 65535 of files of 16 bits, as image.h says. Files are
 * read and decoded each time their element is requested, which allocates memory; a cache after it
 * does that only once, a prefetch in a thread, and cornu_dataset_parallel in several.
 * Source: keras/src/utils/image_dataset_utils.py and dataset_utils.py.
 */
#ifndef CORNU_DATASETS_IMAGE_FOLDER_H
#define CORNU_DATASETS_IMAGE_FOLDER_H

#include "../folders/class_folder.h"
#include "../pipeline/dataset.h"
#include "image.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { CORNU_COLOR_RGB, CORNU_COLOR_GRAYSCALE, CORNU_COLOR_RGBA } CornuColorMode;

typedef struct {
    char               unset;
    CORNU_CLASS_FOLDER_MEMBERS;          /* .directory is required */
    CornuColorMode     color_mode;
    int64_t            image_size[2];    /* {height, width}; {n} is square; default {256, 256} */
    CornuImageInterpolation interpolation;
    bool               crop_to_aspect_ratio; /* else images of another shape are distorted */
    bool               full_depth;       /* x f32, the numbers of the files; else u8 */
} CornuImageFolderConfig;

/*
 * Images are the files in a class folder and the folders below it named *.png, *.jpg, *.jpeg,
 * *.bmp, *.gif, *.pbm, *.pgm, *.ppm, *.pnm or *.dcm, in upper or lower case; hidden classes
 * (".git") and other files are skipped. All headers are read
 * here, but by one of several processes: it opens the images of its rows alone, when it needs them.
 * NULL and a pending error: CORNU_ERR_DATA if there are no classes or no images, or a named class
 * is missing; CORNU_ERR_FILE if a folder cannot be read; CORNU_ERR_FORMAT, naming the images, if
 * some cannot be read, such as those of more than CORNU_IMAGE_PIXELS pixels; CORNU_ERR_ARGUMENT for
 * settings out of range. Damage after the header is reported when the element is requested.
 */
#define cornu_image_folder(...) \
    cornu_image_folder_from(&(CornuImageFolderConfig){ .unset = 0, __VA_ARGS__ })
CornuDataset *cornu_image_folder_from(const CornuImageFolderConfig *config);

/* The names of the classes of such a data set, or one derived from it without a cache: *count of
 * them, owned by the data set. NULL for other data sets. */
const char *const *cornu_image_folder_class_names(const CornuDataset *dataset, int *count);
/* Likewise the path of element i of the original order; NULL, too, if i is out of range. */
const char        *cornu_image_folder_path(const CornuDataset *dataset, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
