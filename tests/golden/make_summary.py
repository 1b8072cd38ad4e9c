"""The output of model.summary() in Keras. Writes summary/.

NAME.wCOLUMNS.txt   through print_fn: no escape codes
NAME.wCOLUMNS.ansi  on a 256-colour terminal (TERM=xterm-256color)
NAME.w80.ascii      on a stream whose encoding is ASCII
memory_sizes.txt    BYTES<TAB>string, the sizes in the last lines
"""

import io
import os
import sys

import common
import keras
import numpy as np
from keras.src.utils import summary_utils

L = keras.layers
OUT = common.folder("summary")
os.environ.update(TERM="xterm-256color", LINES="25")
for unwanted in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE"):
    os.environ.pop(unwanted, None)


class Stream(io.TextIOWrapper):
    """Standard output into memory, a terminal or not, in any encoding."""

    def __init__(self, terminal, encoding):
        super().__init__(io.BytesIO(), encoding=encoding, newline="")
        self.terminal = terminal

    def isatty(self):
        return self.terminal

    def bytes(self):
        self.flush()
        return self.buffer.getvalue()


def printed(model, columns, terminal, encoding, **keywords):
    os.environ["COLUMNS"] = str(columns)
    stream, saved = Stream(terminal, encoding), sys.stdout
    sys.stdout = stream
    try:
        model.summary(**keywords)
    finally:
        sys.stdout = saved
    return stream.bytes()


def golden(name, model, columns=(80,), ansi=(), **keywords):
    for w in columns:
        os.environ["COLUMNS"] = str(w)
        lines = []
        model.summary(print_fn=lines.append, **keywords)
        (OUT / f"{name}.w{w}.txt").write_text("".join(lines))
        same = printed(model, w, False, "utf-8", **keywords).decode()
        assert same == "".join(lines), f"{name}: stdout and print_fn differ"
    for w in ansi:
        data = printed(model, w, True, "utf-8", **keywords)
        (OUT / f"{name}.w{w}.ansi").write_bytes(data)


def one_step(model):
    """Compiled and trained for one step, so the optimizer has its variables."""
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    shape = (4,) + tuple(model.input_shape[1:])
    x = common.hashed_uniform("x", int(np.prod(shape))).reshape(shape)
    model.train_on_batch(x, np.zeros(4, "int32"))
    return model


def main():
    every = (60, 80, 100, 120)
    for name, build in common.DIGITS.items():
        keras.utils.clear_session()
        model = build()
        golden(name, model, every, ansi=(80, 100))
        golden(f"{name}.show_trainable", model, every, show_trainable=True)
        golden(f"{name}.trained", one_step(model), every, ansi=(80,))

    keras.utils.clear_session()
    model = common.mnist_cnn()
    data = printed(model, 80, False, "ascii")
    (OUT / "mnist_cnn.w80.ascii").write_bytes(data)
    model.layers[0].trainable = False
    model.layers[2].trainable = False
    golden("frozen", model, every, ansi=(80,), show_trainable=True)
    golden("frozen_plain", model, (80,))
    golden("line_length_60", common.mnist_convnet(), (80, 100), line_length=60)
    golden("line_length_100", common.mnist_convnet(), (80, 120), line_length=100)
    golden("layer_range", common.mnist_convnet(), layer_range=("max.*", "flatten.*"))

    for optimizer in ("sgd", "rmsprop"):
        keras.utils.clear_session()
        model = common.mnist_convnet()
        one_step(model)
        model.compile(optimizer, "sparse_categorical_crossentropy")
        model.train_on_batch(np.zeros((4, 28, 28, 1), "float32"), np.zeros(4, "int32"))
        golden(f"trained_{optimizer}", model)
    model = common.mnist_convnet()
    model.compile("adam", "sparse_categorical_crossentropy")
    golden("compiled_not_trained", model)

    keras.utils.clear_session()
    layers = [L.Conv2D(8, 3), L.BatchNormalization(), L.Flatten(), L.Dense(10)]
    golden("unbuilt", keras.Sequential(layers, name="unbuilt"), every, ansi=(80,))
    golden("empty", keras.Sequential(name="empty"), (80,), ansi=(80,))

    keras.utils.clear_session()
    layers = [
        keras.Input((4096,)),
        L.Dense(4096, name="a_name_that_breaks_before_type"),       # wraps at the blank
        L.Dense(4096, name="a_name_as_long_as_fits_31_cells"),
        L.Dense(2048, name="a_name_longer_than_the_column_itself_is_cut_short_by_rich"),
        L.BatchNormalization(name="normalise"),
        L.Dense(10, name="name with blanks in it that goes on over several lines"),
        L.Activation("softmax", name="[bold]markup"),
    ]
    model = keras.Sequential(layers, name="long_names")
    golden("long_names", model, (40,) + every, ansi=(80,))
    model = keras.Sequential(
        [keras.Input((2,)), L.Dense(3)],
        name="a_model_whose_own_name_is_longer_than_any_terminal_is_wide_" * 2,
    )
    golden("long_model_name", model, (80,), ansi=(80,))
    shapes = [keras.Input((3,)), L.Reshape((1, 1, 1, 1, 3)), L.Flatten()]
    golden("no_parameters", keras.Sequential(shapes, name="no_parameters"), (60, 80))
    wide = [keras.Input((1234, 1234, 1234)), L.Activation("relu"), L.ReLU(name="r")]
    golden("wide_shape", keras.Sequential(wide, name="wide_shape"), (40, 60, 80))

    keras.utils.clear_session()
    inputs = keras.Input((28, 28, 3), name="image")
    left = L.Conv2D(8, 3, padding="same", name="left")(inputs)
    right = L.Conv2D(8, 5, padding="same", name="right")(inputs)
    joined = L.Add(name="joined")([left, right])
    outputs = L.Dense(10, name="scores")(L.Flatten()(joined))
    golden("branching", keras.Model(inputs, outputs, name="branching"), every, ansi=(80,))

    sizes = [0, 4, 1020, 1023, 1024, 1025, 4096, 372864, 373288, 1048575, 1048576,
             1492872, 1418152, 2**30 - 1, 2**30, 5 * 2**30 + 2**29, 2**40, 3 * 2**50, 2**60]
    with open(OUT / "memory_sizes.txt", "w") as out:
        for size in sizes:
            out.write(f"{size}\t{summary_utils.readable_memory_size(size)}\n")


if __name__ == "__main__":
    main()
