/*
 * Sound files as host arrays: WAV, and FLAC, Ogg (Vorbis, Opus), AIFF and AU where libsndfile is
 * installed, which is loaded at run time.
 *
 * Samples are f32 from -1 to 1, as libsndfile and TensorFlow scale them: of 16 bits v / 32768, of 8
 * (v - 128) / 128, of 24 and 32 v / 2^23 and v / 2^31; floats are as in the file. They are not
 * resampled: a model takes samples, so that its data need one sampling rate.
 */
#ifndef CORNU_DATASETS_SOUND_H
#define CORNU_DATASETS_SOUND_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CORNU_SOUND_CHANNELS = 64 };

/*
 * Reads a file into f32 (N, C), N samples of C channels, to be freed with free(). channels: 0 as
 * the file has; 1 the mean of those that it has; 2 likewise as it has, or its one channel twice.
 * CORNU_ERR_FILE if it cannot be opened; CORNU_ERR_FORMAT if it is no such file or is damaged, with
 * the byte or the sample; CORNU_ERR_UNSUPPORTED for other channels than these, for a WAV file of
 * compressed samples, and for the other formats without libsndfile; CORNU_ERR_MEMORY beyond the
 * limit of memory.h.
 *
 *   WAV    PCM of 8, 16, 24 and 32 bits, floats of 32 and 64. A file that ends before its samples
 *          do is damaged, but one whose length is 2^32 - 1, as programs that write to a pipe leave
 *          it, goes to the end of the file.
 */
CornuStatus cornu_sound_load(const char *path, int channels, CornuArray *sound,
                             int64_t *sampling_rate);

typedef struct {
    const char *format;          /* "WAV", static */
    int64_t     samples;         /* of each channel */
    int         channels;
    int64_t     sampling_rate;   /* samples a second */
    double      seconds;
} CornuSoundInfo;

/* What the header of a file says. Errors as above, except that damage after it is not noticed. */
CornuStatus cornu_sound_info(const char *path, CornuSoundInfo *info);

#ifdef __cplusplus
}
#endif
#endif
