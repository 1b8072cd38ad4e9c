/* Windows of frames. Source: Harris, "On the use of windows for harmonic analysis with the discrete
 * Fourier transform", Proceedings of the IEEE 66(1), 1978; Nuttall, "Some windows with very good
 * sidelobe behavior", 1981; D'Antona and Ferrero, "Digital Signal Processing for Measurement
 * Systems", 2006, of the flat top. */
#include "spectrogram_internal.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

/* w(n) = sum over k of (-1)^k a_k cos(2 pi k n / N) */
static const struct { const char *name; double a[5]; } sums[] = {
    { "hann", { 0.5, 0.5 } },
    { "hamming", { 0.54, 0.46 } },
    { "blackman", { 0.42, 0.5, 0.08 } },
    { "nuttall", { 0.3635819, 0.4891775, 0.1365995, 0.0106411 } },
    { "blackmanharris", { 0.35875, 0.48829, 0.14128, 0.01168 } },
    { "flattop", { 0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368 } },
    { "boxcar", { 1.0 } },
};

static const double *sum_of(const char *name)
{
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        if (!strcmp(sums[i].name, name)) return sums[i].a;
    return NULL;
}

bool cornu__is_window(const char *name)
{
    return sum_of(name) || !strcmp(name, "bartlett") || !strcmp(name, "cosine");
}

double cornu__window_value(const char *name, bool periodic, int64_t length, int64_t n)
{
    if (!name || length == 1) return 1.0;
    const double *a = sum_of(name), last = (double)(length - !periodic);
    double        w = 0.0;
    if (!strcmp(name, "bartlett")) return 1.0 - fabs(2.0 * (double)n / last - 1.0);
    if (!strcmp(name, "cosine")) return sin(PI * ((double)n + 0.5) / (last + 1.0));
    for (int k = 0; k < 5; k++)
        w += (k % 2 ? -a[k] : a[k]) * cos(2.0 * PI * (double)(k * n) / last);
    return w;
}

double cornu__turn(int64_t time, int64_t bin, int64_t length, bool imag)
{
    const double angle = -2.0 * PI * (double)(time * bin % length) / (double)length;
    return imag ? sin(angle) : cos(angle);
}
