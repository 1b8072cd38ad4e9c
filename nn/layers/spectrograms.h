/*
 * Layers that make spectrograms of sound.
 * Source: keras/src/layers/preprocessing/stft_spectrogram.py, mel_spectrogram.py.
 */
#ifndef CORNU_NN_LAYERS_SPECTROGRAMS_H
#define CORNU_NN_LAYERS_SPECTROGRAMS_H

#include "spatial.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Short-time Fourier transform: x (B, T, C) gives (B, T', C F), or (B, T', F, C) with expand_dims,
 * of F = fft_length / 2 + 1 frequencies, twice as many in the mode "stft". Frames of frame_length
 * samples, frame_step apart, are multiplied by cosines and sines times a window, which are weights:
 * real_kernel and imag_kernel (frame_length, 1, F), trained unless the layer is frozen. Of the
 * products r and i the modes give
 *     real, imag  r, i
 *     stft        both, r before i
 *     psd         r^2 + i^2, doubled but for the first and the last frequency
 *     magnitude   sqrt(r^2 + i^2)
 *     log         its logarithm
 * Keras' mode "angle" is not available. The window is one of scipy.signal.windows that need no
 * arguments: hann, hamming, blackman, nuttall, blackmanharris, flattop, bartlett, cosine,
 * boxcar; or "none".
 */
typedef struct {
    char            unset;
    const char     *mode;                 /* default log */
    int64_t         frame_length;         /* default 256 */
    int64_t         frame_step;           /* default half the frame */
    int64_t         fft_length;           /* default the next power of two */
    const char     *window;               /* default hann */
    bool            periodic;             /* the window begins again after the frame */
    const char     *scaling;              /* density, the default: the window is divided by the root
                                             of the sum of its squares; spectrum: by its
                                             sum; none */
    CornuPadding    padding;
    bool            expand_dims;
    CornuDataFormat data_format;
    const char     *name;
    bool            frozen;
    const char     *dtype;
} CornuStftSpectrogramConfig;

CornuLayer *cornu_stft_spectrogram_from(const CornuStftSpectrogramConfig *config);
#define cornu_stft_spectrogram(...) \
    cornu_stft_spectrogram_from(&(CornuStftSpectrogramConfig){ .unset = 0, __VA_ARGS__ })

/*
 * Mel spectrogram: x (B, T) gives (B, num_mel_bins, T') in f32. Frames of fft_length samples, of
 * which the middle sequence_length count, are taken sequence_stride apart from x with its ends
 * reflected, T above fft_length / 2. Their amplitudes to the power of mag_exp are summed in
 * triangles between min_freq and max_freq, of equal width in mel, 1127 ln(1 + f / 700); as
 * decibels, 10 log10(max(y, min_power)) - 10 log10(max(|ref_power|, min_power)), at least the
 * largest value of the batch (of a shard's part) minus top_db.
 */
typedef struct {
    char        unset;
    int64_t     fft_length;               /* default 2048 */
    int64_t     sequence_stride;          /* default 512 */
    int64_t     sequence_length;          /* default fft_length */
    const char *window;                   /* default hann; hamming, "none" */
    int64_t     sampling_rate;            /* default 16000 */
    int64_t     num_mel_bins;             /* default 128 */
    double      min_freq;                 /* default 20, or CORNU_ZERO */
    double      max_freq;                 /* default half the sampling rate, rounded down */
    bool        no_power_to_db;
    double      top_db;                   /* default 80, or CORNU_ZERO */
    double      mag_exp;                  /* default 2 */
    double      min_power;                /* default 1e-10 */
    double      ref_power;                /* default 1, or CORNU_ZERO */
    const char *name;
    const char *dtype;
} CornuMelSpectrogramConfig;

CornuLayer *cornu_mel_spectrogram_from(const CornuMelSpectrogramConfig *config);
#define cornu_mel_spectrogram(...) \
    cornu_mel_spectrogram_from(&(CornuMelSpectrogramConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
