#include "sound_folder.h"

#include "../../device/status_internal.h"
#include "../folders/class_folder_internal.h"
#include "sound_internal.h"

typedef struct {
    int64_t sampling_rate;   /* 0: that of the first file, once its header is read */
} Settings;

static CornuStatus check_rate(const CornuSoundReader *reader, const Settings *given)
{
    const int64_t rate = reader->info.sampling_rate;
    if (!given->sampling_rate || rate == given->sampling_rate) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "%s: has %lld samples a second, expected %lld as in the "
                       "others; convert it, as sounds are not resampled", reader->path,
                       (long long)rate, (long long)given->sampling_rate);
}

static CornuStatus check(const char *path, void *settings)
{
    Settings        *given = settings;
    CornuSoundReader reader;
    CORNU__TRY(cornu__sound_open(path, &reader));
    const CornuStatus status = check_rate(&reader, given);
    given->sampling_rate = given->sampling_rate ? given->sampling_rate : reader.info.sampling_rate;
    cornu__sound_close(&reader);
    return status;
}

static CornuStatus read_sound(const char *path, const void *settings, CornuArray to)
{
    CornuSoundReader reader;
    CORNU__TRY(cornu__sound_open(path, &reader));
    CornuStatus status = check_rate(&reader, settings);
    if (!status) status = cornu__sound_read(&reader, to);
    cornu__sound_close(&reader);
    return status;
}

static const CornuFileKind sounds = {
    .name = "sound",
    .suffixes = (const char *const[]){ ".wav", ".flac", ".ogg", ".aiff", ".au", NULL },
    .check = check,
    .read = read_sound,
    .settings = sizeof(Settings),
};

CORNU__IS_CLASS_FOLDER(CornuSoundFolderConfig);

CornuDataset *cornu_sound_folder_from(const CornuSoundFolderConfig *config)
{
    if (cornu__refused()) return NULL;
    const int64_t channels = config->channels ? config->channels : 1;
    if (config->samples < 1 || config->samples > CORNU_MAX_FOLDER_SAMPLES || channels < 1 ||
        channels > 2 || config->sampling_rate < 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .samples is %lld, .channels %lld and "
                                ".sampling_rate %lld, expected 1 to %d samples of 1 or 2 channels",
                                config->directory ? config->directory : "sound folder",
                                (long long)config->samples, (long long)channels,
                                (long long)config->sampling_rate, CORNU_MAX_FOLDER_SAMPLES);
    return cornu__class_folder(&sounds, &(Settings){ config->sampling_rate },
                               cornu_type(CORNU_F32, config->samples, channels),
                               &config->directory);
}

const char *const *cornu_sound_folder_class_names(const CornuDataset *dataset, int *count)
{
    return cornu__class_folder_names(dataset, &sounds, count);
}

const char *cornu_sound_folder_path(const CornuDataset *dataset, int64_t i)
{
    return cornu__class_folder_path(dataset, &sounds, i);
}
