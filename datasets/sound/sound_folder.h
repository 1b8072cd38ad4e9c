/*
 * Class folders of sounds as a data set, as keras.utils.audio_dataset_from_directory:
 *
 *     digits/zero/a.wav  digits/zero/b.wav  digits/one/c.flac  …
 *
 *     CornuDataset *train = cornu_sound_folder("digits", .samples = 16000,
 *                                              .validation_split = 0.2,
 *                                              .subset = CORNU_SUBSET_TRAINING);
 *
 * An element is x, f32 (samples, channels) from -1 to 1, and y, its class. Files are read each time
 * their element is requested, up to as many samples; a cache after it does that only once.
 * Source: keras/src/utils/audio_dataset_utils.py.
 */
#ifndef CORNU_DATASETS_SOUND_FOLDER_H
#define CORNU_DATASETS_SOUND_FOLDER_H

#include "../folders/class_folder.h"
#include "../pipeline/dataset.h"
#include "sound.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char               unset;
    CORNU_CLASS_FOLDER_MEMBERS;          /* .directory is required */
    int64_t            samples;          /* required: longer sounds are cut at their end, shorter
                                            ones continued by zeros */
    int                channels;         /* 1, the default, is the mean of the file's; or 2 */
    int64_t            sampling_rate;    /* of all files; default that of the first one */
} CornuSoundFolderConfig;

enum { CORNU_MAX_FOLDER_SAMPLES = 1 << 28 };

/*
 * Sounds are the files in a class folder and the folders below it named *.wav, *.flac, *.ogg,
 * *.aiff or *.au, in upper or lower case; hidden classes and other files are skipped. All headers
 * are read here, but by one of several processes: it opens the files of its rows alone, and
 * compares their sampling rate with one that is given.
 * NULL and a pending error: CORNU_ERR_DATA if there are no classes or no sounds, or a named class
 * is missing; CORNU_ERR_FILE if a folder cannot be read; CORNU_ERR_FORMAT, naming the files, if
 * some cannot be read or have another sampling rate; CORNU_ERR_ARGUMENT for settings out of range.
 * Damage after the header is reported when the element is requested.
 */
#define cornu_sound_folder(...) \
    cornu_sound_folder_from(&(CornuSoundFolderConfig){ .unset = 0, __VA_ARGS__ })
CornuDataset *cornu_sound_folder_from(const CornuSoundFolderConfig *config);

/* The names of the classes of such a data set, or one derived from it without a cache: *count of
 * them, owned by the data set. NULL for other data sets. */
const char *const *cornu_sound_folder_class_names(const CornuDataset *dataset, int *count);
/* Likewise the path of element i of the original order; NULL, too, if i is out of range. */
const char        *cornu_sound_folder_path(const CornuDataset *dataset, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
