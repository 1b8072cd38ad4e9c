"""Writes tests/golden/onnx_read/: small .onnx files as PyTorch and Keras export them, and what
onnxruntime computes from them.

    python tests/golden/make_onnx_read.py torch       torch, onnx, onnxscript, onnxruntime
    python tests/golden/make_onnx_read.py keras       keras, tensorflow, tf2onnx, onnxruntime

NAME.onnx, with NAME.onnx.data where the exporter keeps weights outside, and NAME.npz: inputs x0, …
and outputs p0, …. Each run rewrites its own files: those whose names begin with its word.
"""
import os
import pathlib
import platform
import sys
import warnings
from importlib.metadata import version

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import onnx
import onnxruntime

warnings.filterwarnings("ignore")

FOLDER = pathlib.Path(__file__).resolve().parent / "onnx_read"


def slim(path):
    """Drops what exporters write for their own debugging."""
    model = onnx.load(path, load_external_data=False)
    bodies = [a.g for n in model.graph.node for a in n.attribute if a.HasField("g")]
    for graph in [model.graph] + bodies:
        del graph.value_info[:], graph.metadata_props[:]
        for node in graph.node:
            node.doc_string = ""
            del node.metadata_props[:]
    del model.metadata_props[:]
    onnx.save(model, path)


def keep(name, path, arrays):
    slim(path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {place.name: array for place, array in zip(session.get_inputs(), arrays)}
    outputs = session.run(None, feeds)
    np.savez(FOLDER / f"{name}.npz", **{f"x{i}": a for i, a in enumerate(arrays)},
             **{f"p{i}": a for i, a in enumerate(outputs)})
    print(name, os.path.getsize(path))


def from_torch():
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)

    class Cnn(nn.Module):
        """What image networks are made of: residuals, groups, a depthwise convolution, dense
        features joined, squeeze-and-excite."""

        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(8)
            self.group = nn.Conv2d(8, 8, 3, padding=1, groups=2)
            self.depth = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8)
            self.gate = nn.Conv2d(8, 8, 1)
            self.group_norm = nn.GroupNorm(2, 16)
            self.head = nn.Linear(16, 4)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 3, 2, 1, ceil_mode=True)
            x = x + F.hardswish(self.group(x))
            y = F.silu(self.depth(x))
            y = y * torch.sigmoid(self.gate(F.adaptive_avg_pool2d(y, 1)))
            x = self.group_norm(torch.cat([x, F.avg_pool2d(y, 3, 1, 1)], 1))
            return self.head(x.mean((2, 3)))

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(20, 12)
            self.first = nn.Parameter(torch.randn(1, 1, 12))
            self.places = nn.Parameter(torch.randn(1, 7, 12) * 0.1)
            layer = nn.TransformerEncoderLayer(12, 2, 16, batch_first=True, activation="gelu",
                                               norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
            self.head = nn.Linear(12, 3)

        def forward(self, x):
            x = torch.cat([self.first.expand(x.shape[0], -1, -1), self.words(x)], 1)
            mask = torch.triu(torch.full((7, 7), float("-inf")), diagonal=1)
            return self.head(self.encoder(x + self.places, mask=mask, is_causal=False)[:, 0])

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(4, 5, num_layers=2, batch_first=True, bidirectional=True)
            self.gru = nn.GRU(10, 6, batch_first=True)
            self.rnn = nn.RNN(6, 4, batch_first=True)

        def forward(self, x):
            y, (_, c) = self.lstm(x)
            y, h = self.gru(y)
            y, _ = self.rnn(y)
            return y[:, -1], h[0], c[0]

    class Pieces(nn.Module):
        """Shapes, resizing, what is folded."""

        def __init__(self):
            super().__init__()
            self.up = nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1)
            self.norm = nn.InstanceNorm2d(3, affine=True)
            self.last = nn.LayerNorm(6)

        def forward(self, x):
            b, c, h, w = x.shape
            y = F.pixel_shuffle(x, 2)
            z = F.interpolate(x, size=(h * 2, w * 2), mode="bilinear", align_corners=False)
            z = z.reshape(b, 2, c // 2, 2 * h, 2 * w).permute(0, 2, 1, 3, 4).flatten(1, 2)
            u = self.norm(self.up(x))
            a, d = torch.split(F.interpolate(u, scale_factor=0.5, mode="nearest"), [1, 2], 1)
            all = torch.cat([y, z[:, ::2], u[:, 1:]], 1)
            v = F.softmax(self.last(F.pad(a[:, 0], (1, 1), mode="reflect")), -1)
            return all.mean((2, 3)), torch.clamp(v, 0.1, 0.5), torch.where(d > 0, d, -d).amax(1)

    def spread(module):
        for name, buffer in module.named_buffers():
            if "running_mean" in name:
                buffer.normal_(0, 0.2)
            if "running_var" in name:
                buffer.uniform_(0.5, 1.5)
        return module.eval()

    cases = {
        "cnn": (Cnn(), torch.randn(3, 3, 13, 13), (13, 18)),
        "transformer": (Transformer(), torch.randint(0, 20, (3, 6)), (14,)),
        "recurrent": (Recurrent(), torch.randn(3, 6, 4), (14,)),
        "pieces": (Pieces(), torch.randn(3, 4, 4, 4), (11, 18)),
    }
    for name, (module, x, opsets) in cases.items():
        spread(module)
        for opset in opsets:
            path = str(FOLDER / f"torch_{name}_{opset}.onnx")
            torch.onnx.export(module, (x,), path, dynamo=False, opset_version=opset,
                              input_names=["x"], dynamic_axes={"x": {0: "batch"}})
            keep(f"torch_{name}_{opset}", path, [x.numpy()])
        path = str(FOLDER / f"torch_{name}_new.onnx")
        torch.onnx.export(module, (x,), path, dynamo=True, verbose=False,
                          external_data=name == "cnn",
                          dynamic_shapes=({0: torch.export.Dim("batch")},))
        keep(f"torch_{name}_new", path, [x.numpy()])


def from_keras():
    import keras
    from keras import layers

    keras.utils.set_random_seed(0)
    image, steps = keras.Input((9, 9, 3)), keras.Input((5, 4))
    x = layers.Conv2D(6, 3, padding="same", activation="relu")(image)
    x = layers.BatchNormalization()(x)
    x = layers.SeparableConv2D(8, 3, strides=2, padding="same", activation="elu")(x)
    x = layers.Conv2DTranspose(4, 3, strides=2)(layers.LayerNormalization()(x))
    cnn = keras.Model(image, layers.Dense(3, activation="softmax")(
        layers.GlobalMaxPooling2D()(layers.AveragePooling2D(3, padding="same")(x))))
    x = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(steps)
    recurrent = keras.Model(steps, layers.Dense(2)(layers.GRU(3)(x)))
    x = layers.MultiHeadAttention(2, 3)(steps, steps, use_causal_mask=True)
    attention = keras.Model(steps, layers.Add()([x, steps]))
    for name, model, shape in (("cnn", cnn, (3, 9, 9, 3)), ("recurrent", recurrent, (3, 5, 4)),
                               ("attention", attention, (3, 5, 4))):
        data = np.random.default_rng(1).normal(size=shape).astype("float32")
        for weight in model.weights:
            if "moving_mean" in weight.path:
                weight.assign(np.linspace(-0.3, 0.3, weight.shape[0]))
        model.predict(data, verbose=0)
        path = str(FOLDER / f"keras_{name}.onnx")
        model.export(path, format="onnx", verbose=False)
        keep(f"keras_{name}", path, [data])


def main():
    word = sys.argv[1]
    packages = {"torch": ["torch", "onnx", "onnxscript", "onnxruntime", "numpy"],
                "keras": ["keras", "tensorflow-cpu", "tf2onnx", "onnxruntime", "numpy"]}[word]
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob(f"{word}_*"):
        path.unlink()
    {"torch": from_torch, "keras": from_keras}[word]()
    lines = [f"python {platform.python_version()}"] + [f"{p} {version(p)}" for p in packages]
    (FOLDER / f"{word}_VERSIONS").write_text("\n".join(lines) + "\n")


main()
