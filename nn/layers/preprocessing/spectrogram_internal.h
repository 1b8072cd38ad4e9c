/* Windows of frames, and the sines and cosines of the Fourier transform. */
#ifndef CORNU_NN_SPECTROGRAM_INTERNAL_H
#define CORNU_NN_SPECTROGRAM_INTERNAL_H

#include "../convolutional/convolution_internal.h"
#include "../spectrograms.h"

/* Whether scipy.signal has a window of this name that is supported here. */
bool cornu__is_window(const char *name);

/* Element n of a window, 1 without one (NULL); as scipy.signal.get_window. */
double cornu__window_value(const char *name, bool periodic, int64_t length, int64_t n);

/* The real or the imaginary part of exp(-2 pi i time bin / length). */
double cornu__turn(int64_t time, int64_t bin, int64_t length, bool imag);

/* x (N, T), rows of samples, by kernels (size, F): (N, T', F). */
CornuTensor *cornu__frames_by(CornuTensor *x, CornuTensor *kernel, CornuPadding padding,
                              int64_t stride);

#endif
