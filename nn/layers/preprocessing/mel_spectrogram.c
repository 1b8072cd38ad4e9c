#include "spectrogram_internal.h"

#include <math.h>
#include <string.h>

typedef CORNU__LAYER(CornuMelSpectrogramConfig) Mel;   /* resolved; window NULL: none */

static int64_t bins_of(const CornuMelSpectrogramConfig *c) { return c->fft_length / 2 + 1; }

static CornuStatus mel_spectrogram_build(CornuLayer *layer, CornuShape input)
{
    const int64_t least = ((Mel *)layer)->config.fft_length / 2 + 1;
    CornuText     text;
    CORNU__TRY(cornu__expect_input(input, 2, "(B, T)"));
    if (!cornu__shorter(input.extent[1], least)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected at least %lld samples, one more "
                       "than half the .fft_length", cornu_shape_print(&text, input),
                       (long long)least);
}

/* ---- Constants ---- */

/* The part of the transform of a frame's middle, (sequence_length, bins). */
static CornuTensor *kernel(const CornuMelSpectrogramConfig *c, const CornuCall *call, bool imag)
{
    const int64_t first = (c->fft_length - c->sequence_length) / 2, bins = bins_of(c);
    float        *values = cornu__allocate((size_t)(c->sequence_length * bins), sizeof *values);
    if (!values) return cornu__null();
    for (int64_t n = 0; n < c->sequence_length; n++) {
        const double w = cornu__window_value(c->window, true, c->sequence_length, n);
        for (int64_t k = 0; k < bins; k++)
            values[n * bins + k] = (float)(w * cornu__turn(first + n, k, c->fft_length, imag));
    }
    CornuTensor *y = cornu__constant_array(call, cornu_array(values, CORNU_F32,
                                                             c->sequence_length, bins));
    cornu__release(values);
    return y;
}

static float mel(float hertz) { return 1127.0f * logf(1.0f + hertz / 700.0f); }

/* Element i of n from low to high. */
static float spaced(float low, float high, int64_t i, int64_t n)
{
    const float t = n > 1 ? (float)i / (float)(n - 1) : 0.0f;
    return i == n - 1 && n > 1 ? high : low * (1.0f - t) + high * t;
}

/* Triangles (bins, num_mel_bins), in f32 as Keras computes them; the first frequency is in none. */
static CornuTensor *triangles(const CornuMelSpectrogramConfig *c, const CornuCall *call)
{
    const int64_t bins = bins_of(c), M = c->num_mel_bins;
    const float   low = mel((float)c->min_freq), high = mel((float)c->max_freq);
    float        *values = cornu__allocate((size_t)(bins * M), sizeof *values);
    if (!values) return cornu__null();
    for (int64_t k = 1; k < bins; k++) {
        const float at = mel(spaced(0.0f, (float)c->sampling_rate / 2.0f, k, bins));
        for (int64_t m = 0; m < M; m++) {
            const float from = spaced(low, high, m, M + 2), to = spaced(low, high, m + 2, M + 2);
            const float middle = spaced(low, high, m + 1, M + 2);
            const float w = fminf((at - from) / (middle - from), (to - at) / (to - middle));
            values[k * M + m] = fmaxf(w, 0.0f);
        }
    }
    CornuTensor *y = cornu__constant_array(call, cornu_array(values, CORNU_F32, bins, M));
    cornu__release(values);
    return y;
}

/* ---- Calls ---- */

/* x (B, T) with `count` samples reflected at each end. */
static CornuTensor *reflected(CornuTensor *x, int64_t count)
{
    if (!x || count == 0) return x;
    const CornuShape s = cornu_tensor_shape(x);
    const int64_t    B = s.extent[0], T = s.extent[1];
    CornuTensor     *parts[3] = { NULL, x, NULL };
    for (int i = 0; i < 3; i += 2)
        parts[i] = cornu_op_flip(
            cornu_op_slice(x, (const int64_t[]){ 0, i == 0 ? 1 : T - 1 - count },
                           (const int64_t[]){ B, count }), 1);
    return parts[0] && parts[2] ? cornu_op_concat(parts, 3, 1) : NULL;
}

static CornuTensor *power_of(const CornuMelSpectrogramConfig *c, const CornuCall *call,
                             CornuTensor *x)
{
    const int64_t first = (c->fft_length - c->sequence_length) / 2;
    x = reflected(x, c->fft_length / 2);
    if (!x) return NULL;
    const CornuShape s = cornu_tensor_shape(x);
    const int64_t    used = s.extent[1] - (c->fft_length - c->sequence_length);
    x = cornu_op_slice(x, (const int64_t[]){ 0, first }, (const int64_t[]){ s.extent[0], used });
    CornuTensor *sum = NULL;
    for (int imag = 0; imag < 2; imag++) {
        CornuTensor *part = cornu_op_square(cornu__frames_by(x, kernel(c, call, imag),
                                                             CORNU_VALID, c->sequence_stride));
        sum = imag ? cornu_op_add(sum, part) : part;
    }
    if (!sum || c->mag_exp == 2.0) return sum;
    return cornu_op_power(cornu_op_sqrt(sum), cornu_op_constant_like(sum, c->mag_exp));
}

static CornuTensor *decibels(const CornuMelSpectrogramConfig *c, CornuTensor *x)
{
    const double ten = 10.0 / log(10.0), one = fmax(fabs(c->ref_power), c->min_power);
    if (!x) return NULL;
    x = cornu_op_log(cornu_op_maximum(x, cornu_op_constant_like(x, c->min_power)));
    x = cornu_op_shift(cornu_op_scale(x, ten), -10.0 * log10(one));
    CornuTensor *most = cornu_op_reduce_max(x, CORNU_ALL_AXES, false);
    return cornu_op_maximum(x, cornu_op_shift(most, -c->top_db));
}

static CornuTensor *mel_spectrogram_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    static const int                 axes[] = { 0, 2, 1 };
    const CornuMelSpectrogramConfig *c = &((Mel *)layer)->config;
    CornuTensor *y = power_of(c, call, x ? cornu_op_convert(x, CORNU_F32) : NULL);
    if (!y) return NULL;
    const CornuShape s = cornu_tensor_shape(y);
    y = cornu_op_matmul(cornu_op_reshape(y, cornu_shape(s.extent[0] * s.extent[1], s.extent[2])),
                        triangles(c, call));
    y = cornu_op_reshape(y, cornu_shape(s.extent[0], s.extent[1], c->num_mel_bins));
    if (!c->no_power_to_db) y = decibels(c, y);
    return y ? cornu_op_convert(cornu_op_transpose(y, axes), layer->compute) : NULL;
}

/* ---- Class and constructor ---- */

static CornuStatus mel_spectrogram_resolve(CornuLayer *layer)
{
    CornuMelSpectrogramConfig *to = &((Mel *)layer)->config;
    const char                *name = cornu_layer_name(layer);
    const struct { const char *argument; int64_t *value, usual; } whole[] = {
        { "fft_length", &to->fft_length, 2048 },
        { "sequence_stride", &to->sequence_stride, 512 },
        { "sequence_length", &to->sequence_length, to->fft_length ? to->fft_length : 2048 },
        { "sampling_rate", &to->sampling_rate, 16000 },
        { "num_mel_bins", &to->num_mel_bins, 128 },
    };
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        if (!*whole[i].value) *whole[i].value = whole[i].usual;
        CORNU__TRY(cornu__positive(name, whole[i].argument, *whole[i].value));
    }
    if (to->sequence_length > to->fft_length)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .sequence_length is %lld, expected at most the "
                           ".fft_length, %lld", name, (long long)to->sequence_length,
                           (long long)to->fft_length);
    if (!to->window) to->window = "hann";
    if (strcmp(to->window, "hann") && strcmp(to->window, "hamming") && strcmp(to->window, "none"))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: .window is \"%.60s\", expected hann, "
                           "hamming or none", name, to->window);
    to->window = !strcmp(to->window, "none") ? NULL : !strcmp(to->window, "hann") ? "hann"
                                                                                  : "hamming";
    to->min_freq = cornu__number(to->min_freq, 20.0);
    if (to->max_freq == 0.0) to->max_freq = (double)(to->sampling_rate / 2);
    to->top_db = cornu__number(to->top_db, 80.0);
    to->mag_exp = cornu__number(to->mag_exp, 2.0);
    to->min_power = cornu__number(to->min_power, 1e-10);
    to->ref_power = cornu__number(to->ref_power, 1.0);
    if (!(to->min_freq >= 0.0 && to->max_freq > to->min_freq && isfinite(to->max_freq)))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .min_freq is %g and .max_freq %g, expected "
                           "0 or more, and more", name, to->min_freq, to->max_freq);
    if (!(to->min_power > 0.0) || !isfinite(to->top_db) || !isfinite(to->mag_exp) ||
        !isfinite(to->ref_power))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .min_power is %g, expected above 0; .top_db, "
                           ".mag_exp and .ref_power finite", name, to->min_power);
    return CORNU_OK;
}

#define AT(field) offsetof(CornuMelSpectrogramConfig, field)
static const CornuField fields[] = {
    { "fft_length", CORNU_FIELD_INTEGER, AT(fft_length) },
    { "sequence_stride", CORNU_FIELD_INTEGER, AT(sequence_stride) },
    { "sequence_length", CORNU_FIELD_INTEGER, AT(sequence_length) },
    { "window", CORNU_FIELD_TEXT_OR_NONE, AT(window) },
    { "sampling_rate", CORNU_FIELD_INTEGER, AT(sampling_rate) },
    { "num_mel_bins", CORNU_FIELD_INTEGER, AT(num_mel_bins) },
    { "min_freq", CORNU_FIELD_NUMBER, AT(min_freq) },
    { "max_freq", CORNU_FIELD_NUMBER, AT(max_freq) },
    { "power_to_db", CORNU_FIELD_NOT, AT(no_power_to_db) },
    { "top_db", CORNU_FIELD_NUMBER, AT(top_db) },
    { "mag_exp", CORNU_FIELD_NUMBER, AT(mag_exp) },
    { "min_power", CORNU_FIELD_NUMBER, AT(min_power) },
    { "ref_power", CORNU_FIELD_NUMBER, AT(ref_power) },
    { 0 },
};

const CornuLayerClass cornu__mel_spectrogram_class = {
    .class_name = "MelSpectrogram", .size = sizeof(Mel), .build = mel_spectrogram_build,
    .call = mel_spectrogram_call, .mask = cornu__no_mask, .keeps_dtypes = true,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, Mel, mel_spectrogram_resolve) },
};

CORNU__CONSTRUCTOR(mel_spectrogram, CornuMelSpectrogramConfig)
