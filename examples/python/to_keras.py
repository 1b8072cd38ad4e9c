#!/usr/bin/env python3
"""Loads a model that Cornu saved into Keras 3.

    to_keras.py MODEL.safetensors [--predict IMAGES [LABELS]] [--limit N] [--output MODEL.keras]

--predict prints the class Keras predicts for each image of an idx file (.gz or not), one a line;
with LABELS, also the accuracy, on standard error. The file itself is read with NumPy and the
standard library alone.
"""

import argparse
import gzip
import importlib.util
import json
import os
import struct
import sys

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U32": "<u4",
          "U8": "u1", "BOOL": "?"}


def read_safetensors(path):
    """(arrays by name, metadata)"""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        array = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]])
        arrays[name] = array.reshape(entry["shape"])
    return arrays, metadata


def read_idx(path):
    """An idx file of bytes: magic 0 0 8 RANK, big-endian extents, the bytes."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        data = file.read()
    if data[:3] != b"\0\0\x08":
        sys.exit(f"{path}: not an idx file of bytes")
    shape = struct.unpack(f">{data[3]}I", data[4 : 4 + 4 * data[3]])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def load_model(path):
    """(the Keras model, what whole-number input is multiplied by)"""
    for backend in ("tensorflow", "jax", "torch"):      # the first that is there
        if "KERAS_BACKEND" not in os.environ and importlib.util.find_spec(backend):
            os.environ["KERAS_BACKEND"] = backend
    import keras

    arrays, metadata = read_safetensors(path)
    if "architecture" not in metadata:
        sys.exit(f"{path}: holds weights without an architecture")
    def keras_2_hard_sigmoid(x):       # which Keras 3 has no name for
        return keras.ops.clip(0.2 * x + 0.5, 0.0, 1.0)

    keras.saving.get_custom_objects()["keras_2_hard_sigmoid"] = keras_2_hard_sigmoid
    known = {"keras_2_hard_sigmoid": keras.saving.serialize_keras_object(keras_2_hard_sigmoid)}
    architecture = json.loads(metadata["architecture"], object_hook=lambda values: {
        key: known.get(value, value) if isinstance(value, str) else value
        for key, value in values.items()})
    model = keras.models.model_from_json(json.dumps(architecture))
    names = json.loads(metadata["weights"])
    same = [ours.split("/")[-1] == theirs.name for ours, theirs in zip(names, model.weights)]
    if len(names) != len(model.weights) or not all(same):
        sys.exit(f"{path}: has weights {names}, Keras expects {[w.path for w in model.weights]}")
    for name, weight in zip(names, model.weights):
        if tuple(weight.shape) != arrays[name].shape:
            sys.exit(f"{path}: {name} has shape {arrays[name].shape}, expected {weight.shape}")
        weight.assign(arrays[name])
    return model, json.loads(metadata.get("input", "{}")).get("scale", 1.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--predict", nargs="+", metavar=("IMAGES", "LABELS"))
    parser.add_argument("--limit", type=int, metavar="N", help="the first N images")
    parser.add_argument("--output", metavar="FILE", help="write the model, FILE.keras")
    arguments = parser.parse_args()
    if arguments.predict and len(arguments.predict) > 2:
        parser.error("--predict takes IMAGES and LABELS")

    model, scale = load_model(arguments.model)
    if arguments.output:
        model.save(arguments.output)
    if arguments.predict:
        images = read_idx(arguments.predict[0])[: arguments.limit]
        x = (images * np.float32(scale)).reshape((len(images),) + model.input_shape[1:])
        classes = model.predict(x, batch_size=256, verbose=0).argmax(axis=-1)
        print("\n".join(str(c) for c in classes))
        if len(arguments.predict) == 2:
            labels = read_idx(arguments.predict[1])[: arguments.limit]
            print(f"accuracy {np.mean(classes == labels):.4f}", file=sys.stderr)


if __name__ == "__main__":
    main()
