"""The values that Keras' TensorBoard callback writes, as TensorBoard reads them. Writes tensorboard/.

NAME.txt           one value a line: FOLDER STEP TAG PLUGIN DTYPE SHAPE VALUE...
data.safetensors   what is trained

The callback writes through TensorFlow (here 2.21), which must be installed. Given folders of event
files, the script needs TensorBoard alone and prints their values, to compare Cornu's:
    python tests/golden/make_tensorboard.py build/tests/tensorboard/batches
"""

import json
import os
import pathlib
import shutil
import struct
import sys
import zlib
from importlib.metadata import version

import numpy as np
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.plugins.graph import keras_util
from tensorboard.util import tensor_util


def png_pixels(data):
    """Of a PNG of 8 bits a channel, as a list: RFC 2083."""
    at, body = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        chunk = data[at + 8:at + 8 + size]
        sum_of_both = struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0]
        assert sum_of_both == zlib.crc32(kind + chunk)
        if kind == b"IHDR":
            width, height, _, colours = struct.unpack(">IIBB", chunk[:10])
            channels = {0: 1, 2: 3, 6: 4}[colours]
        body += chunk if kind == b"IDAT" else b""
        at += 12 + size
    raw, stride = zlib.decompress(body), width * channels
    rows = np.zeros((height + 1, stride + channels), int)       # a border of zeros
    for y in range(height):
        kind = raw[y * (stride + 1)]
        for x in range(stride):
            a, b, c = rows[y + 1, x], rows[y, x + channels], rows[y, x]
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            guess = (0, a, b, (a + b) // 2, paeth)[kind]
            rows[y + 1, x + channels] = (raw[y * (stride + 1) + 1 + x] + guess) % 256
    return rows[1:, channels:].ravel().tolist()


def words(plugin, array):
    if plugin == "graph_keras_model":
        config = json.loads(array.item())
        assert len(keras_util.keras_model_to_graph_def(config).node) > 0
        return [layer["config"]["name"] for layer in config["config"]["layers"]]
    if plugin == "images":
        pictures = [str(p) for png in array[2:] for p in png_pixels(png)]
        return [array[0].decode(), array[1].decode(), *pictures]
    return [f"{v:.9g}" for v in array.ravel()]


def dump(folder):
    lines = []
    for part in ("train", "validation"):
        for path in sorted((pathlib.Path(folder) / part).glob("events.out.tfevents.*")):
            for event in EventFileLoader(str(path)).Load():
                for value in event.summary.value:
                    plugin = value.metadata.plugin_data.plugin_name
                    array = tensor_util.make_ndarray(value.tensor)
                    tag = value.tag.removeprefix("tiny/")       # the model's name
                    shape = "x".join(str(d.size) for d in value.tensor.tensor_shape.dim) or "scalar"
                    lines.append(" ".join([part, str(event.step), tag, plugin, array.dtype.name,
                                           shape, *words(plugin, array)]))
    return "".join(line + "\n" for line in lines)


def main():
    import common
    import keras

    C, L = keras.callbacks, keras.layers
    out, logs = common.folder("tensorboard"), common.HERE / "logs"
    with (out / "VERSIONS").open("a") as file:
        file.writelines(f"{name} {version(name)}\n" for name in ("tensorboard", "tensorflow-cpu"))
    x = common.hashed_uniform("x", 16 * 16).reshape(16, 4, 4, 1)
    y = (np.arange(16) * 7 % 5 % 3).astype("int32")

    def model():
        keras.utils.clear_session()
        made = keras.Sequential([keras.Input((4, 4, 1)), L.Conv2D(2, 2), L.Flatten(),
                                 L.Dense(3, activation="softmax")], name="tiny")
        made.compile(keras.optimizers.SGD(0.25), "sparse_categorical_crossentropy",
                     metrics=["accuracy"])
        made.set_weights(start)
        return made

    shapes = [(2, 2, 1, 2), (2,), (18, 3), (3,)]
    start = [common.hashed_uniform(f"start{i}", int(np.prod(s))).reshape(s)
             for i, s in enumerate(shapes)]
    common.write_arrays(out / "data.safetensors",
                        {"x": x, "y": y} | {f"start_{i}": w for i, w in enumerate(start)}, {})

    def fit(name, rows, epochs, validation, *callbacks, **settings):
        board = C.TensorBoard(str(logs), **settings)
        held = {"validation_data": (x[:8], y[:8])} if validation else {}
        made = model()
        made.fit(x[:rows], y[:rows], 4, epochs, 0, [*callbacks, board], shuffle=False, **held)
        if name == "evaluate":
            shutil.rmtree(logs)
            made.evaluate(x[:6], y[:6], 4, 0, callbacks=[C.TensorBoard(str(logs), **settings)])
        (out / f"{name}.txt").write_text(dump(logs))
        shutil.rmtree(logs)

    fit("batches", 10, 2, True, histogram_freq=1, write_images=True, update_freq="batch")
    halving = C.LearningRateScheduler(lambda epoch, rate: rate * 0.5)
    fit("epochs", 10, 3, False, halving, histogram_freq=2, write_graph=False)
    fit("every_2", 16, 2, True, write_graph=False, update_freq=2)
    fit("evaluate", 16, 1, False, write_graph=False)


if __name__ == "__main__":
    for given in sys.argv[1:]:
        print(dump(given), end="")
    if len(sys.argv) == 1:
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
        main()
