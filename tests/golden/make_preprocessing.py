"""Layers that prepare data. Writes preprocessing/GROUP.safetensors.

Groups are as in pieces/. Random layers have ranges of one value, so nothing is random.
"""

import common
import keras
import make_pieces
from make_pieces import Group, layer_case

L = keras.layers


def layers(group, cases):
    group = Group(group)
    for name, layer, shape, *training in cases:
        layer_case(group, name, layer, shape, *training)
        for key in [k for k in group.arrays if "seed_generator" in k]:
            del group.arrays[key]


def numbers():
    image = (3, 4, 2, 3)
    by_axes = {"mean": [[0.1, 0.2, 0.3]] * 4, "variance": [[0.1, 0.4, 0.9]] * 4}
    layers("numbers", [
        ("normalization", L.Normalization(mean=[0.5, -0.2, 0.1], variance=[0.1, 0.2, 0.0]), (4, 3)),
        ("normalization_invert",
         L.Normalization(mean=[0.5, -0.2, 0.1], variance=[0.1, 0.2, 0.0], invert=True), image),
        ("normalization_axes", L.Normalization(axis=(1, 3), **by_axes), image),
        ("normalization_last_of_axes",
         L.Normalization(axis=(1, 3), mean=[0.1, 0.2, 0.3], variance=[1.0, 2.0, 3.0]), image),
        ("normalization_one", L.Normalization(mean=[0.3], variance=[0.5]), image),
        ("rescaling_lists", L.Rescaling([0.5, -2.0, 3.0], [0.1, 0.2, -0.3]), image),
        ("rescaling_offsets", L.Rescaling(2, [0.1, 0.2, -0.3]), image),
        ("rescaling_matrix", L.Rescaling([[0.5, -2.0, 3.0], [1.0, 2.0, 0.1]]), image),
    ])


def images():
    unit, image = {"value_range": (-1, 1)}, (2, 5, 4, 3)
    always = {"factor": (1, 1)}
    layers("images", [
        ("center_crop", L.CenterCrop(3, 2), image),
        ("center_crop_larger", L.CenterCrop(7, 6), image),
        ("center_crop_wider", L.CenterCrop(3, 9), image),
        ("random_crop_same", L.RandomCrop(5, 4), image, True),
        ("random_crop_larger", L.RandomCrop(7, 3), image, True),
        ("contrast", L.RandomContrast((-0.3, 0.3), **unit), image, True),
        ("brightness", L.RandomBrightness((0.2, 0.2), **unit), image, True),
        ("brightness_inference", L.RandomBrightness((0.2, 0.2), **unit), image, False),
        ("saturation", L.RandomSaturation((0.3, 0.3), **unit), image, True),
        ("hue", L.RandomHue((0, 0), **unit), image, True),
        ("grayscale", L.RandomGrayscale(1.0), image, True),
        ("degeneration", L.RandomColorDegeneration((0.3, 0.3), **unit), image, True),
        ("sharpness", L.RandomSharpness((0.3, 0.3), **unit), image, True),
        ("sharpness_more", L.RandomSharpness((0.9, 0.9), **unit), image, True),
        ("posterization", L.RandomPosterization((3, 3), **unit), image, True),
        ("posterization_8", L.RandomPosterization((8, 8), **unit), image, True),
        ("invert", L.RandomInvert(**always, **unit), image, True),
        ("jitter", L.RandomColorJitter(brightness_factor=(0.1, 0.1), contrast_factor=(0, 0),
                                       saturation_factor=(0.4, 0.4), hue_factor=(0, 0), **unit),
         image, True),
        ("solarization", L.Solarization(0.0, 0.0, **unit), image, True),
        ("auto_contrast", L.AutoContrast(**unit), image),
        ("equalization", L.Equalization(**unit), image, True),
        ("equalization_bins", L.Equalization(bins=9, **unit), image, True),
        ("clahe", L.ContrastLimitedAdaptiveHistogramEqualization(**unit), image),
        ("clahe_tiles", L.ContrastLimitedAdaptiveHistogramEqualization(
            clip_limit=20.0, tile_grid_size=(2, 3), **unit), (2, 7, 6, 2)),
        ("clahe_free", L.ContrastLimitedAdaptiveHistogramEqualization(
            clip_limit=0.0, tile_grid_size=(3, 1), **unit), (2, 7, 6, 2)),
        ("erasing", L.RandomErasing(**always, scale=(1, 1), fill_value=0.25, **unit), image, True),
        ("blur", L.RandomGaussianBlur(**always, sigma=(0.6, 0.6), **unit), image, True),
        ("blur_3x5", L.RandomGaussianBlur(**always, kernel_size=(3, 5), sigma=(0.9, 0.9), **unit),
         image, True),
        ("shear_none", L.RandomShear((0, 0), (0, 0)), image, True),
        ("perspective_none", L.RandomPerspective(**always, scale=0.0), image, True),
        ("elastic_inference", L.RandomElasticTransform(), image, False),
        ("rand_augment_inference", L.RandAugment(), image, False),
        ("aug_mix_inference", L.AugMix(), image, False),
        ("mix_up_inference", L.MixUp(), image, False),
        ("cut_mix_inference", L.CutMix(), image, False),
        ("max_num_bounding_boxes", L.MaxNumBoundingBoxes(3), image),
    ])


def categories():
    cases = []
    for mode in ("one_hot", "multi_hot", "count"):
        for shape in ((3, 4), (3, 4, 2), (3, 1)):
            cases.append((f"{mode}_{len(shape)}_{shape[-1]}",
                          L.Discretization(bin_boundaries=[-0.5, 0.1, 0.25], output_mode=mode),
                          shape))
        cases.append((f"category_{mode}", L.CategoryEncoding(num_tokens=1, output_mode=mode),
                      (3, 4)))
    layers("categories", cases)


def main():
    for make in (numbers, images, categories):
        make()
    out = common.folder("preprocessing")
    for name, group in make_pieces.GROUPS.items():
        common.write_arrays(out / f"{name}.safetensors", group.arrays, group.cases)


if __name__ == "__main__":
    main()
