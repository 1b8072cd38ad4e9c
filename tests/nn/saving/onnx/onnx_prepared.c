/* Layers that prepare data: augmentations, which do nothing in inference, and categories. */
#include "onnx_models.h"

static CornuNumbers numbers(const double *values, int64_t count)
{
    return (CornuNumbers){ values, cornu_shape(count) };
}

/* One after the other, so that each has the image of the one before it. */
CornuModel *onnx_augmented(void)
{
    CornuSymbol *image = cornu_input(.shape = { 8, 6, 3 }), *x = image;
    CornuLayer  *layers[] = {
        cornu_aug_mix(), cornu_rand_augment(), cornu_cut_mix(), cornu_mix_up(),
        cornu_random_brightness(0.2), cornu_random_contrast(0.2), cornu_random_saturation(0.2),
        cornu_random_hue(0.2), cornu_random_color_degeneration(0.2), cornu_random_color_jitter(),
        cornu_random_grayscale(), cornu_random_invert(), cornu_random_posterization(4),
        cornu_random_sharpness(0.2), cornu_random_gaussian_blur(), cornu_random_erasing(),
        cornu_random_elastic_transform(), cornu_random_perspective(), cornu_random_shear(),
        cornu_solarization(), cornu_auto_contrast(), cornu_equalization(),
        cornu_random_crop(7, 6), cornu_center_crop(6, 4), cornu_max_num_bounding_boxes(3),
    };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) x = cornu_call(layers[i], x);
    return cornu_model(.inputs = { image }, .outputs = { x }, .name = "augmented");
}

/* Histograms of the tiles of all images of the batch. */
CornuModel *onnx_tiles(void)
{
    CornuSymbol *image = cornu_input(.shape = { 8, 8, 2 });
    CornuLayer  *layer = cornu_contrast_limited_adaptive_histogram_equalization(
        .tile_grid_size = { 2, 2 });
    return cornu_model(.inputs = { image }, .outputs = { cornu_call(layer, image) },
                       .name = "tiles");
}

CornuModel *onnx_categories(void)
{
    static const double edges[] = { -1, 0.5, 1 }, words[] = { 7, 3, 9, 1 };
    CornuSymbol *x = cornu_input(.shape = { 4 });
    CornuSymbol *index = cornu_input(.shape = { 4 }, .dtype = CORNU_I32);
    CornuLayer  *bins = cornu_discretization(.bin_boundaries = numbers(edges, 3));
    CornuLayer  *lookup = cornu_integer_lookup(.vocabulary = numbers(words, 4));
    return cornu_model(
        .inputs = { x, index }, .name = "categories",
        .outputs = { cornu_call(bins, x),
                     cornu_call(cornu_discretization(.bin_boundaries = numbers(edges, 3),
                                                     .output_mode = CORNU_COUNT_OUTPUT), x),
                     cornu_call(lookup, index),
                     cornu_call(cornu_category_encoding(10), index),
                     cornu_call(cornu_category_encoding(10, CORNU_ONE_HOT_OUTPUT), index) });
}

/* Spectra of sounds, and layers in a row. */
CornuModel *onnx_sounds(void)
{
    CornuSymbol *sound = cornu_input(.shape = { 48, 1 }), *wave = cornu_input(.shape = { 64 });
    CornuSymbol *clip = cornu_input(.shape = { 2, 3, 4, 3, 1 });
    CornuLayer  *both = cornu_pipeline(cornu_rescaling(2.0), cornu_activation(CORNU_TANH));
    return cornu_model(
        .inputs = { sound, wave, clip }, .name = "sounds",
        .outputs = { cornu_call(both, cornu_call(cornu_stft_spectrogram(
                                    "psd", .frame_length = 16, .frame_step = 8), sound)),
                     cornu_call(cornu_mel_spectrogram(.fft_length = 32, .sequence_stride = 16,
                                                      .num_mel_bins = 6, .sampling_rate = 800),
                                wave),
                     cornu_call(cornu_conv_lstm3d(2, 2), clip) });
}
