#include "spectrogram_internal.h"

#include <math.h>
#include <string.h>

/* Resolved; window and scaling NULL: none. */
typedef CORNU__LAYER(CornuStftSpectrogramConfig) Spectrogram;

enum { REAL, IMAG };

static const CornuStftSpectrogramConfig *config_of(const CornuLayer *layer)
{
    return &((const Spectrogram *)layer)->config;
}

static bool is(const CornuStftSpectrogramConfig *config, const char *mode)
{
    return !strcmp(config->mode, mode);
}

static int64_t step_of(const CornuStftSpectrogramConfig *c)
{
    return c->frame_step ? c->frame_step : c->frame_length > 1 ? c->frame_length / 2 : 1;
}

static int64_t transform_of(const CornuStftSpectrogramConfig *c)
{
    int64_t length = 1;
    while (length < c->frame_length) length *= 2;
    return c->fft_length ? c->fft_length : length;
}

/* ---- Weights: keras/src/initializers/constant_initializers.py, STFT ---- */

/* The frequencies divide the largest even number up to fft_length. */
static CornuStatus fill(const CornuInitializer *self, CornuShape shape, uint64_t seed,
                        int64_t generator, float *values)
{
    const CornuStftSpectrogramConfig *c = self->context;
    const int64_t size = shape.extent[0], bins = shape.extent[2];
    double        norm = 0.0;
    (void)seed, (void)generator;
    for (int64_t n = 0; n < size; n++) {
        const double w = cornu__window_value(c->window, c->periodic, size, n);
        norm += c->scaling && !strcmp(c->scaling, "density") ? w * w : fabs(w);
    }
    if (c->scaling && !strcmp(c->scaling, "density")) norm = sqrt(norm);
    if (!c->scaling || !c->window) norm = 1.0;
    for (int64_t n = 0; n < size; n++) {
        const double w = cornu__window_value(c->window, c->periodic, size, n) / norm;
        for (int64_t k = 0; k < bins; k++)
            values[n * bins + k] = (float)(w * cornu__turn(n, k, bins > 1 ? 2 * (bins - 1) : 1,
                                                           self->value == IMAG));
    }
    return CORNU_OK;
}

static CornuStatus stft_spectrogram_build(CornuLayer *layer, CornuShape input)
{
    static const char *const          names[] = { "real_kernel", "imag_kernel" };
    const CornuStftSpectrogramConfig *c = config_of(layer);
    const int64_t                     bins = transform_of(c) / 2 + 1, one = 1;
    CORNU__TRY(cornu__kernel_fits(c->padding, 1, &c->frame_length, &one, input));
    for (int part = REAL; part <= IMAG; part++) {
        if (is(c, part == REAL ? "imag" : "real")) continue;
        const CornuInitializer initializer = { .call = fill, .context = c, .value = part };
        CORNU__TRY(cornu_layer_weight(layer, names[part], cornu_shape(c->frame_length, 1, bins),
                                      initializer, false));
    }
    return CORNU_OK;
}

/* ---- Calls ---- */

CornuTensor *cornu__frames_by(CornuTensor *x, CornuTensor *kernel, CornuPadding padding,
                              int64_t stride)
{
    if (!x || !kernel) return NULL;
    const CornuShape s = cornu_tensor_shape(x), k = cornu_tensor_shape(kernel);
    const CornuShape image = cornu_shape(s.extent[0], 1, s.extent[1], 1);
    const CornuKernelWindow window = { padding, { 1, k.extent[0] }, { 1, stride }, { 1, 1 } };
    const CornuConvolution  c = cornu__convolution(&window, image, 1);
    CornuTensor *y = cornu_op_conv2d(
        cornu_op_reshape(x, image),
        cornu_op_reshape(kernel, cornu_shape(1, k.extent[0], 1, k.extent[1])), &c);
    return cornu_op_reshape(y, cornu_shape(s.extent[0], CORNU_NONE, k.extent[1]));
}

/* Weight i applied to each channel of x (B, T, C): (B, C, T', F). */
static CornuTensor *transformed(CornuLayer *layer, const CornuCall *call, CornuTensor *x, int i)
{
    static const int                  axes[] = { 0, 2, 1 };
    const CornuStftSpectrogramConfig *c = config_of(layer);
    const CornuShape                  s = cornu_tensor_shape(x);
    const int64_t                     B = s.extent[0], C = s.extent[2];
    CornuTensor *kernel = cornu_layer_read(layer, call, i);
    kernel = cornu_op_reshape(kernel, cornu_shape(c->frame_length, CORNU_NONE));
    x = cornu_op_reshape(cornu_op_transpose(x, axes), cornu_shape(B * C, s.extent[1]));
    CornuTensor *y = cornu__frames_by(x, kernel, c->padding, step_of(c));
    if (!y) return NULL;
    const CornuShape made = cornu_tensor_shape(y);
    return cornu_op_reshape(y, cornu_shape(B, C, made.extent[1], made.extent[2]));
}

static CornuTensor *at_least(CornuTensor *x)
{
    return x ? cornu_op_maximum(x, cornu_op_constant_like(x, 1e-7)) : NULL;
}

/* power, doubled but for the first and the last frequency. */
static CornuTensor *density(CornuTensor *power)
{
    if (!power) return NULL;
    static const int64_t one[] = { 0, 0, 0, 1 };
    CornuShape           inner = cornu_tensor_shape(power);
    if (inner.extent[3] < 3) return power;
    inner.extent[3] -= 2;
    return cornu_op_add(power, cornu_op_pad(cornu_op_slice(power, one, inner.extent), one, one,
                                            0.0));
}

static CornuTensor *spectrum(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuStftSpectrogramConfig *c = config_of(layer);
    CornuTensor *part[2] = { transformed(layer, call, x, 0) };
    if (is(c, "real") || is(c, "imag")) return part[REAL];
    part[IMAG] = transformed(layer, call, x, 1);
    if (is(c, "stft")) return part[REAL] && part[IMAG] ? cornu_op_concat(part, 2, 3) : NULL;
    CornuTensor *power = cornu_op_add(cornu_op_square(part[REAL]), cornu_op_square(part[IMAG]));
    if (is(c, "psd")) return density(power);
    CornuTensor *magnitude = cornu_op_sqrt(at_least(power));
    return is(c, "magnitude") ? magnitude : cornu_op_log(at_least(magnitude));
}

static CornuTensor *stft_spectrogram_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    static const int apart[] = { 0, 2, 3, 1 }, joined[] = { 0, 2, 1, 3 };
    if (!x) return NULL;
    CornuTensor *y = spectrum(layer, call, x);
    if (!y) return NULL;
    const CornuShape s = cornu_tensor_shape(y);
    if (config_of(layer)->expand_dims) return cornu_op_transpose(y, apart);
    return cornu_op_reshape(cornu_op_transpose(y, joined),
                            cornu_shape(s.extent[0], s.extent[2], s.extent[1] * s.extent[3]));
}

/* ---- Class and constructor ---- */

/* One of the names, as a constant; NULL for others. */
static const char *one_of(const char *const *names, const char *text)
{
    while (*names && strcmp(*names, text)) names++;
    return *names;
}

static CornuStatus stft_spectrogram_resolve(CornuLayer *layer)
{
    static const char *const modes[] = { "log", "magnitude", "psd", "real", "imag", "stft", NULL };
    static const char *const scalings[] = { "density", "spectrum", "none", NULL };
    CornuStftSpectrogramConfig *to = &((Spectrogram *)layer)->config;
    const char *name = cornu_layer_name(layer);
    const char *mode = to->mode ? to->mode : "log";
    const char *scaling = to->scaling ? to->scaling : "density";
    if (!(to->mode = one_of(modes, mode)))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: .mode is \"%.60s\", expected log, "
                           "magnitude, psd, real, imag or stft", name, mode);
    if (!(to->scaling = one_of(scalings, scaling)))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .scaling is \"%.60s\", expected density, "
                           "spectrum or none", name, scaling);
    if (!to->window) to->window = "hann";
    if (strcmp(to->window, "none") && !cornu__is_window(to->window))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: .window is \"%.60s\", expected hann, "
                           "hamming, blackman, nuttall, blackmanharris, flattop, bartlett, "
                           "cosine, boxcar or none", name, to->window);
    if (!to->frame_length) to->frame_length = 256;
    CORNU__TRY(cornu__positive(name, "frame_length", to->frame_length));
    CORNU__TRY(cornu__check_padding(name, to->padding));
    if (to->frame_step < 0 || to->frame_step > to->frame_length)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .frame_step is %lld, expected 1 to the "
                           ".frame_length, %lld", name, (long long)to->frame_step,
                           (long long)to->frame_length);
    if (to->fft_length && (to->fft_length < to->frame_length || to->fft_length > INT32_MAX))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .fft_length is %lld, expected at least the "
                           ".frame_length, %lld", name, (long long)to->fft_length,
                           (long long)to->frame_length);
    if (!strcmp(to->scaling, "none")) to->scaling = NULL;
    if (!strcmp(to->window, "none")) to->window = NULL;
    return cornu__layer_copy_text(layer, &to->window);
}

#define AT(field) offsetof(CornuStftSpectrogramConfig, field)
static const CornuField fields[] = {
    { "mode", CORNU_FIELD_TEXT, AT(mode) },
    { "frame_length", CORNU_FIELD_INTEGER, AT(frame_length) },
    { "frame_step", CORNU_FIELD_INTEGER_OR_NONE, AT(frame_step) },
    { "fft_length", CORNU_FIELD_INTEGER_OR_NONE, AT(fft_length) },
    { "window", CORNU_FIELD_TEXT_OR_NONE, AT(window) },
    { "periodic", CORNU_FIELD_FLAG, AT(periodic) },
    { "scaling", CORNU_FIELD_TEXT_OR_NONE, AT(scaling) },
    { "padding", CORNU_FIELD_PADDING, AT(padding) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, AT(data_format) },
    { "expand_dims", CORNU_FIELD_FLAG, AT(expand_dims) },
    { 0 },
};

const CornuLayerClass cornu__stft_spectrogram_class = {
    .class_name = "STFTSpectrogram", .size = sizeof(Spectrogram), .build = stft_spectrogram_build,
    .call = stft_spectrogram_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ .label = "stft_spectrogram",
                                       CORNU__TRAINED(fields, Spectrogram,
                                                      stft_spectrogram_resolve) },
};

CORNU__CONSTRUCTOR(stft_spectrogram, CornuStftSpectrogramConfig)
