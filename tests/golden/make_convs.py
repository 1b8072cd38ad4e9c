"""The convolution family, layers of images and sequences, augmentation. Writes convs/GROUP.safetensors.

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


def convolutions():
    cases = []
    for padding in ("valid", "same"):
        for kernel, stride, dilation, multiplier in (
            (3, 1, 1, 1), (3, 2, 1, 1), (2, 1, 1, 2), ((2, 3), 1, (2, 1), 1), ((3, 2), 2, 1, 3),
        ):
            window = {"strides": stride, "dilation_rate": dilation, "padding": padding}
            name = f"{padding}_{len(cases)}"
            cases += [
                (f"depthwise_{name}",
                 L.DepthwiseConv2D(kernel, depth_multiplier=multiplier, **window), (2, 7, 8, 5)),
                (f"separable_{name}",
                 L.SeparableConv2D(4, kernel, depth_multiplier=multiplier, **window),
                 (2, 7, 8, 3)),
            ]
        for groups, filters, stride, dilation in ((2, 4, 1, 1), (3, 3, 2, 1), (6, 12, 1, 2),
                                                  (6, 6, 1, 1)):
            cases.append((f"groups_{groups}_{filters}_s{stride}_d{dilation}_{padding}",
                          L.Conv2D(filters, 3, strides=stride, dilation_rate=dilation,
                                   groups=groups, padding=padding), (2, 7, 8, 6)))
        for kernel, stride, dilation, more in (
            (3, 1, 1, None), (3, 2, 1, None), (2, 3, 1, None), (4, 2, 1, None), (3, 2, 1, 1),
            (3, 2, 1, 0), ((2, 3), (3, 2), 1, (2, 1)), (3, 1, 2, None), (4, 2, 1, (1, 0)),
        ):
            cases.append((f"transpose_{padding}_{len(cases)}",
                          L.Conv2DTranspose(3, kernel, strides=stride, dilation_rate=dilation,
                                            output_padding=more, padding=padding), (2, 4, 5, 2)))
        for kernel, stride, dilation, multiplier in ((3, 1, 1, 1), (3, 2, 1, 2), (2, 1, 3, 1),
                                                     (4, 3, 1, 3)):
            window = {"strides": stride, "dilation_rate": dilation, "padding": padding}
            name = f"1d_{padding}_{len(cases)}"
            cases += [
                (f"depthwise_{name}",
                 L.DepthwiseConv1D(kernel, depth_multiplier=multiplier, **window), (2, 9, 5)),
                (f"separable_{name}",
                 L.SeparableConv1D(4, kernel, depth_multiplier=multiplier, **window), (2, 9, 3)),
            ]
        for kernel, stride, dilation, more in ((3, 1, 1, None), (3, 2, 1, None), (2, 3, 1, None),
                                               (3, 2, 1, 1), (3, 2, 1, 0), (3, 1, 2, None)):
            cases.append((f"transpose_1d_{padding}_{len(cases)}",
                          L.Conv1DTranspose(3, kernel, strides=stride, dilation_rate=dilation,
                                            output_padding=more, padding=padding), (2, 5, 2)))
    for padding in ("valid", "same", "causal"):
        for kernel, stride, dilation, groups in ((3, 1, 1, 1), (2, 2, 1, 1), (3, 1, 2, 1),
                                                 (3, 1, 1, 2)):
            cases.append((f"conv1d_k{kernel}_s{stride}_d{dilation}_g{groups}_{padding}",
                          L.Conv1D(4, kernel, strides=stride, dilation_rate=dilation,
                                   groups=groups, padding=padding), (2, 9, 4)))
    cases += [
        ("depthwise_relu_no_bias",
         L.DepthwiseConv2D(3, use_bias=False, activation="relu"), (2, 5, 5, 3)),
        ("depthwise_wide", L.DepthwiseConv2D(3, padding="same"), (3, 6, 7, 40)),
        ("separable_tanh_no_bias",
         L.SeparableConv2D(2, 3, use_bias=False, activation="tanh"), (2, 5, 5, 3)),
        ("transpose_relu_no_bias",
         L.Conv2DTranspose(2, 3, use_bias=False, activation="relu"), (1, 3, 3, 2)),
        ("conv1d_no_bias", L.Conv1D(2, 5, use_bias=False, activation="elu"), (2, 5, 3)),
    ]
    layers("convolutions", cases)


def spatial():
    cases = []
    for word, image, sequence in (("average", L.GlobalAveragePooling2D, L.GlobalAveragePooling1D),
                                  ("max", L.GlobalMaxPooling2D, L.GlobalMaxPooling1D)):
        for keep in (False, True):
            cases += [(f"global_{word}_2d_{keep}", image(keepdims=keep), (2, 3, 4, 5)),
                      (f"global_{word}_1d_{keep}", sequence(keepdims=keep), (2, 7, 3))]
    for word, layer in (("max", L.MaxPooling1D), ("average", L.AveragePooling1D)):
        for padding in ("valid", "same"):
            for pool, stride in ((2, None), (3, 2), (2, 3)):
                cases.append((f"{word}_p{pool}_s{stride}_{padding}",
                              layer(pool, strides=stride, padding=padding), (2, 8, 3)))
    cases += [
        ("zero_padding", L.ZeroPadding2D(), (2, 3, 4, 2)),
        ("zero_padding_3", L.ZeroPadding2D(3), (2, 3, 4, 2)),
        ("zero_padding_sides", L.ZeroPadding2D(((0, 1), (2, 0))), (2, 3, 4, 2)),
        ("zero_padding_none", L.ZeroPadding2D(0), (2, 3, 4, 2)),
        ("cropping", L.Cropping2D(1), (2, 5, 4, 2)),
        ("cropping_none", L.Cropping2D(), (2, 5, 4, 2)),
        ("cropping_sides", L.Cropping2D(((0, 1), (2, 0))), (2, 5, 4, 2)),
        ("up_sampling", L.UpSampling2D(), (2, 3, 4, 2)),
        ("up_sampling_3x2", L.UpSampling2D((3, 2)), (2, 3, 4, 2)),
        ("up_sampling_bilinear", L.UpSampling2D(2, interpolation="bilinear"), (2, 3, 4, 2)),
        ("up_sampling_bilinear_1x3", L.UpSampling2D((1, 3), interpolation="bilinear"),
         (2, 3, 4, 2)),
        ("resizing", L.Resizing(5, 3), (2, 3, 4, 2)),
        ("resizing_down", L.Resizing(2, 3), (2, 7, 8, 2)),
        ("resizing_nearest", L.Resizing(5, 3, interpolation="nearest"), (2, 3, 7, 2)),
        ("resizing_same", L.Resizing(3, 9), (2, 3, 4, 2)),
        ("resizing_fill_unused", L.Resizing(4, 3, fill_value=0.5), (2, 3, 4, 2)),
        ("up_sampling_bicubic", L.UpSampling2D(2, interpolation="bicubic"), (2, 3, 4, 2)),
        ("up_sampling_lanczos3", L.UpSampling2D((2, 3), interpolation="lanczos3"), (2, 3, 4, 2)),
        ("up_sampling_1d", L.UpSampling1D(), (2, 3, 4)),
        ("up_sampling_1d_3", L.UpSampling1D(3), (2, 3, 4)),
        ("zero_padding_1d", L.ZeroPadding1D(), (2, 3, 4)),
        ("zero_padding_1d_sides", L.ZeroPadding1D((0, 2)), (2, 3, 4)),
        ("zero_padding_1d_none", L.ZeroPadding1D(0), (2, 3, 4)),
        ("cropping_1d", L.Cropping1D(), (2, 5, 4)),
        ("cropping_1d_sides", L.Cropping1D((2, 0)), (2, 5, 4)),
        ("cropping_1d_none", L.Cropping1D(0), (2, 5, 4)),
        ("permute", L.Permute((2, 1)), (2, 3, 4)),
        ("permute_4", L.Permute((3, 1, 2)), (2, 3, 4, 5)),
        ("repeat_vector", L.RepeatVector(3), (2, 4)),
    ]
    for way in ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"):
        for smooth in (False, True):
            for size in ((5, 3), (11, 13), (2, 9), (7, 4)):
                cases.append((f"resizing_{way}_{smooth}_{size[0]}x{size[1]}",
                              L.Resizing(*size, interpolation=way, antialias=smooth),
                              (2, 7, 8, 2)))
    for shape in ((2, 7, 8, 2), (2, 5, 12, 2), (2, 13, 4, 2), (2, 3, 3, 2)):
        for size in ((4, 4), (3, 7), (9, 2)):
            name = f"{shape[1]}x{shape[2]}_{size[0]}x{size[1]}"
            cases += [
                (f"resizing_crop_{name}", L.Resizing(*size, crop_to_aspect_ratio=True), shape),
                (f"resizing_pad_{name}",
                 L.Resizing(*size, pad_to_aspect_ratio=True, fill_value=0.25, antialias=True),
                 shape),
            ]
    layers("spatial", cases)


def volumes():
    cases = []
    for padding in ("valid", "same"):
        for kernel, stride, dilation, groups in (
            (1, 1, 1, 1), (3, 1, 1, 1), (2, 2, 1, 1), ((3, 1, 2), (2, 1, 3), 1, 2), (2, 1, 2, 1),
            ((2, 3, 1), 1, (3, 1, 2), 4), ((1, 2, 2), (3, 1, 1), 1, 1),
        ):
            cases.append((f"conv_{padding}_{len(cases)}",
                          L.Conv3D(4, kernel, strides=stride, dilation_rate=dilation,
                                   groups=groups, padding=padding), (1, 4, 3, 5, 4)))
        for kernel, stride, dilation, more in (
            (2, 1, 1, None), (3, 2, 1, None), (2, 3, 1, None), (3, 2, 1, 1), (3, 2, 1, 0),
            ((2, 1, 3), (3, 2, 1), 1, (2, 1, 0)), ((1, 2, 3), 1, (1, 3, 2), None),
            (1, (3, 1, 1), 1, None), (3, 1, (2, 1, 1), None),
        ):
            cases.append((f"transpose_{padding}_{len(cases)}",
                          L.Conv3DTranspose(2, kernel, strides=stride, dilation_rate=dilation,
                                            output_padding=more, padding=padding),
                          (1, 3, 2, 4, 3)))
        for word, layer in (("max", L.MaxPooling3D), ("average", L.AveragePooling3D)):
            for pool, stride in ((2, None), (3, 2), ((1, 2, 3), (2, 1, 2)), ((3, 1, 2), 1)):
                cases.append((f"{word}_pool_{padding}_{len(cases)}",
                              layer(pool, strides=stride, padding=padding), (1, 4, 5, 6, 1)))
    for keep in (False, True):
        cases += [(f"global_average_{keep}", L.GlobalAveragePooling3D(keepdims=keep),
                   (2, 3, 2, 4, 3)),
                  (f"global_max_{keep}", L.GlobalMaxPooling3D(keepdims=keep), (2, 3, 2, 4, 3))]
    cases += [
        ("conv_relu_no_bias", L.Conv3D(2, 2, use_bias=False, activation="relu"), (1, 3, 3, 3, 2)),
        ("transpose_relu_no_bias",
         L.Conv3DTranspose(2, 2, use_bias=False, activation="relu"), (1, 2, 2, 2, 3)),
        ("up_sampling", L.UpSampling3D(), (2, 2, 3, 2, 2)),
        ("up_sampling_3x1x2", L.UpSampling3D((3, 1, 2)), (2, 2, 3, 2, 2)),
        ("zero_padding", L.ZeroPadding3D(), (2, 2, 3, 2, 2)),
        ("zero_padding_each", L.ZeroPadding3D((0, 2, 1)), (2, 2, 3, 2, 2)),
        ("zero_padding_sides", L.ZeroPadding3D(((0, 1), (2, 0), (1, 3))), (2, 2, 1, 2, 2)),
        ("zero_padding_none", L.ZeroPadding3D(0), (2, 2, 1, 2, 2)),
        ("cropping", L.Cropping3D(), (2, 3, 4, 3, 2)),
        ("cropping_sides", L.Cropping3D(((0, 1), (2, 0), (0, 0))), (2, 3, 4, 3, 2)),
        ("cropping_none", L.Cropping3D(0), (2, 3, 4, 3, 2)),
        ("spatial_dropout_inference", L.SpatialDropout3D(0.5), (2, 3, 2, 2, 2), False),
    ]
    layers("volumes", cases)


def adaptive():
    cases = []
    for word, pools in (("average", (L.AdaptiveAveragePooling1D, L.AdaptiveAveragePooling2D,
                                     L.AdaptiveAveragePooling3D)),
                        ("max", (L.AdaptiveMaxPooling1D, L.AdaptiveMaxPooling2D,
                                 L.AdaptiveMaxPooling3D))):
        cases += [(f"{word}_1d_{n}", pools[0](n), (2, 7, 2)) for n in (1, 2, 3, 5)]
        cases += [(f"{word}_2d_{i}", pools[1](size), (2, 6, 5, 2))
                  for i, size in enumerate((1, 2, (4, 3), (3, 5)))]
        cases += [(f"{word}_3d_{i}", pools[2](size), (1, 4, 5, 3, 2))
                  for i, size in enumerate((1, (3, 2, 2), (2, 5, 1)))]
        cases += [(f"{word}_first", pools[1](2, data_format="channels_first"), (2, 3, 5, 4)),
                  (f"{word}_long", pools[0](2), (1, 600, 1))]
    layers("adaptive", cases)


def channels_first():
    cases = []
    sequence, image, volume = (2, 4, 7), (2, 4, 6, 5), (2, 4, 3, 4, 5)
    first = {"data_format": "channels_first"}
    for padding in ("valid", "same"):
        window = {"padding": padding} | first
        cases += [
            (f"conv1d_{padding}", L.Conv1D(3, 3, strides=2, **window), sequence),
            (f"conv2d_{padding}", L.Conv2D(6, (2, 3), groups=2, **window), image),
            (f"conv3d_{padding}", L.Conv3D(3, 2, strides=(1, 2, 2), **window), volume),
            (f"conv1d_transpose_{padding}", L.Conv1DTranspose(3, 3, strides=2, **window), sequence),
            (f"conv2d_transpose_{padding}",
             L.Conv2DTranspose(2, (2, 3), strides=2, **window), image),
            (f"conv3d_transpose_{padding}",
             L.Conv3DTranspose(2, 2, strides=(1, 2, 1), **window), volume),
            (f"depthwise1d_{padding}", L.DepthwiseConv1D(3, depth_multiplier=2, **window), sequence),
            (f"depthwise2d_{padding}", L.DepthwiseConv2D((3, 2), **window), image),
            (f"separable1d_{padding}", L.SeparableConv1D(3, 2, **window), sequence),
            (f"separable2d_{padding}", L.SeparableConv2D(3, 2, strides=2, **window), image),
        ]
        for word, pools in (("max", (L.MaxPooling1D, L.MaxPooling2D, L.MaxPooling3D)),
                            ("average", (L.AveragePooling1D, L.AveragePooling2D,
                                         L.AveragePooling3D))):
            for pool, shape in zip(pools, (sequence, image, volume)):
                cases.append((f"{word}_pool_{len(shape)}_{padding}",
                              pool(2, strides=1, **window), shape))
    for keep in (False, True):
        for pool, shape in (
            (L.GlobalAveragePooling1D, sequence), (L.GlobalAveragePooling2D, image),
            (L.GlobalAveragePooling3D, volume), (L.GlobalMaxPooling1D, sequence),
            (L.GlobalMaxPooling2D, image), (L.GlobalMaxPooling3D, volume),
        ):
            cases.append((f"{pool.__name__}_{keep}", pool(keepdims=keep, **first), shape))
    cases += [
        ("conv2d_softmax", L.Conv2D(3, 2, activation="softmax", use_bias=False, **first),
         image),
        ("conv2d_relu", L.Conv2D(3, 2, activation="relu", **first), image),
        ("up_sampling2d", L.UpSampling2D((2, 3), **first), image),
        ("up_sampling2d_bilinear", L.UpSampling2D(2, interpolation="bilinear", **first), image),
        ("up_sampling3d", L.UpSampling3D((1, 2, 3), **first), volume),
        ("zero_padding1d", L.ZeroPadding1D((1, 2), **first), sequence),
        ("zero_padding2d", L.ZeroPadding2D(((1, 2), (0, 3)), **first), image),
        ("zero_padding3d", L.ZeroPadding3D((2, 0, 1), **first), volume),
        ("cropping2d", L.Cropping2D(((1, 2), (0, 3)), **first), image),
        ("cropping3d", L.Cropping3D(((1, 0), (0, 3), (2, 1)), **first), volume),
        ("flatten3", L.Flatten(**first), sequence),
        ("flatten4", L.Flatten(**first), image),
        ("flatten5", L.Flatten(**first), volume),
        ("flatten2", L.Flatten(**first), (2, 3)),
        ("spatial_dropout2d", L.SpatialDropout2D(0.5, **first), image, False),
        ("resizing", L.Resizing(3, 8, **first), image),
    ]
    layers("channels_first", cases)


def augmentation():
    cases = []
    for mode in ("reflect", "constant", "nearest", "wrap"):
        for interpolation in ("bilinear", "nearest"):
            fill = {"fill_mode": mode, "interpolation": interpolation, "fill_value": 0.25}
            for turn in (0.07, -0.29):
                cases.append((f"rotation_{mode}_{interpolation}_{turn}",
                              L.RandomRotation((turn, turn), **fill), (2, 6, 7, 2), True))
            for height, width in ((0.13, -0.31), (-0.9, 0.77)):
                cases.append((f"translation_{mode}_{interpolation}_{height}",
                              L.RandomTranslation((height, height), (width, width), **fill),
                              (2, 6, 7, 2), True))
            for zoom in (0.3, -0.4):
                cases.append((f"zoom_{mode}_{interpolation}_{zoom}",
                              L.RandomZoom((zoom, zoom), **fill), (2, 6, 7, 2), True))
    cases.append(("zoom_sides", L.RandomZoom((0.2, 0.2), (-0.5, -0.5)), (2, 6, 7, 2), True))
    cases.append(("zoom_height", L.RandomZoom((0.2, 0.2), 0.0), (2, 6, 7, 2), True))
    cases.append(("rotation_inference", L.RandomRotation(0.2), (2, 6, 7, 2), False))
    cases.append(("flip_inference", L.RandomFlip(), (2, 6, 7, 2), False))
    cases.append(("gaussian_noise_inference", L.GaussianNoise(0.5), (2, 3), False))
    cases.append(("gaussian_dropout_inference", L.GaussianDropout(0.5), (2, 3), False))
    cases.append(("alpha_dropout_inference", L.AlphaDropout(0.5), (2, 3), False))
    cases.append(("spatial_dropout_inference", L.SpatialDropout2D(0.5), (2, 3, 3, 2), False))
    layers("augmentation", cases)


def main():

    for make in (convolutions, spatial, volumes, adaptive, channels_first,
                 augmentation):
        make()
    out = common.folder("convs")
    for name, group in make_pieces.GROUPS.items():
        common.write_arrays(out / f"{name}.safetensors", group.arrays, group.cases)


if __name__ == "__main__":
    main()
