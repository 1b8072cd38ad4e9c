/*
 * Tar archives of samples, as WebDataset arranges them: files whose names are equal up to the first
 * dot of the last part, and that lie one after the other, are a sample, and what follows that dot
 * says what each is.
 *
 *     train/000017.jpg   train/000017.cls   train/000018.jpg   …
 *
 *     const CornuFeature fields[] = {
 *         { "jpg;jpeg;png", CORNU_FEATURE_IMAGE, .shape = cornu_shape(224, 224, 3),
 *           .resize = true },
 *         { "cls", .dtype = CORNU_I32 },
 *         { .name = NULL },
 *     };
 *     CornuDataset *train = cornu_tar_dataset("train-*.tar", fields);
 *
 * Sources: POSIX.1-2017, pax, sections "ustar Interchange Format" and "pax Interchange Format"; GNU
 * tar manual, "Basic Tar Format"; WebDataset, webdataset/tariterators.py.
 */
#ifndef CORNU_DATASETS_TAR_H
#define CORNU_DATASETS_TAR_H

#include "../pipeline/dataset.h"
#include "../records/feature.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char                unset;
    const char         *file;       /* a path, or a pattern such as "train-{000..127}.tar" or
                                       "train-*.tar", whose files are sorted by byte; or an
                                       address, s3://bucket/train-*, see ../README.md */
    const CornuFeature *features;   /* required: what becomes of a sample, see below */
    const char *const  *files;      /* instead of .file: several, NULL-terminated */
} CornuTarConfig;

/*
 * The samples of archives as elements, each with a component for each row of the table, whose .name
 * is an extension, in lower case, or several of which a sample has one, "jpg;png"; and of JSON
 * "json:box.width", a field of an object, of one in it, ...
 *
 *     CORNU_FEATURE_IMAGE   the file is an image, as images/image.h reads them
 *     CORNU_FEATURE_BYTES   its bytes; of JSON a string
 *     CORNU_FEATURE_RAW     its bytes as numbers, little-endian
 *     CORNU_FEATURE_FIXED,  numbers: of a .npy file, of this dtype and shape; of JSON a number or
 *     CORNU_FEATURE_VAR     lists of them; else decimal numbers, divided by blanks or commas, as in
 *                           a .cls file
 *
 * Archives are plain, of the formats ustar, pax, GNU's and older ones. The headers of all files are
 * read and checked here, and 8 bytes for each sample and 16 for each of its components are kept;
 * samples are read in any order. Folders, links, names that begin and end with "__", and files
 * without an extension are passed over.
 *
 * NULL and a pending error: CORNU_ERR_FILE, CORNU_ERR_DATA for a pattern that matches none or files
 * without a sample, CORNU_ERR_FORMAT, naming file, member and byte, for an archive that is damaged
 * or truncated or has two files of an extension in a sample, CORNU_ERR_UNSUPPORTED for sparse files
 * and compressed archives, CORNU_ERR_ARGUMENT, CORNU_ERR_DTYPE or CORNU_ERR_SHAPE for settings. A
 * sample that lacks a file, or has others than the table says, fails its element, naming file,
 * sample, byte and extension.
 */
CornuDataset *cornu_tar_dataset_from(const CornuTarConfig *config);
#define cornu_tar_dataset(...) \
    cornu_tar_dataset_from(&(CornuTarConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
