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


def main():
    for make in (numbers,):
        make()
    out = common.folder("preprocessing")
    for name, group in make_pieces.GROUPS.items():
        common.write_arrays(out / f"{name}.safetensors", group.arrays, group.cases)


if __name__ == "__main__":
    main()
