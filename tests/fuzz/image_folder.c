/* Folders of images: each line is a path in the folder; all files are the image after the first
 * zero byte. They are listed, and read by a data set. */
#define _XOPEN_SOURCE 700    /* nftw */
#include "fuzz.h"

#include "../../datasets/images/image_folder.h"

#include <ftw.h>

enum { MOST_FILES = 20, MOST_PATH = 120 };

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

/* Makes the file and the folders above it, with names that cannot lead elsewhere. */
static void make_file(const char *folder, const char *line, size_t length, const uint8_t *image,
                      size_t size)
{
    char   path[400];
    size_t at = (size_t)snprintf(path, sizeof path, "%s/", folder);
    if (length == 0 || length > MOST_PATH || line[length - 1] == '/') return;
    for (size_t i = 0; i < length; i++) {
        const char c = line[i];
        if (c == '/' && path[at - 1] != '/') {
            path[at] = '\0';
            mkdir(path, 0700);
        }
        if (c == '.' && path[at - 1] == '.') continue;
        path[at++] = c == '\0' ? '0' : c;
    }
    path[at] = '\0';
    FILE *file = fopen(path, "wb");
    if (!file) return;
    fwrite(image, 1, size, file);
    fclose(file);
}

static void read_all(CornuDataset *dataset)
{
    const CornuBatch *batch;
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    if (!fuzz_made(iterator)) return;
    for (int i = 0; i < MOST_FILES; i++) {
        if (!fuzz_done(cornu_iterator_next(iterator, &batch)) || !batch) break;
        fuzz_read(batch->arrays[0].data, cornu_type_bytes(batch->arrays[0].type));
        fuzz_expect(cornu_image_folder_path(dataset, i) != NULL, "a path of each element");
    }
    cornu_iterator_free(iterator);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char    *folder = fuzz_path("images");
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    const size_t   names = end ? (size_t)(end - data) : size, rest = end ? size - names - 1 : 0;
    mkdir(folder, 0700);
    size_t at = 0;
    for (int i = 0; i < MOST_FILES && at < names; i++) {
        const char  *line = (const char *)data + at;
        const char  *stop = memchr(line, '\n', names - at);
        const size_t length = stop ? (size_t)(stop - line) : names - at;
        make_file(folder, line, length, end ? end + 1 : data, rest);
        at += length + 1;
    }
    CornuDataset *dataset = cornu_image_folder(folder, .image_size = { 4, 3 }, .no_shuffle = true,
                                               .label_mode = CORNU_LABELS_CATEGORICAL,
                                               .crop_to_aspect_ratio = size % 2);
    if (fuzz_made(dataset)) read_all(dataset);
    cornu_dataset_free(dataset);
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
